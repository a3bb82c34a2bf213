"""The input of every protocol: ground truth and predictions, aligned and checked, with overlaps measured once."""

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

import numpy as np

from maskwise.arrays import BoolArray, Int8Array
from maskwise.errors import ProtocolError
from maskwise.protocols import metrics
from maskwise.protocols.ground_truth import AMODAL, BOTH, VISIBLE, GroundTruth
from maskwise.protocols.mask_geometry import RegionGeometry, measure_masks
from maskwise.protocols.mask_pairs import MaskPairs
from maskwise.protocols.mask_selection import (
    MaskSelection,
    MaskSelector,
    SelectedMasks,
)
from maskwise.protocols.metrics import SampleStatuses
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.prediction_columns import FAILED, MALFORMED, MISSING, UNSTATED, PredictionColumns

MaskChoice = Literal["requested", "predicted", "visible", "amodal"]


class ScoringInput:
    """Aligned, checked columns; overlaps are measured at first use.

    A prediction with a malformed mask, or with a mask of another size than the image, is marked as failed.
    """

    def __init__(
        self,
        ground_truth: GroundTruth,
        predictions: PredictionColumns,
        *,
        threads: int = 1,
        targets: MaskSelector | None = None,
    ) -> None:
        if len(ground_truth) != len(predictions):
            raise ProtocolError(
                f"{len(predictions)} predictions for {len(ground_truth)} samples; align them first"
            )
        self.ground_truth, self.threads = ground_truth, threads
        self.predictions, geometry = _check(ground_truth, predictions, threads)
        self._preds = MaskSelector(self.predictions, geometry, ground_truth.ignore, threads=threads)
        self._targets = targets if targets is not None else measure_targets(ground_truth, threads)
        self.index = MaskPairs(self.predictions.offsets, ground_truth.offsets)
        self._overlaps: dict[MaskChoice, Overlaps] = {}

    def __len__(self) -> int:
        return len(self.ground_truth)

    def overlaps(self, kind: MaskChoice) -> Overlaps:
        """Overlaps of one mask per region; choices that select the same masks share one object.

        `visible`, `amodal`: the masks of that type. `requested`: of the type the question requests (`both` counts as
        visible here); a prediction without it contributes the mask it has. `predicted`: targets as for `requested`;
        predictions contribute the mask of their predicted type, or the visible one where they hold both and state
        none.
        """
        if kind not in self._overlaps:
            pred, target = self._select(kind)
            made = (
                overlaps
                for overlaps in self._overlaps.values()
                if overlaps.pred is pred and overlaps.target is target
            )
            self._overlaps[kind] = next(made, None) or Overlaps(
                self.ground_truth, self.predictions, self.index, pred=pred, target=target
            )
        return self._overlaps[kind]

    @cached_property
    def predicted_type(self) -> Int8Array:
        """Mask type of each prediction, int8 [n]: the stated one, else that of the masks it holds, else UNSTATED."""
        predictions = self.predictions
        visible = np.bincount(predictions.sample[predictions.visible.present], minlength=len(self)) > 0
        amodal = np.bincount(predictions.sample[predictions.amodal.present], minlength=len(self)) > 0
        held = np.select([visible & amodal, visible, amodal], [BOTH, VISIBLE, AMODAL], UNSTATED)
        return np.where(predictions.mask_type == UNSTATED, held, predictions.mask_type).astype(np.int8)

    def _select(self, kind: MaskChoice) -> tuple[SelectedMasks, SelectedMasks]:
        """The masks of predicted regions and of targets."""
        ground_truth, predictions = self.ground_truth, self.predictions
        requested = ground_truth.requested_type == AMODAL
        if kind in ("visible", "amodal"):
            requested = np.full(len(self), kind == "amodal")
            pred = self._preds.of_type(requested[predictions.sample])
        else:
            chosen = self.predicted_type == AMODAL if kind == "predicted" else requested
            visible, amodal = predictions.visible.present, predictions.amodal.present
            take = np.where(chosen[predictions.sample], amodal, ~visible)
            pred = self._preds.select(
                MaskSelection(take, visible | amodal, take == requested[predictions.sample])
            )
        return pred, self._targets.of_type(requested[ground_truth.sample])

    def statuses(self, excluded: Mapping[str, BoolArray] | None = None) -> SampleStatuses:
        """Status and reason of every sample; `excluded` gives reasons to exclude samples, which take precedence."""
        reasons: dict[str, int] = {"": 0}
        reason = np.zeros(len(self), np.int32)
        status = np.full(len(self), metrics.SCORED, np.int8)
        status[self.predictions.state == FAILED] = metrics.FAILED
        status[self.predictions.state == MISSING] = metrics.MISSING
        reason[self.predictions.state == MISSING] = reasons.setdefault("no prediction", len(reasons))
        for sample, text in self.predictions.reasons.items():
            reason[sample] = reasons.setdefault(text, len(reasons))
        for text, rows in (excluded or {}).items():
            if rows.any():
                status[rows] = metrics.EXCLUDED
                reason[rows] = reasons.setdefault(text, len(reasons))
        return SampleStatuses(status, reason, tuple(reasons))


def _check(
    ground_truth: GroundTruth, predictions: PredictionColumns, threads: int
) -> tuple[PredictionColumns, RegionGeometry]:
    """Mark predictions with malformed masks or masks of another size as failed; measure the rest."""
    columns = (predictions.visible, predictions.amodal)
    reasons: dict[int, str] = {}
    for column in columns:
        wrong = column.present & (column.masks.size != ground_truth.image_size[predictions.sample]).any(1)
        reasons.update(dict.fromkeys(predictions.sample[wrong].tolist(), "mask size differs from the image"))
    predictions = predictions.fail(reasons)
    if predictions.measured is not None:
        return predictions, predictions.measured
    found = [
        measure_masks(column, column.present, threads) for column in (predictions.visible, predictions.amodal)
    ]
    bad = np.concatenate([rows for _, rows in found])
    if len(bad):
        return _check(
            ground_truth,
            predictions.fail(dict.fromkeys(predictions.sample[bad].tolist(), MALFORMED)),
            threads,
        )
    return predictions, RegionGeometry(*(part for part, _ in found))


def measure_targets(ground_truth: GroundTruth, threads: int = 1) -> MaskSelector:
    """Measure the targets; needs no predictions. A malformed mask is an error."""
    geometry = []
    for name, column in (("visible", ground_truth.visible), ("amodal", ground_truth.amodal)):
        found, bad = measure_masks(column, column.present, threads)
        if len(bad):
            raise ProtocolError(
                f"sample {ground_truth.ids[ground_truth.sample[bad[0]]]!r}: the {name} mask of a target is malformed; "
                "check the dataset with `maskwise validate`"
            )
        geometry.append(found)
    selector = MaskSelector(ground_truth, RegionGeometry(*geometry), ground_truth.ignore, threads=threads)
    _ = (
        selector.of_type((ground_truth.requested_type == AMODAL)[ground_truth.sample]).disjoint,
        dict(ground_truth.tags),
    )
    return selector
