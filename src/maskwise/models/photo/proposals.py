"""Proposals: masks of whatever can be found in an image, before any question is asked.

Three sources prompt MobileSAM: boxes of the detector, the box of what is salient, and a grid of points, as in the
automatic mask generation of segment-anything. Points outside the proposals that were made before come first, then, for
parts, points inside them, as long as there is time. A point gives up to three masks: the whole, a part, and a part of
that. Unstable masks and copies are dropped. Masks stay at the resolution of MobileSAM's output until one is chosen.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array, Float64Array, UInt8Array
from maskwise.models.photo.detector import Detections, YoloxDetector, box_ious
from maskwise.models.photo.saliency import SaliencyNetwork
from maskwise.models.photo.sam import ImageEmbedding, MaskLogits, MobileSam

ProposalSource = Literal["detector", "saliency", "grid", "box"]
Box = tuple[float, float, float, float]

MAX_DETECTIONS = 16
"""Boxes of the detector that prompt masks before a question is asked."""

MIN_DETECTION = 0.15
SAME_BOX = 0.85
"""A detection whose box has a larger IoU with that of a better one is another label of the same object."""

MAX_PROMPTS = 32
"""Prompts in all: each takes a sixteenth of the time that MobileSAM needs to encode an image."""

MAX_PROPOSALS = 40
"""More numbered marks than these cannot be told apart in an image; the points with the lowest scores are dropped."""

GRID_SIDE = 8
"""Points per side of the grid."""

MIN_IOU = 0.65
"""Lowest IoU that MobileSAM predicts for a mask of a point."""

MIN_STABILITY = 0.6
STABILITY_OFFSET = 1.0
"""A mask of a point is stable if the masks at this offset above and below its threshold have at least that IoU."""

MIN_AREA = 0.0005
"""Smallest proposal, as a share of the image."""

COVERING_AREA = 0.25
"""A point inside a proposal up to this size, as a share of the image, waits for those outside all."""

MAX_OVERLAP = 0.85
"""Of two proposals with a larger IoU the earlier one is kept."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A mask that may be an answer. logits: float32 [h, w] of the whole image, above 0 inside. raw: MobileSAM's output,
    to prompt it again; None for saliency. box: left, top, right, bottom in pixels of the image. labels: the detector's
    categories with their scores. score: of the best label, else the predicted IoU.
    """

    logits: Float32Array
    raw: Float32Array | None
    box: Box
    source: ProposalSource
    score: float
    labels: dict[str, float] = field(default_factory=dict)

    @property
    def inside(self) -> BoolArray:
        """The mask at the resolution of the logits."""
        return self.logits > 0

    @cached_property
    def bits(self) -> UInt8Array:
        """The mask, eight pixels in a byte, to compare many masks quickly."""
        return np.packbits(self.inside)

    @cached_property
    def pixels(self) -> int:
        """Number of pixels inside, at the resolution of the logits."""
        return int(np.count_nonzero(self.inside))

    @property
    def area(self) -> float:
        """Share of the image."""
        return self.pixels / self.logits.size

    @property
    def label(self) -> str | None:
        """The best category, where the detector found it."""
        return max(self.labels, key=lambda name: self.labels[name], default=None)

    def mask(self, size: tuple[int, int]) -> BoolArray:
        """bool [height, width] at the size (width, height) of the image."""
        return enlarge(self.logits, size)


class ProposalNetworks(NamedTuple):
    """The pretrained networks that find proposals."""

    sam: MobileSam
    detector: YoloxDetector
    saliency: SaliencyNetwork


def propose(
    networks: ProposalNetworks,
    image: Image.Image,
    embedding: ImageEmbedding,
    detections: Detections,
) -> list[Proposal]:
    """The proposals of an encoded image: those of the detector first, best first."""
    found: list[Proposal] = []
    prompts = 0
    for row in np.flatnonzero(detections.scores >= MIN_DETECTION).tolist():
        if (
            prompts < MAX_DETECTIONS
            or find_box(found, detections.boxes[row]) is not None
        ):
            prompts += add_detection(found, networks.sam, embedding, detections, row)
    for one in _salient(networks, image, embedding):
        add_proposal(found, one)
    points = itertools.islice(
        _grid_points(found, image.size), MAX_PROMPTS - prompts - 1
    )
    for point in points:
        for candidate in _point_proposals(networks.sam, embedding, point):
            add_proposal(found, candidate)
    return _limit(found)


def _limit(found: list[Proposal]) -> list[Proposal]:
    """At most MAX_PROPOSALS, in their order: of the points those with the best scores."""
    points = sorted(
        (one for one in found if one.source == "grid"), key=lambda one: -one.score
    )
    dropped = points[len(points) - max(0, len(found) - MAX_PROPOSALS) :]
    return [one for one in found if one not in dropped]


def add_proposal(found: list[Proposal], new: Proposal) -> None:
    """Append a proposal unless it is empty or a copy of an earlier one; a copy passes on its labels."""
    if new.area < MIN_AREA:
        return
    ious = _ious(found, new)
    if not len(ious) or ious.max() <= MAX_OVERLAP:
        found.append(new)
        return
    known = found[int(ious.argmax())]
    for label, score in new.labels.items():
        known.labels[label] = max(score, known.labels.get(label, 0.0))


def _ious(found: list[Proposal], new: Proposal) -> Float64Array:
    """float64 [n]: IoU of a mask with each of those found; it is not empty."""
    if not found:
        return np.zeros(0)
    shared = np.bitwise_count(np.stack([one.bits for one in found]) & new.bits).sum(
        1, dtype=np.int64
    )
    areas = np.array([one.pixels for one in found]) + new.pixels
    ious: Float64Array = shared / (areas - shared)
    return ious


def add_detection(
    found: list[Proposal],
    sam: MobileSam,
    embedding: ImageEmbedding,
    detections: Detections,
    row: int,
) -> bool:
    """Add the object of a detection, or its label to a proposal with the same box or mask. Returns whether MobileSAM
    was prompted.
    """
    score = float(detections.scores[row])
    name = detections.names()[row]
    known = find_box(found, detections.boxes[row])
    if known is not None:
        known.labels[name] = max(score, known.labels.get(name, 0.0))
        return False
    left, top, right, bottom = detections.boxes[row].tolist()
    decoded = sam.decode(embedding, box=(left, top, right, bottom))
    box = (left, top, right, bottom)
    add_proposal(
        found,
        Proposal(decoded.logits, decoded.raw, box, "detector", score, {name: score}),
    )
    return True


def find_box(found: list[Proposal], box: Float32Array) -> Proposal | None:
    """The proposal of the detector with about this box, if there is one."""
    boxes = [one for one in found if one.source == "detector"]
    if not boxes:
        return None
    ious = box_ious(box, np.array([one.box for one in boxes], np.float32))
    return boxes[int(ious.argmax())] if ious.max() > SAME_BOX else None


def box_proposal(
    sam: MobileSam,
    embedding: ImageEmbedding,
    box: Box,
    *,
    source: ProposalSource = "box",
) -> Proposal:
    """The proposal that a box prompts."""
    return to_proposal(sam.decode(embedding, box=box), embedding, source)


def to_proposal(
    decoded: MaskLogits, embedding: ImageEmbedding, source: ProposalSource
) -> Proposal:
    """A decoded mask as a proposal."""
    box = _mask_box(decoded.logits > 0, embedding.size)
    return Proposal(
        decoded.logits, decoded.raw, box, source, min(1.0, max(0.0, decoded.score))
    )


def enlarge(logits: Float32Array, size: tuple[int, int]) -> BoolArray:
    """Where logits [h, w], enlarged to a size (width, height), are above 0: bool [height, width]."""
    return (
        np.asarray(Image.fromarray(logits).resize(size, Image.Resampling.BILINEAR)) > 0
    )


def mask_iou(first: BoolArray, second: BoolArray) -> float:
    """IoU of two masks; 0 if both are empty."""
    union = int((first | second).sum())
    return int((first & second).sum()) / union if union else 0.0


def _salient(
    networks: ProposalNetworks, image: Image.Image, embedding: ImageEmbedding
) -> Iterator[Proposal]:
    """What is salient, as the saliency network draws it and as MobileSAM does."""
    saliency = networks.saliency.predict(image)
    whole = networks.sam.logits_size(embedding)
    logits = np.asarray(
        Image.fromarray(saliency - np.float32(0.5)).resize(
            whole, Image.Resampling.BILINEAR
        )
    )
    if not (logits > 0).any():
        return
    box = _mask_box(logits > 0, embedding.size)
    yield box_proposal(networks.sam, embedding, box, source="saliency")
    yield Proposal(
        logits, None, box, "saliency", float(saliency[saliency > 0.5].mean())
    )


def _grid_points(
    found: list[Proposal], size: tuple[int, int]
) -> Iterator[tuple[float, float]]:
    """Points of the grid in pixels of the image: first those that no small proposal covers when their turn comes, each
    as far as possible from the boxes' centers and the points before.
    """
    sides = (np.arange(GRID_SIDE) + 0.5) / GRID_SIDE
    grid = np.stack(np.meshgrid(sides, sides), -1).reshape(-1, 2)
    places = grid * size
    # Without any box the first point is the one nearest to the center of the image.
    distance = 2 * max(size) - np.hypot(*(places - np.array(size) / 2).T)
    for one in found:
        distance = np.minimum(distance, np.hypot(*(places - _box_center(one.box)).T))
    waiting = np.ones(len(grid), np.bool_)
    while waiting.any():
        free = waiting & ~_covered(found, grid)
        number = int(np.where(free if free.any() else waiting, distance, -1.0).argmax())
        waiting[number] = False
        distance = np.minimum(distance, np.hypot(*(places - places[number]).T))
        yield float(places[number, 0]), float(places[number, 1])


def _covered(found: list[Proposal], grid: Float64Array) -> BoolArray:
    """bool [n]: whether each point [n, 2] in 0..1 lies on a small proposal."""
    covered = np.zeros(len(grid), np.bool_)
    for one in found:
        if one.area <= COVERING_AREA:
            columns, rows = (grid * one.logits.shape[::-1]).astype(np.int64).T
            covered |= one.logits[rows, columns] > 0
    return covered


def _box_center(box: Box) -> Float64Array:
    return np.array([box[0] + box[2], box[1] + box[3]]) / 2


def _point_proposals(
    sam: MobileSam, embedding: ImageEmbedding, point: tuple[float, float]
) -> Iterator[Proposal]:
    """The stable masks of a point, best first."""
    for decoded in sorted(
        sam.decode_levels(embedding, point), key=lambda one: -one.score
    ):
        if decoded.score >= MIN_IOU and stability(decoded.logits) >= MIN_STABILITY:
            yield to_proposal(decoded, embedding, "grid")


def stability(logits: Float32Array) -> float:
    """IoU of the masks at STABILITY_OFFSET above and below the threshold."""
    return mask_iou(logits > STABILITY_OFFSET, logits > -STABILITY_OFFSET)


def _mask_box(inside: BoolArray, size: tuple[int, int]) -> Box:
    """The box of a mask in pixels of the image; the whole image if the mask is empty."""
    rows = np.flatnonzero(inside.any(1))
    columns = np.flatnonzero(inside.any(0))
    if not len(rows):
        return (0.0, 0.0, float(size[0]), float(size[1]))
    down = size[1] / inside.shape[0]
    across = size[0] / inside.shape[1]
    return (
        float(columns[0] * across),
        float(rows[0] * down),
        float((columns[-1] + 1) * across),
        float((rows[-1] + 1) * down),
    )
