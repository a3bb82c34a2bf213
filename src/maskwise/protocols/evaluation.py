"""A truth and its replies side by side, with every overlap measured once, for all protocols that need it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskwise.errors import MaskError, ProtocolError
from maskwise.masks import Masks, pair_areas
from maskwise.protocols import metrics
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import Flags, Floats, Int64s, Verdicts
from maskwise.protocols.pairs import PairIndex
from maskwise.protocols.tables import AMODAL, BOTH, FAILED, MISSING, UNDECIDED, VISIBLE, Replies, Truth
from maskwise.store import MaskColumn

PlaneKind = Literal["wanted", "said", "visible", "amodal"]


@dataclass(frozen=True)
class Choice:
    """Which of its masks each region shows in a plane. amodal: the amodal one, not the visible one; known: whether it
    has one to show; exact: whether that is of the type the plane asks for. All bool [regions].
    """

    amodal: Flags
    known: Flags
    exact: Flags

    def same(self, other: "Choice") -> bool:
        """Whether both show the same masks."""
        pairs = ((self.amodal, other.amodal), (self.known, other.known), (self.exact, other.exact))
        return all(np.array_equal(one, another) for one, another in pairs)


@dataclass(frozen=True)
class Side:
    """The masks of one side of a plane: predicted regions or targets, pixels to ignore taken away.

    area: int64, 0 where no mask is known.
    """

    masks: Masks
    choice: Choice
    area: Int64s

    @property
    def known(self) -> Flags:
        """Whether there is a mask, bool [regions]."""
        return self.choice.known


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

    `intersection`: int64 over all pairs of `index`. `frame`: int64 [samples], pixels that count. `judged`: bool
    [samples], whether all targets have a mask here.
    """

    def __init__(self, evaluation: "Evaluation", pred: Choice, target: Choice) -> None:
        truth, replies = evaluation.truth, evaluation.replies
        self.truth, self.replies, self.threads = truth, replies, evaluation.threads
        self.index = evaluation.index
        self.pred = self._side(replies.visible, replies.amodal, pred, replies.sample)
        self.target = self._side(truth.visible, truth.amodal, target, truth.sample)
        ignored = np.zeros(len(truth), np.int64)
        ignored[truth.ignore.present] = truth.ignore.masks[truth.ignore.present].area()
        self.frame = truth.frame.astype(np.int64).prod(1) - ignored
        self.judged = np.bincount(truth.sample[~target.known], minlength=len(truth)) == 0

    def _side(self, visible: MaskColumn, amodal: MaskColumn, choice: Choice, sample: Int64s) -> Side:
        masks = _choose(visible.masks, amodal.masks, choice.amodal & choice.known)
        rows = np.flatnonzero(self.truth.ignore.present[sample] & choice.known)
        if len(rows):
            masks = _replace(masks, rows, masks[rows] - self.truth.ignore.masks[sample[rows]])
        known = choice.known
        area = np.zeros(len(known), np.int64)
        area[known] = (masks if known.all() else masks[known]).area(threads=self.threads)
        return Side(masks, choice, area)

    @cached_property
    def intersection(self) -> Int64s:
        """Pixels shared by each pair, int64 [pairs]."""
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
        """Pixels shared by any predicted regions and targets of one picture, int64 [k]; those of one question are
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
            pixels = _replace(pixels, rows, inside)
        return present, pixels, area

    @cached_property
    def merged(self) -> Merged:
        """Each sample's union of predicted masks against its union of targets."""
        return _merge(self)

    def _measure(self, pred: Int64s, target: Int64s) -> Int64s:
        out = np.zeros(len(pred), np.int64)
        both = self.pred.known[pred] & self.target.known[target]
        both &= (self.pred.area[pred] > 0) & (self.target.area[target] > 0)
        rows = np.flatnonzero(both)
        areas = pair_areas(self.pred.masks[pred[rows]], self.target.masks[target[rows]], threads=self.threads)
        out[rows] = areas.intersection
        return out


class Evaluation:
    """What protocols score: checked columns, and planes that are measured when first asked for.

    A reply with a malformed mask, or one of another size than the picture, becomes a failed one.
    """

    def __init__(self, truth: Truth, replies: Replies, *, threads: int = 1) -> None:
        if len(truth) != len(replies):
            raise ProtocolError(f"{len(replies)} replies for {len(truth)} samples; align them first")
        self.truth, self.threads = truth, threads
        self.replies = replies.fail(_unusable(truth, replies, threads))
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
            pred, target = self._choices(kind)
            known = (
                plane
                for plane in self._planes.values()
                if plane.pred.choice.same(pred) and plane.target.choice.same(target)
            )
            self._planes[kind] = next(known, None) or Plane(self, pred, target)
        return self._planes[kind]

    @cached_property
    def said(self) -> NDArray[np.int8]:
        """The mask type of each reply, int8 [n]: the one it names, else that of the masks it holds, else UNDECIDED."""
        replies = self.replies
        visible = np.bincount(replies.sample[replies.visible.present], minlength=len(self)) > 0
        amodal = np.bincount(replies.sample[replies.amodal.present], minlength=len(self)) > 0
        held = np.select([visible & amodal, visible, amodal], [BOTH, VISIBLE, AMODAL], UNDECIDED)
        return np.where(replies.said == UNDECIDED, held, replies.said).astype(np.int8)

    def _choices(self, kind: PlaneKind) -> tuple[Choice, Choice]:
        truth, replies = self.truth, self.replies
        wanted = truth.wanted == AMODAL
        if kind in ("visible", "amodal"):
            wanted = np.full(len(self), kind == "amodal")
            return _pick(replies, wanted[replies.sample]), _pick(truth, wanted[truth.sample])
        shown = self.said == AMODAL if kind == "said" else wanted
        amodal = np.where(shown[replies.sample], replies.amodal.present, ~replies.visible.present)
        known = replies.amodal.present | replies.visible.present
        pred = Choice(amodal, known, amodal == wanted[replies.sample])
        return pred, _pick(truth, wanted[truth.sample])

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


