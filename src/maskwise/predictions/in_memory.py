"""Predictions in memory, as people have them: records, arrays or masks, by position or by sample id."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from maskwise.errors import MaskError, ProtocolError, RecordError
from maskwise.predictions.conversion import to_prediction
from maskwise.schema import Prediction
from maskwise.store import Dataset


def to_predictions(
    predictions: Any,
    dataset: Dataset,
    mask_type: Literal["visible", "amodal"],
    *,
    teacher_forced: bool = False,
) -> Path | list[Prediction]:
    """A path as it is; anything else as records with the ids of the samples.

    predictions: a path; a sequence in the order of the dataset, or a mapping from sample id. Items are what
    `maskwise.predictions.conversion` accepts (a `Prediction`, masks, detections, a dict), or None for no prediction.
    Records that name their sample may come in any order and number. mask_type, teacher_forced: of masks; records say
    it themselves.
    """
    if isinstance(predictions, str | os.PathLike):
        return Path(predictions)
    pairs: Iterable[tuple[str, Any]]
    if isinstance(predictions, Mapping):
        pairs = predictions.items()
    elif isinstance(predictions, Prediction) or not isinstance(predictions, Iterable):
        raise ProtocolError(
            "expected a path, a list of predictions or a dict from sample id, "
            f"not a value of type {type(predictions).__name__}"
        )
    else:
        items = list(predictions)
        if all(isinstance(item, Prediction) and item.sample for item in items):
            return items
        pairs = _pair_in_order(items, dataset)
    return [
        _to_record(item, sample, mask_type, teacher_forced=teacher_forced)
        for sample, item in pairs
        if item is not None
    ]


def _pair_in_order(items: Sequence[Any], dataset: Dataset) -> list[tuple[str, Any]]:
    """Each item with the id of the sample at its position."""
    if len(items) != len(dataset):
        raise ProtocolError(
            f"{len(items)} predictions for {len(dataset)} samples: give one per sample, in the order of the dataset, "
            "or name the sample of each"
        )
    return list(zip(dataset.samples.id, items))


def _to_record(
    item: Any,
    sample: str,
    mask_type: Literal["visible", "amodal"],
    *,
    teacher_forced: bool,
) -> Prediction:
    try:
        prediction = to_prediction(item, mask_type=mask_type)
    except (MaskError, RecordError) as error:
        raise ProtocolError(
            f"sample {sample!r}: expected a Prediction, masks or None; found a value of type "
            f"{type(item).__name__}: {error}"
        ) from None
    if isinstance(item, Prediction):
        return item if item.sample else msgspec.structs.replace(item, sample=sample)
    return msgspec.structs.replace(prediction, sample=sample, forced=teacher_forced)
