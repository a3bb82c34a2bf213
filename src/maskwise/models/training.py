"""The whole run that makes the small model, from nothing to ONNX files; repeat it to go on where it stopped.

    lessons/            world scenes as arrays, a file at a time
    val/                a dataset of validation scenes
    first.safetensors   perception, taught on every object and part of every scene
    eye.safetensors     perception, taught further on harder pictures (crowding.py)
    views/              the lessons as that eye sees them, a file at a time
    words.safetensors   the choice, taught on questions about these views
    choice.safetensors  the choice, taught further with more unknown words among the known
    *.jsonl, events/    the curves
    *.onnx              the networks as they run

A stage whose file is there is not repeated; within a stage training goes on from its last checkpoint.
"""

import json
from pathlib import Path

import msgspec
import numpy as np
import torch
from accelerate.utils import set_seed
from numpy.typing import NDArray
from rich.progress import track
from torch import nn

from maskwise.errors import MaskwiseError
from maskwise.models.choice import Chooser
from maskwise.models.choosing import Drill, choosing_loss, make_drill
from maskwise.models.descriptions import Description, Floats
from maskwise.models.examination import Examination, Looked, set_examination
from maskwise.models.exercises import Exercise, make_exercise, view_all, view_truth
from maskwise.models.export import export, make_chooser, make_eye
from maskwise.models.fitting import Schedule, Task, fit
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

BABBLE = {"words": 0.2, "choice": 0.5}
"""How often nonsense is put among the words of a question, so that unknown words are learnt to be passed over."""

SEEN = 4
"""A lesson that was looked at is asked about this often as the eye saw it for each time as it is."""


class WorldSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scenes of the training split with the questions asked of each, and scenes to validate on."""

    scenes: int
    questions: int
    validation: int = 40


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A training run. `first`, `eye`: perception, on scenes as they are, then on harder ones. `words`, `choice`: the
    choice, then with more unknown words. `datasets`: dataset folders mixed in with the world's scenes, picture by
    picture. `views`: of how many lessons the choice learns what the eye sees; of all it learns what there is.
    """

    seed: int
    world: WorldSource
    first: Schedule
    eye: Schedule
    words: Schedule
    choice: Schedule
    views: int
    datasets: tuple[str, ...] = ()
    threads: int = 2


def read_settings(path: Path) -> Settings:
    """From TOML; a wrong or missing field is an error that names it."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Settings)
    except (msgspec.MsgspecError, OSError) as error:
        raise MaskwiseError(f"{path}: {error}") from None


def train(settings: Settings, folder: Path) -> list[Path]:
    """Everything, to the ONNX files."""
    folder.mkdir(parents=True, exist_ok=True)
    _same_settings(settings, folder / "settings.json")
    torch.set_num_threads(settings.threads)
    lessons = _gather(settings, folder / "lessons")
    world, seed = settings.world, settings.seed
    exam = set_examination(folder / "val", world.validation, seed, "val")
    set_seed(seed)
    eye = make_eye()
    for name, schedule in (("first", settings.first), ("eye", settings.eye)):
        eye = fit(
            name,
            eye,
            _seeing(lessons, settings, exam, schedule, harder=name == "eye"),
            schedule,
            folder=folder,
        )
    chooser = make_chooser()
    model = Tiny(TorchNetworks(eye, chooser))
    looked = lessons[: settings.views]
    views = track(view_all(model, looked, folder / "views"), "looking at lessons", total=len(looked))
    exercises = SEEN * [make_exercise(lesson, seen) for lesson, seen in zip(looked, views)]
    exercises += [make_exercise(lesson, view_truth(lesson)) for lesson in lessons]
    looked_at = exam.looked_at_by(model)
    for name, schedule in (("words", settings.words), ("choice", settings.choice)):
        task = _choosing(exercises, settings.seed, schedule, looked_at, babble=BABBLE[name])
        chooser = fit(name, chooser, task, schedule, folder=folder)
    return export(folder, folder)


def _same_settings(settings: Settings, path: Path) -> None:
    """A folder belongs to one run: other settings would mix two."""
    new = json.loads(msgspec.json.encode(settings))
    if path.exists():
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
    path.write_text(json.dumps(new, indent=2) + "\n")


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
    lessons = [
        lesson for path in track(paths, "rendering lessons", total=files) for lesson in read_file(path)
    ]
    for path in settings.datasets:
        dataset = Dataset.open(path)
        lessons += track(dataset_to_lessons(dataset), f"reading {path}", total=len(dataset.pictures.id))
    return lessons


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


def _choosing(
    exercises: list[Exercise], seed: int, schedule: Schedule, looked: Looked, *, babble: float
) -> Task:
    useful = [exercise for exercise in exercises if exercise.asked and len(exercise.description.single)]
    if not useful:
        raise MaskwiseError(
            "no lesson has both an object and a question: there is nothing to learn a choice from"
        )

    def draw(step: int) -> Drill:
        return make_drill(useful, schedule.batch, np.random.default_rng((seed, step)), babble=babble)

    def validate(chooser: nn.Module) -> dict[str, float]:
        assert isinstance(chooser, Chooser)
        return looked.score_answers(Tiny(TorchNetworks(make_eye(), chooser)))

    return Task(draw=draw, loss=choosing_loss, validate=validate)


class TorchNetworks:
    """The networks as torch runs them; see tiny.Networks."""

    def __init__(self, eye: Eye, chooser: Chooser) -> None:
        self.eye, self.chooser = eye.eval(), chooser.eval()

    @torch.inference_mode()
    def see(self, picture: Floats) -> tuple[Floats, ...]:
        """The first step."""
        maps = self.eye.see(torch.from_numpy(picture))
        return tuple(t.numpy() for t in (maps.fine, maps.coarse, maps.heat.sigmoid(), maps.box))

    @torch.inference_mode()
    def look(self, fine: Floats, coarse: Floats, boxes: Floats) -> tuple[Floats, ...]:
        """The second step."""
        look = self.eye.look(*map(torch.from_numpy, (fine, coarse)), [torch.from_numpy(boxes)])
        return tuple(tensor.numpy() for tensor in look)

    @torch.inference_mode()
    def choose(self, words: NDArray[np.int64], description: Description) -> Floats:
        """The choice."""
        single, pair = (
            torch.from_numpy(array)[None].expand(len(words), *array.shape) for array in description
        )
        meant: Floats = self.chooser(
            torch.from_numpy(words), single, pair, torch.ones(single.shape[:2])
        ).numpy()
        return meant
