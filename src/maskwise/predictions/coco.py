"""COCO results: a JSON list of `{"image_id", "segmentation", "score"}`, as detectors write them.

`image_id` is a sample's id, or the id of an image with exactly one question. `category_id` and `bbox` are ignored.
Segmentations are run-length encodings (compressed or not) or polygons at the image's size. The masks of a sample are
sorted by descending score. `{"image_id": ..., "no_target": true}` without a segmentation states that there is no
target. The format cannot express a missing prediction: a sample without results has a prediction without masks, which
states nothing.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import Int64Array
from maskwise.errors import MaskError, StoreError
from maskwise.masks import Masks
from maskwise.predictions.loaded import LoadedPredictions, masks_to_columns
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.runs.schema import ReadOptions


class _Result(msgspec.Struct, gc=False):
    image_id: int | str
    segmentation: dict[str, Any] | list[list[float]] | None = None
    score: float = 1.0
    no_target: bool = False


def read_coco(
    path: Path, truth: GroundTruth, options: ReadOptions
) -> LoadedPredictions:
    """The predictions of a COCO results file, in the order of the dataset."""
    try:
        results = msgspec.json.decode(path.read_bytes(), type=list[_Result])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(
            f"{path} is not a list of COCO results with segmentations: {error}"
        ) from None
    kept = [result for result in results if result.score >= options.min_score]
    owner, unknown = _find_samples(kept, truth, path)
    known = np.flatnonzero(owner < len(truth))
    matched = len(known)
    no_target = _find_no_target(kept, owner, len(truth), path)
    known = np.array(
        [item for item in known.tolist() if not kept[item].no_target], np.int64
    )
    score = np.array([kept[item].score for item in known], np.float64)
    if ((score < 0) | (score > 1)).any():
        raise StoreError(
            f"{path}: score {score[(score < 0) | (score > 1)][0]} is not within 0 and 1"
        )
    order = known[np.lexsort((-score, owner[known]))]
    masks = _draw([kept[item] for item in order], truth.image_size[owner[order]], path)
    columns = masks_to_columns(
        truth,
        owner[order],
        masks,
        answered=np.ones(len(truth), bool),
        options=options,
        no_target=no_target,
        score=np.array([kept[item].score for item in order], np.float64),
    )
    return LoadedPredictions(columns, len(kept), matched, unknown)


def _find_no_target(
    results: list[_Result], owner: Int64Array, samples: int, path: Path
) -> NDArray[np.bool_]:
    """Which samples have a result that states that there is no target, bool [samples]. owner: sample of each result."""
    no_target = np.zeros(samples + 1, bool)
    has_masks = np.zeros(samples + 1, bool)
    for result, sample in zip(results, owner.tolist()):
        if (result.segmentation is None) != result.no_target:
            raise StoreError(
                f"{path}: the result for image_id {result.image_id!r} needs either a segmentation or no_target: true"
            )
        no_target[sample] |= result.no_target
        has_masks[sample] |= not result.no_target
    for sample in np.flatnonzero(no_target[:-1] & has_masks[:-1]).tolist():
        first = next(
            result.image_id for result, own in zip(results, owner) if own == sample
        )
        raise StoreError(
            f"{path}: image_id {first!r} has masks and no_target: true; keep one of them"
        )
    return no_target[:-1]


def _find_samples(
    results: list[_Result], truth: GroundTruth, path: Path
) -> tuple[Int64Array, str | None]:
    """The sample of each result, len(truth) where there is none, and the first unknown id."""
    row = {sample: item for item, sample in enumerate(truth.ids)}
    asked = Counter(truth.image.tolist())
    by_image = {
        truth.image_ids[image]: item for item, image in enumerate(truth.image.tolist())
    }
    owner = np.full(len(results), len(truth), np.int64)
    unknown = None
    for item, result in enumerate(results):
        name = str(result.image_id)
        if name in row:
            owner[item] = row[name]
        elif name not in by_image:
            unknown = unknown or name
        elif asked[int(truth.image[by_image[name]])] > 1:
            raise StoreError(
                f"{path}: image_id {name!r} is an image with several questions; use the sample's id as image_id"
            )
        else:
            owner[item] = by_image[name]
    return owner, unknown


def _draw(results: list[_Result], frames: NDArray[np.int32], path: Path) -> Masks:
    """The masks of results, in order."""
    batches = []
    for result, frame in zip(results, frames):
        shape = result.segmentation
        assert shape is not None
        try:
            mask = (
                Masks.from_rles([shape])
                if isinstance(shape, dict)
                else Masks.from_polygons([shape], [frame])
            )
            batches.append(mask)
        except (MaskError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise StoreError(
                f"{path}: segmentation for image_id {result.image_id!r}: {error}"
            ) from None
    return Masks.concat(batches)
