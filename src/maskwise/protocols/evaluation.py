"""A truth and its replies side by side, with every overlap measured once, for all protocols that need it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskwise.errors import ProtocolError
from maskwise.masks import Masks
from maskwise.protocols import metrics
from maskwise.protocols.extents import Measured, measure
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import Flags, Floats, Int64s, Verdicts, whole_sums
from maskwise.protocols.pairs import PairIndex
from maskwise.protocols.sides import Choice, Side, Sides, cut_intersections, intersections, replace_masks
from maskwise.protocols.tables import (
    AMODAL,
    BOTH,
    FAILED,
    MALFORMED,
    MISSING,
    UNDECIDED,
    VISIBLE,
    Replies,
    Truth,
)

PlaneKind = Literal["wanted", "said", "visible", "amodal"]


@dataclass(frozen=True)
class Merged:
    """The union of each sample's predicted masks and that of its targets: int64 [samples] each."""

    intersection: Int64s
    pred: Int64s
    target: Int64s

    @property
    def union(self) -> Int64s:
        """Pixels in either."""
        return self.pred + self.target - self.intersection


class Plane:
    """One mask a predicted region and one a target, and what they share.

    `frame`: int64 [samples], pixels that count. `judged`: bool [samples], whether all targets have a mask here.
    """

    def __init__(self, truth: Truth, replies: Replies, index: PairIndex, *, pred: Side, target: Side) -> None:
        self.truth, self.replies, self.index, self.threads = truth, replies, index, pred.threads
        self.pred, self.target = pred, target
        ignored = np.zeros(len(truth), np.int64)
        ignored[truth.ignore.present] = truth.ignore.masks[truth.ignore.present].area()
        self.frame = truth.frame.astype(np.int64).prod(1) - ignored
        self.judged = np.bincount(truth.sample[~target.known], minlength=len(truth)) == 0

    @cached_property
    def intersection(self) -> Int64s:
        """Pixels shared by each pair of the index, int64 [pairs]."""
        return self._measure(self.index.pred, self.index.target)

    @cached_property
    def iou(self) -> Floats:
        """IoU of each pair, 1 where both masks are known and empty, 0 where one is not known."""
        index = self.index
        union = self.pred.area[index.pred] + self.target.area[index.target] - self.intersection
        empty = (union == 0) & self.pred.known[index.pred] & self.target.known[index.target]
        return np.where(empty, 1.0, self.intersection / np.maximum(union, 1))

    @cached_property
    def matched(self) -> Int64s:
        """The pairs matched one to one by best total IoU, positions in the index."""
        return match(self.index, self.iou)

    def shared(self, pred: Int64s, target: Int64s) -> Int64s:
        """Pixels shared by any predicted regions and targets of one image, int64 [k]; those of one question are
        looked up.
        """
        sample = self.replies.sample[pred]
        same = sample == self.truth.sample[target]
        out = np.empty(len(pred), np.int64)
        out[same] = self.intersection[self.index.find(sample[same], pred[same], target[same])]
        out[~same] = self._measure(pred[~same], target[~same])
        return out

    @cached_property
    def overlap(self) -> tuple[Flags, Masks, Int64s]:
        """Where the pieces of targets overlap: whether any do [targets], the pixels, their number [targets]."""
        present = self.truth.overlap.present & self.target.known
        rows = np.flatnonzero(present)
        pixels = self.target.masks
        area = np.zeros(len(present), np.int64)
        if len(rows):
            inside = self.target.masks[rows] & self.truth.overlap.masks[rows]
            area[rows] = inside.area()
            pixels = replace_masks(pixels, rows, inside)
        return present, pixels, area

    @cached_property
    def merged(self) -> Merged:
        """Each sample's union of predicted masks against its union of targets."""
        index, count = self.index, len(self.truth)
        pixels = cut_intersections(
            (self.pred, index.pred), (self.target, index.target), self.intersection, threads=self.threads
        )
        shared = whole_sums(index.sample, pixels, count)
        drawn, wanted = (whole_sums(side.sample, side.cuts.area, count) for side in (self.pred, self.target))
        return Merged(shared, drawn, wanted)

    def _measure(self, pred: Int64s, target: Int64s) -> Int64s:
        return intersections((self.pred, pred), (self.target, target), threads=self.threads)


