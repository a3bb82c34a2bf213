"""Tiny images written as text, and questions and predictions about them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from maskwise.masks import Mask
from maskwise.protocols import GroundTruth, PredictionColumns, ScoringInput
from maskwise.schema import (
    Answer,
    MaskType,
    Phrase,
    PredictedRegion,
    Prediction,
    Region,
    Sample,
)

FRAME = (1, 10)


def mask(text: str) -> Mask:
    """A mask from rows separated by slashes: `#` is inside. `mask("##../....")` has two rows."""
    return Mask.from_dense(
        np.array([[character == "#" for character in row] for row in text.split("/")])
    )


def strip(start: int, stop: int, length: int = 10) -> Mask:
    """A row of pixels of which [start, stop) are inside."""
    return mask("." * start + "#" * (stop - start) + "." * (length - stop))


def target(
    visible: Mask | None = None,
    amodal: Mask | None = None,
    *,
    name: str = "thing",
    **fields: Any,
) -> Region:
    counter = target.__dict__.setdefault("made", [0])
    counter[0] += 1
    return Region(
        id=f"r{counter[0]}", name=name, visible=visible, amodal=amodal, **fields
    )


def question(
    name: str,
    *targets: Region,
    image: str = "p",
    mask_type: MaskType = "visible",
    ignore: Mask | None = None,
    phrases: Sequence[Sequence[int]] | None = None,
    tags: dict[str, str] | None = None,
) -> Sample:
    return Sample(
        id=name,
        image_id=image,
        question="?",
        mask_type=mask_type,
        targets=targets,
        ignore=ignore,
        answer=answer_with_phrases(phrases),
        tags=tags or {},
    )


def answer_with_phrases(phrases: Sequence[Sequence[int]] | None) -> Answer | None:
    """An answer of one-letter words, one a phrase."""
    if phrases is None:
        return None
    spoken = tuple(
        Phrase(start=2 * k, stop=2 * k + 1, regions=tuple(members))
        for k, members in enumerate(phrases)
    )
    return Answer(text="x " * max(1, len(phrases)), phrases=spoken)


def region(
    visible: Mask | None = None, amodal: Mask | None = None, **fields: Any
) -> PredictedRegion:
    return PredictedRegion(visible=visible, amodal=amodal, **fields)


def prediction(name: str, *regions: PredictedRegion, **fields: Any) -> Prediction:
    return Prediction(sample=name, regions=regions, **fields)


def scoring_input(
    samples: Sequence[Sample],
    predictions: Sequence[Prediction],
    frame: tuple[int, int] = FRAME,
    threads: int = 1,
) -> ScoringInput:
    ground_truth = GroundTruth.from_samples(samples, [frame] * len(samples))
    return ScoringInput(
        ground_truth,
        PredictionColumns.from_predictions(ground_truth, predictions),
        threads=threads,
    )


def answer_naming(names: Sequence[str]) -> Answer:
    """An answer that names the targets in order."""
    text = ""
    phrases = []
    for k, name in enumerate(names):
        phrases.append(
            Phrase(start=len(text), stop=len(text) + len(name), regions=(k,))
        )
        text += name + " "
    return Answer(text=text or "nothing", phrases=tuple(phrases))
