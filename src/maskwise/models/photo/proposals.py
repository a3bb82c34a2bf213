"""Proposals: masks of whatever can be found in an image, before any question is asked.

Three sources prompt MobileSAM: boxes of the detector, the box of what is salient, and a grid of points, as in the
automatic mask generation of segment-anything. Points outside the proposals that were made before come first, then, for
parts, points inside them, as long as there is time. A point gives up to three masks: the whole, a part, and a part of
that. Unstable masks and copies are dropped. Masks stay at the resolution of MobileSAM's output until one is chosen.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array, Float64Array, UInt8Array
from maskwise.models.convex_hull import fill_hull
from maskwise.models.photo.box import Box, mask_box
from maskwise.models.photo.detector import Detections, YoloxDetector, box_ious
from maskwise.models.photo.morphology import dilate, find_depths
from maskwise.models.photo.saliency import SaliencyNetwork
from maskwise.models.photo.sam import ImageEmbedding, MaskLogits, MobileSam

ProposalSource = Literal["detector", "saliency", "grid", "box"]

MAX_DETECTIONS = 16
"""Boxes of the detector that prompt masks before a question is asked."""

MIN_DETECTION = 0.15
"""Lowest score of a detection that prompts a mask before a question asks for its category."""

SAME_BOX = 0.85
"""A detection whose box has a larger IoU with that of a better one is another label of the same object."""

MAX_PROMPTS = 32
"""Prompts in all, but for those of small objects. Each takes a sixteenth of the time that MobileSAM needs to encode an
image."""

MAX_PROPOSALS = 40
"""More numbered marks than these cannot be told apart in an image; the points with the lowest scores are dropped."""

MAX_SMALL = 8
MAX_SMALL_AREA = 0.02
"""Small objects that are looked for in smaller tiles: how many prompt masks, and the largest box, as a share of the
image. Chosen on boxes in 40 images of coco128: 51 % of 233 objects below 1 % of the image have one then, else 38 %."""

SAME_SMALL_BOX = 0.55
"""A small detection whose box has a larger IoU with that of a proposal is no new object."""

GRID_SIDE = 8
"""Points per side of the grid."""

RING = 0.06
"""Width of the ring around an object, relative to its longer side, where something that hides it is looked for."""

MAX_HIDING_PROMPTS = 5
"""Points beside one object."""

MIN_FREE = 0.02
"""Less than this, relative to the object, is not worth a prompt."""

MAX_OWN = 0.3
"""What shares more of the smaller of two masks with an object is no other object."""

PART_POINTS = 3
"""Points per side of the box of an object whose part is asked for."""

MIN_IOU = 0.65
"""Lowest IoU that MobileSAM predicts for a mask of a point."""

MIN_STABILITY = 0.6
STABILITY_OFFSET = 1.0
"""A mask of a point is stable if the masks at this offset above and below its threshold have at least that IoU."""

SALIENT = 0.5
"""Saliency from which on a pixel is salient."""

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
    sam: MobileSam,
    embedding: ImageEmbedding,
    detections: Detections,
    saliency: Float32Array,
) -> tuple[list[Proposal], int]:
    """The first proposals of an encoded image: those of the detector, best first, and what is salient; and how many
    prompts they took.

    saliency: float32 [h, w] in 0..1, of the whole image.
    """
    proposals: list[Proposal] = []
    prompts = 0
    for row in np.flatnonzero(detections.scores >= MIN_DETECTION).tolist():
        # A detection with the box of an earlier one only adds its label, and prompts nothing.
        adds_label = find_box(proposals, detections.boxes[row]) is not None
        if prompts < MAX_DETECTIONS or adds_label:
            prompts += add_detection(proposals, sam, embedding, detections, row)
    for salient in _salient_proposals(sam, embedding, saliency):
        add_proposal(proposals, salient)
    return proposals, prompts + 1  # the box of what is salient


def add_small(
    proposals: list[Proposal],
    sam: MobileSam,
    embedding: ImageEmbedding,
    detections: Detections,
) -> None:
    """Add the small objects of detections that no proposal shows, with at most MAX_SMALL prompts."""
    image_area = embedding.size[0] * embedding.size[1]
    prompts = 0
    for row in np.flatnonzero(detections.scores >= MIN_DETECTION).tolist():
        if prompts == MAX_SMALL:
            break
        box = Box(*detections.boxes[row].tolist())
        known = np.array([proposal.box for proposal in proposals], np.float32)
        ious = box_ious(detections.boxes[row], known.reshape(-1, 4))
        is_known = ious.max(initial=0) > SAME_SMALL_BOX
        if is_known or box.area > MAX_SMALL_AREA * image_area:
            continue
        prompts += add_detection(proposals, sam, embedding, detections, row)


def add_points(
    proposals: list[Proposal],
    sam: MobileSam,
    embedding: ImageEmbedding,
    prompts: int,
) -> None:
    """Add what a grid of points prompts, the best up to MAX_PROPOSALS in all. Earlier proposals keep their positions.

    prompts: how many the proposals took; the points take the rest of MAX_PROMPTS.
    """
    earlier = len(proposals)
    # The points depend on the proposals that were made before, so that they are drawn one by one.
    points = _grid_points(proposals, embedding.size)
    for point in itertools.islice(points, max(0, MAX_PROMPTS - prompts)):
        for candidate in _point_proposals(sam, embedding, point):
            add_proposal(proposals, candidate)
    surplus = len(proposals) - max(MAX_PROPOSALS, earlier)
    proposals[earlier:] = _without_worst(proposals[earlier:], surplus)


def find_hiding(
    sam: MobileSam,
    embedding: ImageEmbedding,
    visible: BoolArray,
    others: Sequence[BoolArray],
) -> list[Proposal]:
    """What points beside an object prompt, where it may go on behind something that no other mask covers: inside its
    convex hull, and in a narrow ring around it.

    visible: bool [h, w] at the resolution of the proposals, as are the others.
    """
    if not visible.any():
        return []
    rows, columns = np.nonzero(visible)
    side = max(np.ptp(rows), np.ptp(columns)) + 1
    ring = dilate(visible, max(1, round(RING * side)))
    free = (fill_hull(visible) | ring) & ~visible
    for other in others:
        if other.mean() <= COVERING_AREA:
            free &= ~other
    height, width = visible.shape
    hiding = []
    for _ in range(MAX_HIDING_PROMPTS):
        if free.sum() < MIN_FREE * visible.sum():
            break
        # The pixel farthest from everything that is covered.
        depth = find_depths(free)
        row, column = divmod(int(depth.argmax()), width)
        free[_disc(free.shape, row, column, depth[row, column])] = False
        point = (
            (column + 0.5) / width * embedding.size[0],
            (row + 0.5) / height * embedding.size[1],
        )
        for candidate in _point_proposals(sam, embedding, point):
            shared = int((candidate.inside & visible).sum())
            if shared > MAX_OWN * min(candidate.pixels, int(visible.sum())):
                continue
            hiding.append(candidate)
            free &= ~candidate.inside
    return hiding


def _disc(shape: tuple[int, ...], row: int, column: int, radius: float) -> BoolArray:
    """bool of a shape: the pixels around one; it is always among them."""
    rows, columns = np.indices(shape)
    disc: BoolArray = np.hypot(rows - row, columns - column) <= radius
    return disc


def _without_worst(proposals: list[Proposal], surplus: int) -> list[Proposal]:
    """The proposals in their order, without the `surplus` of them with the lowest scores."""
    by_score = sorted(proposals, key=lambda proposal: -proposal.score)
    kept = by_score[: len(proposals) - max(0, surplus)]
    return [proposal for proposal in proposals if proposal in kept]


def add_proposal(proposals: list[Proposal], candidate: Proposal) -> None:
    """Append a proposal unless it is empty or a copy of an earlier one; a copy passes on its labels."""
    if candidate.area < MIN_AREA:
        return
    ious = _ious(proposals, candidate)
    if not len(ious) or ious.max() <= MAX_OVERLAP:
        proposals.append(candidate)
        return
    original = proposals[int(ious.argmax())]
    for label, score in candidate.labels.items():
        original.labels[label] = max(score, original.labels.get(label, 0.0))


def _ious(proposals: Sequence[Proposal], candidate: Proposal) -> Float64Array:
    """float64 [n]: IoU of a mask that is not empty with each of the proposals."""
    if not proposals:
        return np.zeros(0)
    bits = np.stack([proposal.bits for proposal in proposals])
    intersections = np.bitwise_count(bits & candidate.bits).sum(1, dtype=np.int64)
    areas = np.array([proposal.pixels for proposal in proposals])
    unions = areas + candidate.pixels - intersections
    ious: Float64Array = intersections / unions
    return ious


def add_detection(
    proposals: list[Proposal],
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
    same_object = find_box(proposals, detections.boxes[row])
    if same_object is not None:
        same_object.labels[name] = max(score, same_object.labels.get(name, 0.0))
        return False
    box = Box(*detections.boxes[row].tolist())
    decoded = sam.decode(embedding, box=box)
    proposal = Proposal(
        logits=decoded.logits,
        raw=decoded.raw,
        box=box,
        source="detector",
        score=score,
        labels={name: score},
    )
    add_proposal(proposals, proposal)
    return True


def add_parts(
    proposals: list[Proposal], sam: MobileSam, embedding: ImageEmbedding, whole: int
) -> None:
    """Add what points inside a proposal prompt."""
    proposal = proposals[whole]
    box = proposal.box
    sides = (np.arange(PART_POINTS) + 0.5) / PART_POINTS
    for y in sides:
        for x in sides:
            point = (box.left + x * box.width, box.top + y * box.height)
            if _contains(proposal, point, embedding.size):
                for candidate in _point_proposals(sam, embedding, point):
                    add_proposal(proposals, candidate)


def _contains(
    proposal: Proposal, point: tuple[float, float], size: tuple[int, int]
) -> bool:
    """Whether a point in pixels of an image of this size lies inside a proposal."""
    height, width = proposal.logits.shape
    column = min(width - 1, int(point[0] / size[0] * width))
    row = min(height - 1, int(point[1] / size[1] * height))
    return bool(proposal.logits[row, column] > 0)


def find_box(proposals: Sequence[Proposal], box: Float32Array) -> Proposal | None:
    """The proposal of the detector with about this box, if there is one."""
    detected = [proposal for proposal in proposals if proposal.source == "detector"]
    if not detected:
        return None
    boxes = np.array([proposal.box for proposal in detected], np.float32)
    ious = box_ious(box, boxes)
    if ious.max() <= SAME_BOX:
        return None
    return detected[int(ious.argmax())]


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
    return Proposal(
        logits=decoded.logits,
        raw=decoded.raw,
        box=_logits_box(decoded.logits, embedding.size),
        source=source,
        score=min(1.0, max(0.0, decoded.score)),  # MobileSAM may predict an IoU above 1
    )


def enlarge(logits: Float32Array, size: tuple[int, int]) -> BoolArray:
    """Where logits [h, w], enlarged to a size (width, height), are above 0: bool [height, width]."""
    enlarged = Image.fromarray(logits).resize(size, Image.Resampling.BILINEAR)
    return np.asarray(enlarged) > 0


def mask_iou(first: BoolArray, second: BoolArray) -> float:
    """IoU of two masks; 0 if both are empty."""
    intersection = int((first & second).sum())
    union = int((first | second).sum())
    return intersection / union if union else 0.0


def salient_logits(saliency: Float32Array, size: tuple[int, int]) -> Float32Array:
    """float32 [height, width] for a size (width, height): above 0 where an image is salient."""
    shifted = Image.fromarray(saliency - np.float32(SALIENT))
    return np.asarray(shifted.resize(size, Image.Resampling.BILINEAR))


def _salient_proposals(
    sam: MobileSam, embedding: ImageEmbedding, saliency: Float32Array
) -> Iterator[Proposal]:
    """What is salient, as MobileSAM draws it and as the saliency network does; nothing if nothing stands out."""
    logits = salient_logits(saliency, sam.logits_size(embedding))
    if not (logits > 0).any():
        return
    box = _logits_box(logits, embedding.size)
    yield box_proposal(sam, embedding, box, source="saliency")
    yield Proposal(
        logits=logits,
        raw=None,
        box=box,
        source="saliency",
        score=float(saliency[saliency > SALIENT].mean()),
    )


def _grid_points(
    proposals: Sequence[Proposal], size: tuple[int, int]
) -> Iterator[tuple[float, float]]:
    """Points of the grid in pixels of the image: first those that no small proposal covers when their turn comes, each
    as far as possible from the boxes' centers and the points before.
    """
    sides = (np.arange(GRID_SIDE) + 0.5) / GRID_SIDE
    grid = np.stack(np.meshgrid(sides, sides), -1).reshape(-1, 2)
    points = grid * size
    # Without any box the first point is the one nearest to the center of the image.
    image_center = np.array(size) / 2
    distances = 2 * max(size) - _distances(points, image_center)
    for proposal in proposals:
        center = np.array([proposal.box.center_x, proposal.box.center_y])
        distances = np.minimum(distances, _distances(points, center))
    waiting = np.ones(len(grid), np.bool_)
    while waiting.any():
        free = waiting & ~_covered(proposals, grid)
        candidates = free if free.any() else waiting
        farthest = int(np.where(candidates, distances, -1.0).argmax())
        waiting[farthest] = False
        point = points[farthest]
        distances = np.minimum(distances, _distances(points, point))
        yield float(point[0]), float(point[1])


def _distances(points: Float64Array, place: Float64Array) -> Float64Array:
    """float64 [n]: distances of points [n, 2] from one place [2]."""
    offsets = points - place
    distances: Float64Array = np.hypot(offsets[:, 0], offsets[:, 1])
    return distances


def _covered(proposals: Sequence[Proposal], grid: Float64Array) -> BoolArray:
    """bool [n]: whether each point [n, 2] in 0..1 lies on a small proposal."""
    covered = np.zeros(len(grid), np.bool_)
    for proposal in proposals:
        if proposal.area > COVERING_AREA:
            continue
        height, width = proposal.logits.shape
        columns = (grid[:, 0] * width).astype(np.int64)
        rows = (grid[:, 1] * height).astype(np.int64)
        covered |= proposal.logits[rows, columns] > 0
    return covered


def _point_proposals(
    sam: MobileSam, embedding: ImageEmbedding, point: tuple[float, float]
) -> Iterator[Proposal]:
    """The stable masks of a point, best first."""
    levels = sam.decode_levels(embedding, point)
    for decoded in sorted(levels, key=lambda level: -level.score):
        if decoded.score >= MIN_IOU and stability(decoded.logits) >= MIN_STABILITY:
            yield to_proposal(decoded, embedding, "grid")


def stability(logits: Float32Array) -> float:
    """IoU of the masks at STABILITY_OFFSET above and below the threshold."""
    return mask_iou(logits > STABILITY_OFFSET, logits > -STABILITY_OFFSET)


def _logits_box(logits: Float32Array, size: tuple[int, int]) -> Box:
    """The box of what is inside, in pixels of an image of this size; the whole image if nothing is."""
    box = mask_box(logits > 0)
    width, height = size
    if box is None:
        return Box(0.0, 0.0, float(width), float(height))
    scale_x = width / logits.shape[1]
    scale_y = height / logits.shape[0]
    return Box(
        left=box.left * scale_x,
        top=box.top * scale_y,
        right=box.right * scale_x,
        bottom=box.bottom * scale_y,
    )
