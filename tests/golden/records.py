"""From the cases of the golden files to what protocols score, and the comparison of what comes out."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from maskwise.masks import Mask, Masks
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.logits import threshold_logits
from maskwise.protocols.prediction_columns import PredictionColumns
from maskwise.protocols.scoring_input import ScoringInput
from maskwise.schema import PredictedRegion, Prediction, Region, Sample

EXACT = 1e-9
OFFICIAL = 3e-7
REPEATED = 2e-5


def rle(value: Mapping[str, Any]) -> Mask:
    height, width = value["size"]
    return Mask((height, width), value["counts"])


def threshold(
    prediction: Mapping[str, Any], *, zero_inside: bool = False
) -> tuple[Mask, list[int]]:
    """The mask of a prediction of the golden files, and its counts of logits."""
    if "logits" in prediction:
        overlaps = np.array(prediction["logits"], np.float64)
    else:
        inside = rle(prediction["rle"]).to_dense()
        overlaps = np.where(
            inside, prediction.get("fg", 1.0), prediction.get("bg", -1.0)
        )
    masks, counts = threshold_logits(overlaps[None], zero_inside=zero_inside)
    return masks[0], counts[0].tolist()


def add_up(
    parts: Sequence[Mapping[str, Any]], size: tuple[int, int]
) -> tuple[Mask, Mask | None]:
    """The union of a target's parts, and where they overlap."""
    masks = [rle(part) for part in parts]
    if len(masks) < 2:
        return (masks[0] if masks else Mask.empty(*size)), None
    batch = Masks.from_masks(masks)
    union = batch.merge([0, len(masks)])
    pairs = [
        masks[a] & masks[b] for a, b in itertools.combinations(range(len(masks)), 2)
    ]
    return union[0], Masks.from_masks(pairs).merge([0, len(pairs)])[0]


def question(
    name: str,
    image: str,
    targets: Sequence[tuple[Mask, Mask | None]],
    ignore: Mask | None = None,
) -> Sample:
    regions = tuple(
        Region(id=f"{name}-{item}", name="thing", visible=mask, overlap=overlap)
        for item, (mask, overlap) in enumerate(targets)
    )
    return Sample(id=name, image_id=image, question="?", targets=regions, ignore=ignore)


def prediction_of(
    name: str, masks: Sequence[Mask], *, no_target: bool = False
) -> Prediction:
    regions = tuple(PredictedRegion(visible=mask) for mask in masks)
    return Prediction(sample=name, regions=regions, no_target=no_target)


def evaluate(
    samples: Sequence[Sample],
    predictions: Sequence[Prediction],
    frames: Sequence[tuple[int, int]],
    logits: Sequence[Sequence[int]] | None = None,
) -> ScoringInput:
    ground_truth = GroundTruth.from_samples(samples, frames)
    columns = PredictionColumns.from_predictions(ground_truth, predictions)
    if logits is not None:
        columns = replace(columns, logits=np.array(logits, np.int64).reshape(-1, 3))
    return ScoringInput(ground_truth, columns)


def questions_evaluation(
    images: Sequence[Mapping[str, Any]], repeat: int = 1
) -> ScoringInput:
    """The evaluation of MMR and MUSE cases: images with questions, each with targets made of parts, and preds."""
    ready = []
    for image in images:
        size = (image["height"], image["width"])
        for asked in image["questions"]:
            thresholded = [threshold(prediction) for prediction in asked["preds"]]
            ready.append(
                (
                    size,
                    [add_up(target["parts"], size) for target in asked["targets"]],
                    thresholded,
                )
            )
    owners = [item for item, image in enumerate(images) for _ in image["questions"]]
    samples = []
    predictions = []
    frames = []
    logits = []
    for turn in range(repeat):
        for number, (owner, (size, targets, thresholded)) in enumerate(
            zip(owners, ready)
        ):
            name = f"{turn}-{number}"
            samples.append(question(name, f"{turn}-{owner}", targets))
            predictions.append(prediction_of(name, [mask for mask, _ in thresholded]))
            frames.append(size)
            logits.extend(counts for _, counts in thresholded)
    return evaluate(samples, predictions, frames, logits)
