"""The whole run that makes the small model, from nothing to ONNX files; repeat it to go on where it stopped.

    lessons/            world scenes as arrays, a file at a time
    val/                a dataset of validation scenes
    first.safetensors   perception, taught on every object and part of every scene
    eye.safetensors     perception, taught further on harder images (crowding.py)
    views/              the lessons as that eye sees them, a file at a time
    choice.safetensors  the choice, taught on questions about these views
    *.jsonl, events/    the curves
    *.onnx              the networks as they run

A stage whose file is there is not repeated; within a stage training goes on from its last checkpoint.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import set_seed
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from maskwise.errors import MaskwiseError
from maskwise.models.carriers import make_carriers
from maskwise.models.choice import Chooser
from maskwise.models.choosing import Drill, choosing_loss, make_drill
from maskwise.models.descriptions import Description, Floats
from maskwise.models.examination import Examination, Looked, set_examination
from maskwise.models.exercises import Exercise, make_exercise, view_all, view_truth
from maskwise.models.export import export, make_chooser, make_eye
from maskwise.models.fitting import Count, Schedule, Task, fit
from maskwise.models.lessons import (
    SCENES_A_FILE,
    Lesson,
    dataset_to_lessons,
    read_file,
    write_files,
)
from maskwise.models.perception import Eye
from maskwise.models.seeing import Targets, make_targets, seeing_loss
from maskwise.models.tiny import CATEGORY_NAMES, Tiny
from maskwise.store import Dataset

T = TypeVar("T")

CARRIERS = 20_000
"""Sentences into which noun phrases are put."""

SEEN = 4
"""A lesson that was looked at is asked about this often as the eye saw it for each time as it is."""


Natural = Annotated[int, msgspec.Meta(ge=0)]


class WorldSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scenes of the training split with the questions asked of each, and scenes to validate on."""

    scenes: Natural
    questions: Natural
    validation: Count = 40


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A training run. `first`, `eye`: perception, on scenes as they are, then on harder ones. `datasets`: dataset
    folders mixed in with the world's scenes, image by image. `views`: of how many lessons the choice learns what
    the eye sees; of all it learns what there is.
    """

    seed: Natural
    world: WorldSource
    first: Schedule
    eye: Schedule
    choice: Schedule
    views: Natural
    datasets: tuple[str, ...] = ()
    threads: Count = 2


def read_settings(path: Path) -> Settings:
    """From TOML; a wrong or missing field is an error that names it."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Settings)
    except (msgspec.MsgspecError, UnicodeError, OSError) as error:
        raise MaskwiseError(f"{path}: {error}") from None


def train(settings: Settings, folder: Path) -> list[Path]:
    """Everything, to the ONNX files. Of several processes the first prepares what all read, and exports."""
    process = PartialState(cpu=not torch.cuda.is_available())
    torch.set_num_threads(settings.threads)
    world, seed = settings.world, settings.seed
    with process.main_process_first():
        folder.mkdir(parents=True, exist_ok=True)
        _same_settings(settings, folder / "settings.json")
        lessons = _gather(settings, folder / "lessons")
        exam = set_examination(folder / "val", world.validation, seed, "val")
    set_seed(seed)
    eye, chooser = make_eye(), make_chooser()
    for name, schedule in (("first", settings.first), ("eye", settings.eye)):
        task = _seeing(lessons, settings, exam, schedule, harder=name == "eye")
        eye = fit(name, eye, task, schedule, folder=folder)
    model = Tiny(TorchNetworks(eye, chooser))
    looked = lessons[: settings.views]
    with process.main_process_first():
        views = _track(view_all(model, looked, folder / "views"), "looking at lessons", len(looked))
        exercises = SEEN * [make_exercise(lesson, seen) for seen, lesson in zip(views, looked, strict=True)]
    exercises += [make_exercise(lesson, view_truth(lesson)) for lesson in lessons]
    task = _choosing(exercises, settings, exam.looked_at_by(model))
    fit("choice", chooser, task, settings.choice, folder=folder)
    return export(folder, folder) if process.is_main_process else []


