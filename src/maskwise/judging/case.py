"""What a judge is given: a question with its truth, and what a model answered."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow.compute as pc

from maskwise.language.answers import NOTHING
from maskwise.language.naming import noun_of
from maskwise.protocols.overlaps import HIT
from maskwise.report.run_data import RunData
from maskwise.schema import PredictedRegion, Prediction, Region, Sample


@dataclass(frozen=True)
class AnswerCase:
    """A question, its truth, and a prediction (None: missing).

    others: regions of the image that are no targets. vocabulary: the nouns by which the dataset calls its regions.
    """

    sample: Sample
    prediction: Prediction | None
    others: tuple[Region, ...] = ()
    vocabulary: frozenset[str] = frozenset()

    @property
    def answer(self) -> str | None:
        """The answer in words; None if there is none. "No target" without words counts as saying so."""
        prediction = self.prediction
        if prediction is None or prediction.error is not None:
            return None
        text = prediction.answer.text.strip() if prediction.answer else ""
        return text or (NOTHING if prediction.no_target else None)

    @property
    def why_no_answer(self) -> str:
        """Why there is no answer in words."""
        if self.prediction is None:
            return "there is no prediction"
        if self.prediction.error is not None:
            return f"the prediction failed: {self.prediction.error}"
        return "the prediction has no answer in words"

    @property
    def true_answer(self) -> str | None:
        """The dataset's answer in words, if it has one."""
        return self.sample.answer.text if self.sample.answer else None

    @property
    def has_truth(self) -> bool:
        """Whether there are words to compare with: an answer, a name for every target, or no target at all."""
        return self.true_answer is not None or all(
            target.name.strip() for target in self.sample.targets
        )

    @cached_property
    def overlaps(self) -> dict[int, list[str]]:
        """The ids of the image's regions that each predicted region finds (IoU 0.5 or more, either mask type)."""
        regions = [] if self.prediction is None else self.prediction.regions
        return {
            number: [
                region.id
                for region in (*self.sample.targets, *self.others)
                if best_iou(predicted, region) >= HIT
            ]
            for number, predicted in enumerate(regions)
        }


def best_iou(predicted: PredictedRegion, region: Region) -> float:
    """The larger IoU of the two mask types; 0 where no type is known of both or the sizes differ."""
    if predicted.size != region.size:
        return 0.0
    pairs = [
        (predicted.visible, region.visible),
        (predicted.amodal, region.amodal),
    ]
    return max(
        (a.iou(b) for a, b in pairs if a is not None and b is not None), default=0.0
    )


def read_cases(data: RunData) -> Iterator[AnswerCase]:
    """The cases of a run, in the order of its samples."""
    names = pc.unique(data.dataset.regions.table["name"]).to_pylist()
    vocabulary = frozenset(noun_of(name) for name in names if name)
    image = ""
    regions: tuple[Region, ...] = ()
    for row, sample in enumerate(data.dataset):
        if sample.image_id != image:
            # Questions about one image follow each other.
            image = sample.image_id
            regions = data.dataset.regions_of(image)
        targets = {target.id for target in sample.targets}
        others = tuple(region for region in regions if region.id not in targets)
        yield AnswerCase(sample, data.prediction(row), others, vocabulary)