def _pick(table: Truth | Replies, amodal: Flags) -> Choice:
    """The masks of one type, where there are any."""
    known = np.where(amodal, table.amodal.present, table.visible.present)
    return Choice(amodal, known, known)


def _choose(visible: Masks, amodal: Masks, take_amodal: Flags) -> Masks:
    if not take_amodal.any():
        return visible
    if take_amodal.all():
        return amodal
    return _replace(visible, np.flatnonzero(take_amodal), amodal[take_amodal])


def _replace(masks: Masks, rows: Int64s, new: Masks) -> Masks:
    """The batch with some rows replaced."""
    order = np.arange(len(masks))
    order[rows] = len(masks) + np.arange(len(rows))
    return Masks.concat([masks, new])[order]


@dataclass(frozen=True)
class _United:
    """The union of each sample's masks on one side. Samples with one mask keep it; `many` have a new one."""

    side: Side
    first: Int64s
    many: Flags
    merged: Masks
    area: Int64s

    def take(self, rows: Int64s, many: bool) -> Masks:
        """The unions of samples that all have many masks, or all one."""
        return self.merged[(np.cumsum(self.many) - 1)[rows]] if many else self.side.masks[self.first[rows]]


def _unite(side: Side, offsets: Int64s, frame: NDArray[np.int32], *, threads: int) -> _United:
    total = np.concatenate([[0], np.cumsum(side.known)])
    starts = total[offsets]
    counts = np.diff(starts)
    rows = np.flatnonzero(side.known)
    many = counts > 1
    area = np.zeros(len(counts), np.int64)
    first = np.zeros(len(counts), np.int64)
    first[counts > 0] = rows[starts[:-1][counts > 0]]
    area[counts == 1] = side.area[first[counts == 1]]
    members = rows[np.repeat(many, counts)]
    merged = side.masks[members].merge(np.concatenate([[0], np.cumsum(counts[many])]), frame[many])
    area[many] = merged.area(threads=threads)
    return _United(side, first, many, merged, area)


def _merge(plane: Plane) -> Merged:
    """Unions against unions; the pairs of samples with one mask on each side are known already."""
    index, frame, threads = plane.index, plane.truth.frame, plane.threads
    pred = _unite(plane.pred, index.pred_offsets, frame, threads=threads)
    target = _unite(plane.target, index.target_offsets, frame, threads=threads)
    shared = np.zeros(len(frame), np.int64)
    single = (index.preds == 1) & (index.targets == 1)
    shared[single] = plane.intersection[index.first[:-1][single]]
    open_ = ~single & (pred.area > 0) & (target.area > 0)
    for many_pred, many_target in ((False, False), (False, True), (True, False), (True, True)):
        rows = np.flatnonzero(open_ & (pred.many == many_pred) & (target.many == many_target))
        areas = pair_areas(pred.take(rows, many_pred), target.take(rows, many_target), threads=threads)
        shared[rows] = areas.intersection
    return Merged(shared, pred.area, target.area)


def _unusable(truth: Truth, replies: Replies, threads: int) -> dict[int, str]:
    """Why samples' replies cannot be scored: masks of another size than the picture, or malformed."""
    reasons: dict[int, str] = {}
    for column in (replies.visible, replies.amodal):
        wrong = column.present & (column.masks.size != truth.frame[replies.sample]).any(1)
        reasons.update(dict.fromkeys(replies.sample[wrong].tolist(), "mask size differs from the picture"))
        bad = _malformed(column.masks[column.present & ~wrong], threads)
        rows = np.flatnonzero(column.present & ~wrong)[bad]
        reasons.update(dict.fromkeys(replies.sample[rows].tolist(), "malformed mask"))
    return reasons


def _malformed(masks: Masks, threads: int) -> list[int]:
    """Positions of the masks whose strings are no masks."""
    found: list[int] = []
    start = 0
    while start < len(masks):
        try:
            masks[start:].check(threads=threads)
            break
        except MaskError as error:
            if error.item is None:
                raise
            found.append(start + error.item)
            start = found[-1] + 1
    return found
