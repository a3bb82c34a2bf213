"""Predictions in memory, as people have them: records, arrays or masks, by position or by sample id."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from maskwise.errors import MaskError, ProtocolError
from maskwise.masks import Mask, as_masks
from maskwise.schema import PredictedRegion, Prediction
from maskwise.store import Dataset


def to_predictions(
    predictions: Any, dataset: Dataset, mask_type: Literal["visible", "amodal"]
) -> Path | list[Prediction]:
    """A path as it is; anything else as records with the ids of the samples.

    predictions: a path; a sequence in the order of the dataset, or a mapping from sample id. Items are a `Prediction`,
    masks (whatever `as_masks` accepts: a `Masks`, an array (n, height, width), supervision detections, one mask), or
    None for no prediction. Records that name their sample may come in any order and number.
    """
    if isinstance(predictions, str | os.PathLike):
        return Path(predictions)
    if isinstance(predictions, Mapping):
        return [
            _to_record(item, name, mask_type)
            for name, item in predictions.items()
            if item is not None
        ]
    if isinstance(predictions, Prediction) or not isinstance(predictions, Iterable):
        raise ProtocolError(
            "expected a path, a list of predictions or a dict from sample id, "
            f"not a value of type {type(predictions).__name__}"
        )
    items = list(predictions)
    if all(isinstance(item, Prediction) and item.sample for item in items):
        return items
    return _in_order(items, dataset, mask_type)


def _in_order(
    items: Sequence[Any], dataset: Dataset, mask_type: Literal["visible", "amodal"]
) -> list[Prediction]:
    if len(items) != len(dataset):
        raise ProtocolError(
            f"{len(items)} predictions for {len(dataset)} samples: give one per sample, in the order of the dataset, "
            "or name the sample of each"
        )
    ids = dataset.samples.id
    return [
        _to_record(item, name, mask_type)
        for item, name in zip(items, ids)
        if item is not None
    ]


def _to_record(
    item: Any, sample: str, mask_type: Literal["visible", "amodal"]
) -> Prediction:
    if isinstance(item, Prediction):
        return item if item.sample else msgspec.structs.replace(item, sample=sample)
    try:
        masks = as_masks(item)
    except MaskError as error:
        raise ProtocolError(
            f"sample {sample!r}: expected a Prediction, masks or None; found a value of type "
            f"{type(item).__name__}: {error}"
        ) from None
    regions = [_to_region(mask, mask_type) for mask in masks]
    return Prediction(sample=sample, regions=tuple(regions), no_target=not regions)


def _to_region(mask: Mask, mask_type: Literal["visible", "amodal"]) -> PredictedRegion:
    return (
        PredictedRegion(visible=mask)
        if mask_type == "visible"
        else PredictedRegion(amodal=mask)
    )