class Evaluation:
    """What protocols score: checked columns, and planes that are measured when first asked for.

    A reply with a malformed mask, or one of another size than the image, becomes a failed one.
    """

    def __init__(
        self, truth: Truth, replies: Replies, *, threads: int = 1, targets: Sides | None = None
    ) -> None:
        if len(truth) != len(replies):
            raise ProtocolError(f"{len(replies)} replies for {len(truth)} samples; align them first")
        self.truth, self.threads = truth, threads
        self.replies, drawn = _check(truth, replies, threads)
        self._preds = Sides(self.replies, drawn, truth.ignore, threads=threads)
        self._targets = targets if targets is not None else prepare_targets(truth, threads)
        self.index = PairIndex(self.replies.offsets, truth.offsets)
        self._planes: dict[PlaneKind, Plane] = {}

    def __len__(self) -> int:
        return len(self.truth)

    def plane(self, kind: PlaneKind) -> Plane:
        """One mask a region, measured when first asked for; planes that show the same masks are one.

        `visible`, `amodal`: the masks of that type. `wanted`: of the type the question wants (`both` counts as visible
        here); a prediction without one is judged by the other it has. `said`: as `wanted`, but predictions show the
        type the reply decided on; where it decided nothing and has both, the visible one.
        """
        if kind not in self._planes:
            pred, target = self._sides(kind)
            made = (plane for plane in self._planes.values() if plane.pred is pred and plane.target is target)
            self._planes[kind] = next(made, None) or Plane(
                self.truth, self.replies, self.index, pred=pred, target=target
            )
        return self._planes[kind]

    @cached_property
    def said(self) -> NDArray[np.int8]:
        """The mask type of each reply, int8 [n]: the one it names, else that of the masks it holds, else UNDECIDED."""
        replies = self.replies
        visible = np.bincount(replies.sample[replies.visible.present], minlength=len(self)) > 0
        amodal = np.bincount(replies.sample[replies.amodal.present], minlength=len(self)) > 0
        held = np.select([visible & amodal, visible, amodal], [BOTH, VISIBLE, AMODAL], UNDECIDED)
        return np.where(replies.said == UNDECIDED, held, replies.said).astype(np.int8)

    def _sides(self, kind: PlaneKind) -> tuple[Side, Side]:
        truth, replies = self.truth, self.replies
        wanted = truth.wanted == AMODAL
        if kind in ("visible", "amodal"):
            wanted = np.full(len(self), kind == "amodal")
            return self._preds.of_type(wanted[replies.sample]), self._targets.of_type(wanted[truth.sample])
        shown = self.said == AMODAL if kind == "said" else wanted
        amodal = np.where(shown[replies.sample], replies.amodal.present, ~replies.visible.present)
        known = replies.amodal.present | replies.visible.present
        pred = self._preds.show(Choice(amodal, known, amodal == wanted[replies.sample]))
        return pred, self._targets.of_type(wanted[truth.sample])

    def verdicts(self, unjudged: Mapping[str, Flags] | None = None) -> Verdicts:
        """Status and reason of every sample; `unjudged` gives further reasons not to score, which win."""
        reasons: dict[str, int] = {"": 0}
        reason = np.zeros(len(self), np.int32)
        status = np.full(len(self), metrics.SCORED, np.int8)
        status[self.replies.state == FAILED] = metrics.FAILED
        status[self.replies.state == MISSING] = metrics.UNSCORED
        reason[self.replies.state == MISSING] = reasons.setdefault("no reply", len(reasons))
        for sample, text in self.replies.reasons.items():
            reason[sample] = reasons.setdefault(text, len(reasons))
        for text, rows in (unjudged or {}).items():
            if rows.any():
                status[rows] = metrics.UNSCORED
                reason[rows] = reasons.setdefault(text, len(reasons))
        return Verdicts(status, reason, tuple(reasons))


def _check(truth: Truth, replies: Replies, threads: int) -> tuple[Replies, Measured]:
    """Fail replies with masks of another size than the image or malformed ones; measure the rest."""
    columns = (replies.visible, replies.amodal)
    reasons: dict[int, str] = {}
    for column in columns:
        wrong = column.present & (column.masks.size != truth.frame[replies.sample]).any(1)
        reasons.update(dict.fromkeys(replies.sample[wrong].tolist(), "mask size differs from the image"))
    replies = replies.fail(reasons)
    if replies.measured is not None:
        return replies, replies.measured
    found = [measure(column, column.present, threads) for column in (replies.visible, replies.amodal)]
    bad = np.concatenate([rows for _, rows in found])
    if len(bad):
        return _check(truth, replies.fail(dict.fromkeys(replies.sample[bad].tolist(), MALFORMED)), threads)
    return replies, Measured(*(extent for extent, _ in found))


def prepare_targets(truth: Truth, threads: int = 1) -> Sides:
    """What can be learnt of the targets before the replies are known; a malformed mask is an error."""
    extents = []
    for name, column in (("visible", truth.visible), ("amodal", truth.amodal)):
        extent, bad = measure(column, column.present, threads)
        if len(bad):
            raise ProtocolError(
                f"sample {truth.ids[truth.sample[bad[0]]]!r}: the {name} mask of a target is malformed; "
                "check the dataset with `maskwise validate`"
            )
        extents.append(extent)
    sides = Sides(truth, Measured(*extents), truth.ignore, threads=threads)
    _ = sides.of_type((truth.wanted == AMODAL)[truth.sample]).cuts, dict(truth.tags)
    return sides
