"""Rewards of written answers, for reinforcement learning: each from 0 to 1, of a prediction and its sample.

The rewards of Seg-Zero and VisionReasoner give nothing for a right "there is none", so it is never learned. Here every
question has a reward that a right answer gets in full, with a target or without.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from maskwise.harness.reward import reward
from maskwise.schema import Prediction, Sample

Rewards = Callable[[Sequence[Prediction], Sequence[Sample]], list[float | None]]
"""One reward per prediction and sample; None where a reward says nothing about a question."""


def strict(
    predictions: Sequence[Prediction], samples: Sequence[Sample]
) -> list[float | None]:
    """The gIoU of each question under the strict protocol."""
    return list(reward("strict").batch(predictions, samples))


def target_count(
    predictions: Sequence[Prediction], samples: Sequence[Sample]
) -> list[float | None]:
    """The smaller of the numbers of regions and targets divided by the larger; 1 if there are none of both."""
    rewards: list[float | None] = []
    for prediction, sample in zip(predictions, samples):
        counts = (len(prediction.regions), len(sample.targets))
        most = max(counts)
        rewards.append(min(counts) / most if most else 1.0)
    return rewards


def no_target(
    predictions: Sequence[Prediction], samples: Sequence[Sample]
) -> list[float | None]:
    """1 if the answer has a region where there is a target, and none where there is none."""
    return [
        float(bool(prediction.regions) == bool(sample.targets))
        for prediction, sample in zip(predictions, samples)
    ]


def mask_type(
    predictions: Sequence[Prediction], samples: Sequence[Sample]
) -> list[float | None]:
    """1 if the answer has masks of the type that is asked for; None for a question without a target."""
    rewards: list[float | None] = []
    for prediction, sample in zip(predictions, samples):
        right = float(prediction.mask_type == sample.mask_type)
        rewards.append(right if sample.targets else None)
    return rewards


def answer(
    predictions: Sequence[Prediction], samples: Sequence[Sample]
) -> list[float | None]:
    """The F1 of the words of the answer against those of the true one; None where there is no true answer."""
    rewards: list[float | None] = []
    for prediction, sample in zip(predictions, samples):
        if sample.answer is None:
            rewards.append(None)
            continue
        written = _words("" if prediction.answer is None else prediction.answer.text)
        true = _words(sample.answer.text)
        shared = (written & true).total()
        total = written.total() + true.total()
        rewards.append(2 * shared / total if total else 1.0)
    return rewards


def answer_format(
    predictions: Sequence[Prediction], samples: Sequence[Sample]
) -> list[float | None]:
    """1 if the answer has words and every region a name: a phrase of the answer before its token."""
    rewards: list[float | None] = []
    for prediction in predictions:
        has_words = prediction.answer is not None and bool(
            _words(prediction.answer.text)
        )
        named = all(region.name for region in prediction.regions)
        rewards.append(float(has_words and named and prediction.error is None))
    return rewards


REWARDS: dict[str, Rewards] = {
    "strict": strict,
    "format": answer_format,
    "target_count": target_count,
    "mask_type": mask_type,
    "no_target": no_target,
    "answer": answer,
}
"""By the names that a config gives weights to."""


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))
