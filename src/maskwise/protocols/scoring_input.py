"""The input of every protocol: ground truth and predictions, aligned and checked, with overlaps measured once."""

from collections.abc import Mapping
from dataclasses import replace
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
from maskwise.protocols.prediction_columns import (
    FAILED,
    MALFORMED,
    MISSING,
    UNSTATED,
    PredictionColumns,
)
from maskwise.store import MaskColumn

MAX_PAIRS = 4_000_000
"""Predicted regions times targets of one sample; a prediction with more fails, and only that one."""

NO_TARGET_MASK = "a target has no mask of the requested type"
NO_TARGET = "no target: the protocol has no term for it"
"""Reasons to exclude a sample."""

OfficialMaskType = Literal["predicted", "requested"]
"""Which mask official protocols take from a prediction that holds both types; see `ScoringInput.overlaps`."""

MaskChoice = Literal["requested", "predicted", "visible", "amodal"]

WRONG_SIZE = "mask size differs from the image"
"""Reason of a failed prediction with a mask of another size than its image."""


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
        self.ground_truth = ground_truth
        self.threads = threads
        if targets is None:
            targets = measure_targets(ground_truth, threads, ahead=False)
        self._targets = targets
        self.predictions, geometry = _check(ground_truth, predictions, threads)
        self._preds = MaskSelector(
            self.predictions, geometry, ground_truth.ignore, threads=threads
        )
        self.pairs = MaskPairs.overlapping(
            self.predictions.offsets,
            ground_truth.offsets,
            pred_box=geometry.box,
            target_box=self._targets.geometry.box,
        )
        self.given = predictions
        """The predictions before the check, with masks of another size."""
        self._overlaps: dict[MaskChoice, Overlaps] = {}
        self._made: list[Overlaps] = []

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
            self._overlaps[kind] = self._share(*self._select(kind))
        return self._overlaps[kind]

    @cached_property
    def without_ignore(self) -> "ScoringInput":
        """The same questions and predictions, where no pixel is ignored."""
        truth = self.ground_truth
        if not truth.ignore.present.any():
            return self
        nothing = MaskColumn(truth.ignore.masks, np.zeros(len(truth), bool))
        return ScoringInput(
            replace(truth, ignore=nothing), self.predictions, threads=self.threads
        )

    @cached_property
    def first_masks(self) -> "ScoringInput":
        """The same questions, of each prediction only the first region."""
        if (self.predictions.counts <= 1).all():
            return self
        return ScoringInput(
            self.ground_truth,
            self.predictions.first_regions(),
            threads=self.threads,
            targets=self._targets,
        )

    @cached_property
    def wrong_size(self) -> BoolArray:
        """Whether a prediction failed because of a mask of another size, bool [n]."""
        wrong = np.zeros(len(self), bool)
        samples = [
            sample
            for sample, reason in self.predictions.reasons.items()
            if reason == WRONG_SIZE
        ]
        wrong[samples] = True
        return wrong

    def overlaps_with_pixels(self, amodal: BoolArray) -> Overlaps:
        """As `requested`, with a requested type per sample for the predictions, and empty masks counting as absent.

        amodal: bool [samples].
        """
        visible_pixels, amodal_pixels = self.nonempty
        wants = amodal[self.predictions.sample]
        take = amodal_pixels & (wants | ~visible_pixels)
        known = visible_pixels | amodal_pixels
        selection = MaskSelection(take, known, known & (take == wants))
        requested = (self.ground_truth.requested_type == AMODAL)[
            self.ground_truth.sample
        ]
        return self._share(
            self._preds.select(selection), self._targets.of_type(requested)
        )

    def _share(self, pred: SelectedMasks, target: SelectedMasks) -> Overlaps:
        """The overlaps of these masks, made once."""
        same = None
        for made in self._made:
            if made.target is target and made.pred is pred:
                return made
            if made.target is target and np.array_equal(
                made.pred.selection.amodal, pred.selection.amodal
            ):
                same = made
        self._made.append(
            Overlaps(
                self.ground_truth,
                self.predictions,
                self.pairs,
                pred=pred,
                target=target,
                same=same,
            )
        )
        return self._made[-1]

    @cached_property
    def predicted_type(self) -> Int8Array:
        """Mask type of each prediction, int8 [n]: the stated one, else that of the non-empty masks it holds, else
        UNSTATED.
        """
        predictions = self.predictions
        count = len(self)
        visible, amodal = self.nonempty
        holds_visible = np.bincount(predictions.sample[visible], minlength=count) > 0
        holds_amodal = np.bincount(predictions.sample[amodal], minlength=count) > 0
        held = np.select(
            [holds_visible & holds_amodal, holds_visible, holds_amodal],
            [BOTH, VISIBLE, AMODAL],
            UNSTATED,
        )
        return np.where(
            predictions.mask_type == UNSTATED, held, predictions.mask_type
        ).astype(np.int8)

    @cached_property
    def nonempty(self) -> tuple[BoolArray, BoolArray]:
        """Whether the visible and the amodal mask of each predicted region have pixels: bool [regions] each."""
        return (
            self._preds.geometry.visible.area > 0,
            self._preds.geometry.amodal.area > 0,
        )

    def _select(self, kind: MaskChoice) -> tuple[SelectedMasks, SelectedMasks]:
        """The masks of predicted regions and of targets."""
        ground_truth = self.ground_truth
        predictions = self.predictions
        requested = ground_truth.requested_type == AMODAL
        if kind in ("visible", "amodal"):
            requested = np.full(len(self), kind == "amodal")
            pred = self._preds.of_type(requested[predictions.sample])
        else:
            chosen = self.predicted_type == AMODAL if kind == "predicted" else requested
            visible = predictions.visible.present
            amodal = predictions.amodal.present
            take = np.where(chosen[predictions.sample], amodal, ~visible)
            pred = self._preds.select(
                MaskSelection(
                    take, visible | amodal, take == requested[predictions.sample]
                )
            )
        return pred, self._targets.of_type(requested[ground_truth.sample])

    def statuses(
        self, excluded: Mapping[str, BoolArray] | None = None
    ) -> SampleStatuses:
        """Status and reason of every sample; `excluded` gives reasons to exclude samples, which take precedence."""
        reasons: dict[str, int] = {"": 0}
        reason = np.zeros(len(self), np.int32)
        status = np.full(len(self), metrics.SCORED, np.int8)
        status[self.predictions.state == FAILED] = metrics.FAILED
        status[self.predictions.state == MISSING] = metrics.MISSING
        reason[self.predictions.state == MISSING] = reasons.setdefault(
            "no prediction", len(reasons)
        )
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
    pairs = predictions.counts * ground_truth.counts
    for sample in np.flatnonzero(pairs > MAX_PAIRS).tolist():
        reasons[sample] = (
            f"{predictions.counts[sample]} masks: more than {MAX_PAIRS} pairs of masks and targets"
        )
    for column in columns:
        wrong = column.present & (
            column.masks.size != ground_truth.image_size[predictions.sample]
        ).any(1)
        reasons.update(dict.fromkeys(predictions.sample[wrong].tolist(), WRONG_SIZE))
    predictions = predictions.fail(reasons)
    if predictions.measured is not None:
        return predictions, predictions.measured
    measured = [
        measure_masks(column, column.present, threads)
        for column in (predictions.visible, predictions.amodal)
    ]
    bad = np.concatenate([rows for _, rows in measured])
    if len(bad):
        return _check(
            ground_truth,
            predictions.fail(
                dict.fromkeys(predictions.sample[bad].tolist(), MALFORMED)
            ),
            threads,
        )
    return predictions, RegionGeometry(*(part for part, _ in measured))


def measure_targets(
    ground_truth: GroundTruth, threads: int = 1, *, ahead: bool = True
) -> MaskSelector:
    """Measure the targets; needs no predictions. A malformed mask is an error.

    ahead: also find which targets overlap and read the tags, which most protocols and the slices need, but not all.
    """
    geometry = []
    for name, column in (
        ("visible", ground_truth.visible),
        ("amodal", ground_truth.amodal),
    ):
        measured, bad = measure_masks(column, column.present, threads)
        if len(bad):
            raise ProtocolError(
                f"sample {ground_truth.ids[ground_truth.sample[bad[0]]]!r}: the {name} mask of a target is malformed; "
                "check the dataset with `maskwise validate`"
            )
        geometry.append(measured)
    selector = MaskSelector(
        ground_truth, RegionGeometry(*geometry), ground_truth.ignore, threads=threads
    )
    if ahead:
        _ = selector.of_type(
            (ground_truth.requested_type == AMODAL)[ground_truth.sample]
        ).overlapping
        _ = dict(ground_truth.tags)
    return selector