def _same_settings(settings: Settings, path: Path) -> None:
    """A folder belongs to one run: other settings would mix two."""
    new = json.loads(msgspec.json.encode(settings))
    if not path.exists():
        being_written = path.with_suffix(".part")
        being_written.write_text(json.dumps(new, indent=2) + "\n")
        being_written.rename(path)
        return
    old = json.loads(path.read_text())
    changed = [
        f"{key}: {old.get(key)} then, {new.get(key)} now"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
    ]
    if changed:
        raise MaskwiseError(
            f"{path.parent} holds a run with other settings ({'; '.join(changed)}); give another --out"
        )


def _gather(settings: Settings, folder: Path) -> list[Lesson]:
    """All lessons, in memory: about 100 kB each."""
    world = settings.world
    paths = write_files(
        folder,
        "train",
        settings.seed,
        scenes=world.scenes,
        questions=world.questions,
        workers=settings.threads,
    )
    files = -(-world.scenes // SCENES_A_FILE)
    lessons = [lesson for path in _track(paths, "rendering lessons", files) for lesson in read_file(path)]
    for path in settings.datasets:
        dataset = Dataset.open(path)
        lessons += _track(dataset_to_lessons(dataset), f"reading {path}", len(dataset.images.id))
    if not lessons:
        raise MaskwiseError("nothing to learn from: world.scenes is 0 and no dataset has an object")
    return lessons


def _track(steps: Iterable[T], what: str, total: int) -> Iterable[T]:
    """Steps with a progress bar beside the output, which may be read by a program."""
    return track(steps, what, total=total, console=Console(stderr=True))


def _seeing(
    lessons: list[Lesson], settings: Settings, exam: Examination, schedule: Schedule, *, harder: bool
) -> Task:
    def draw(step: int) -> Targets:
        random = np.random.default_rng((settings.seed, step))
        chosen = random.integers(len(lessons), size=schedule.batch)
        return make_targets([lessons[i] for i in chosen], random, harder=harder)

    def validate(eye: nn.Module) -> dict[str, float]:
        assert isinstance(eye, Eye)
        return exam.score_objects(Tiny(TorchNetworks(eye, make_chooser())))

    return Task(
        draw=draw, loss=lambda eye, batch: seeing_loss(eye, batch, len(CATEGORY_NAMES)), validate=validate
    )


def _choosing(exercises: list[Exercise], settings: Settings, looked: Looked) -> Task:
    useful = [exercise for exercise in exercises if exercise.asked and len(exercise.description.single)]
    if not useful:
        raise MaskwiseError(
            "no lesson has both an object and a question: there is nothing to learn a choice from"
        )

    carriers = make_carriers(CARRIERS, settings.seed)

    def draw(step: int) -> Drill:
        random = np.random.default_rng((settings.seed, step))
        return make_drill(useful, carriers, settings.choice.batch, random)

    def validate(chooser: nn.Module) -> dict[str, float]:
        assert isinstance(chooser, Chooser)
        return looked.score_answers(Tiny(TorchNetworks(make_eye(), chooser)))

    return Task(draw=draw, loss=choosing_loss, validate=validate)


class TorchNetworks:
    """The networks as torch runs them; see tiny.Networks."""

    def __init__(self, eye: Eye, chooser: Chooser) -> None:
        self.eye, self.chooser = eye.eval(), chooser.eval()

    @torch.inference_mode()
    def see(self, image: Floats) -> tuple[Floats, ...]:
        """The first step."""
        maps = self.eye.see(self._here(image))
        return tuple(t.cpu().numpy() for t in (maps.fine, maps.coarse, maps.heat.sigmoid(), maps.box))

    @torch.inference_mode()
    def look(self, fine: Floats, coarse: Floats, boxes: Floats) -> tuple[Floats, ...]:
        """The second step."""
        look = self.eye.look(self._here(fine), self._here(coarse), [self._here(boxes)])
        return tuple(tensor.cpu().numpy() for tensor in look)

    @torch.inference_mode()
    def choose(self, words: NDArray[np.int64], description: Description) -> Floats:
        """The choice."""
        device = self.chooser.place.device
        single, pair = (
            torch.from_numpy(array).to(device)[None].expand(len(words), *array.shape) for array in description
        )
        present = torch.ones(single.shape[:2], device=device)
        meant: Floats = self.chooser(torch.from_numpy(words).to(device), single, pair, present).cpu().numpy()
        return meant

    def _here(self, array: Floats) -> Tensor:
        """An array where the eye is."""
        return torch.from_numpy(array).to(next(self.eye.parameters()).device)
