"""The score of one prediction as a reward, for reinforcement learning.

score = reward("strict")
score(prediction, sample)                   # a float from 0 to 1
score.batch(predictions, samples)           # a list of them, faster
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from maskwise.errors import MaskError, ProtocolError, RecordError
from maskwise.predictions.conversion import to_prediction
from maskwise.protocols import (
    GroundTruth,
    PredictionColumns,
    Protocol,
    ScoringInput,
    find_protocol,
)
from maskwise.protocols.metrics import EXCLUDED, SCORED
from maskwise.protocols.scoring_input import NO_TARGET_MASK
from maskwise.schema import Prediction, Sample

ANY_SIZE = (1, 1)
"""Size of the image of a sample without any mask, where no prediction has one either: no pixel is compared."""


class Reward:
    """The gIoU of a sample under a protocol as a function of prediction and sample; the same for every call.

    Each sample is scored for itself, also under protocols that match regions across the questions of an image. A
    prediction that failed, or that cannot be read, gets 0. Where the protocol leaves a question out (`mmr`: those
    without a target or without a mask), a prediction without a pixel gets 1 if there is no target, and any other gets
    0: a model that is rewarded only where there is a target would never learn to say that there is none.
    """

    def __init__(
        self,
        protocol: Protocol,
        options: dict[str, Any],
        mask_type: Literal["visible", "amodal"],
    ) -> None:
        self.protocol = protocol
        self.options = options
        self.mask_type = mask_type
        self.__name__ = f"{protocol.name}_reward"  # trainers log rewards by this name

    def __repr__(self) -> str:
        return f"Reward({self.protocol.name!r})"

    def __call__(self, prediction: Any, sample: Sample) -> float:
        """The reward of one prediction, in any form that `predict` may return."""
        return self.batch([prediction], [sample])[0]

    def batch(
        self, predictions: Sequence[Any], samples: Sequence[Sample]
    ) -> list[float]:
        """One reward per prediction and sample, in order. A sample may occur several times."""
        if len(predictions) != len(samples):
            raise ProtocolError(
                f"{len(predictions)} predictions for {len(samples)} samples; expected one per sample"
            )
        if not samples:
            return []
        truths = []
        records = []
        sizes = []
        for number, (item, sample) in enumerate(zip(predictions, samples)):
            record = self._to_record(item, _sample_size(sample))
            size = _sample_size(sample) or _prediction_size(record) or ANY_SIZE
            # Ids of their own: the same sample may occur again, and images must not be scored together.
            id = str(number)
            truths.append(msgspec.structs.replace(sample, id=id, image_id=id))
            records.append(msgspec.structs.replace(record, sample=id))
            sizes.append(size)
        truth = GroundTruth.from_samples(truths, sizes)
        columns = PredictionColumns.from_predictions(truth, records)
        inputs = ScoringInput(truth, columns)
        scores = self.protocol.score(inputs, **self.options)
        statuses = scores.statuses
        rewards: list[float]
        rewards = np.where(statuses.status == SCORED, scores.value, 0.0).tolist()
        for row in np.flatnonzero(statuses.status == EXCLUDED).tolist():
            reason = statuses.reasons[statuses.reason[row]]
            if reason == NO_TARGET_MASK:
                raise ProtocolError(
                    f"sample {samples[row].id!r} cannot be scored under {self.protocol.name}: {reason}"
                )
            is_right = not samples[row].targets and _is_empty(records[row])
            rewards[row] = float(is_right)
        return rewards

    def _to_record(self, item: Any, size: tuple[int, int] | None) -> Prediction:
        try:
            return to_prediction(item, size=size, mask_type=self.mask_type)
        except (MaskError, RecordError) as error:
            return Prediction(error=str(error))


def reward(
    protocol: str | Protocol = "strict",
    *,
    mask_type: Literal["visible", "amodal"] = "visible",
    **options: Any,
) -> Reward:
    """A reward function: the score of one prediction under a protocol, from 0 to 1.

    protocol: as for `evaluate`. mask_type: of masks that do not say. options: of the protocol.

    Example: score = reward("strict"); score(prediction, sample)
    """
    return Reward(find_protocol(protocol), options, mask_type)


def _sample_size(sample: Sample) -> tuple[int, int] | None:
    """Height and width of the image, if a mask of the sample tells."""
    if sample.targets:
        return sample.targets[0].size
    return None if sample.ignore is None else sample.ignore.size


def _prediction_size(prediction: Prediction) -> tuple[int, int] | None:
    return prediction.regions[0].size if prediction.regions else None


def _is_empty(prediction: Prediction) -> bool:
    """Whether a prediction, and not a failure, has no pixel."""
    if prediction.error is not None:
        return False
    areas = [
        mask.area
        for region in prediction.regions
        for mask in (region.visible, region.amodal)
        if mask is not None
    ]
    return not any(areas)
