"""How good a model in training is: the strict protocol on world scenes it has not seen.

exam = set_examination(folder / "val", 40, seed, "val")
exam.score_objects(model)                      # the eye alone: a perfect choice among what it found
exam.looked_at_by(model).score_answers(model)  # both
"""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from maskwise.harness.score import IntervalOptions, score
from maskwise.models.lessons import Lesson, lesson_to_objects, scene_to_lesson
from maskwise.models.sight import match_masks
from maskwise.models.tiny import Place, Sight, Tiny, reply, sight_of
from maskwise.schema import Prediction
from maskwise.store import Dataset, Log
from maskwise.world import QUESTIONS, SIZE, scene, write_scenes

FIGURES = ("giou", "f1", "no_target_accuracy", "occluded_iou", "mask_type_accuracy", "answer_exact")


class Examination:
    """Scenes with their truth: a dataset folder, and the same scenes as lessons."""

    def __init__(self, dataset: Dataset, lessons: list[Lesson]) -> None:
        self.dataset, self.lessons = dataset, lessons

    def score_objects(self, model: Tiny) -> dict[str, float]:
        """Replies with all that was found of what is meant, and nothing else."""
        replies = []
        for lesson, (_, samples), sight in zip(
            self.lessons, self.dataset.groups(), self.looked_at_by(model).sights
        ):
            truth = lesson_to_objects(lesson)
            found = {true: own for own, true in enumerate(match_masks(sight.objects.visible, truth.visible))}
            for question, sample in zip(lesson.questions, samples):
                meant: list[Place] = [(found[i], k) for i, k in question["targets"] if i in found]
                kept = [place for place in meant if place in sight.items]
                replies.append(reply(sight, kept, "amodal" if sample.mask_type == "amodal" else "visible"))
        return self.score(replies)

    def looked_at_by(self, model: Tiny) -> "Looked":
        """Every image as the model sees it."""
        return Looked(self, [sight_of(model.find(lesson.image), (SIZE, SIZE)) for lesson in self.lessons])

    def score(self, replies: Iterable[Prediction]) -> dict[str, float]:
        """Figures of replies to all questions, in order."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "predictions.jsonl"
            with Log(path, Prediction) as log:
                for sample, one in zip(self.dataset.samples.id, replies):
                    log.append(msgspec.structs.replace(one, sample=sample))
            result = score(self.dataset, path, ["strict"], interval_options=IntervalOptions(resamples=2))
        figures = {name: result.scores["strict"].metrics[name].value() for name in FIGURES}
        return {name: value for name, value in figures.items() if value is not None}


class Looked:
    """An examination whose images have been looked at."""

    def __init__(self, exam: Examination, sights: list[Sight]) -> None:
        self.exam, self.sights = exam, sights

    def score_answers(self, model: Tiny) -> dict[str, float]:
        """The model's own answers to all questions."""
        groups = zip(self.sights, self.exam.dataset.groups())
        return self.exam.score(
            one
            for sight, (_, samples) in groups
            for one in model.answer(sight, [sample.question for sample in samples])
        )


def set_examination(folder: Path, scenes: int, seed: int, split: str) -> Examination:
    """Scenes of a split; the dataset is written to folder unless it is there."""
    if not folder.exists():
        write_scenes(folder, scenes, seed, split=split)
    lessons = [scene_to_lesson(scene(seed, i, split, SIZE, questions=QUESTIONS)) for i in range(scenes)]
    return Examination(Dataset.open(folder), lessons)
