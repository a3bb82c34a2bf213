"""Samples as cards: image, masks as paths, words; all cards together within a size bound."""

import base64
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.errors import ImageError
from maskwise.masks import Mask, Masks, pairwise_iou
from maskwise.overlay import PALETTE, Drawable
from maskwise.protocols.mask_pairs import MaskPairs
from maskwise.protocols.matching import match
from maskwise.report.metric_labels import format_value, shorten
from maskwise.report.run_data import RunData
from maskwise.report.sample_selection import SelectedSample
from maskwise.report.svg_contours import canvas_size, mask_to_path
from maskwise.runs.tables import ScoreRows
from maskwise.schema import Answer, PredictedRegion, Prediction, Region, Sample

MAX_BYTES = 7_000_000
"""Of all cards and images together; the rest of a page has its own bounds and stays well below 3 MB."""
MAX_SIDE, MAX_IMAGE_BYTES = 640, 100_000
QUALITIES = (78, 60, 40, 20)
"""Of JPEG: the next where an image is still too large."""
MAX_REGIONS, MAX_NAME, MAX_TAG = 24, 60, 40
CARD_BYTES, SHAPE_BYTES = 4000, 900
"""What a card, and each of its regions, needs beside words and paths."""

ColouredText = tuple[str, int | None]
"""MetricLabel, and the colour of the region they speak of."""


@dataclass(frozen=True)
class RegionPaths:
    """A region to draw: paths of its masks (None: unknown; empty: no pixel), its colour's number, what to call it."""

    colour: int
    name: str
    note: str
    visible: str | None
    amodal: str | None
    hidden: str | None


@dataclass(frozen=True)
class CardPanel:
    """One side of a card: what is true, or what a run said. `note`: why there is nothing to see, or not all."""

    title: str
    shapes: tuple[RegionPaths, ...] = ()
    words: tuple[ColouredText, ...] = ()
    mask_type: str | None = None
    wrong_type: bool = False
    value: str | None = None
    note: str | None = None
    ignored: str | None = None

    @property
    def bytes(self) -> int:
        """About how long it is as text."""
        paths = [path for shape in self.shapes for path in (shape.visible, shape.amodal, shape.hidden)]
        drawn = sum(len(path or "") for path in (*paths, self.ignored)) + SHAPE_BYTES * len(self.shapes)
        # An escaped character may need six, as &quot; does.
        return drawn + 6 * sum(len(text) + 10 for text, _ in self.words)


@dataclass(frozen=True)
class CardImage:
    """An image as a data URI, or why there is none, and its width and height in path units."""

    key: str
    width: int
    height: int
    uri: str | None
    problem: str | None = None


@dataclass(frozen=True)
class Card:
    """One sample, and why it is shown."""

    kind: str
    sample: str
    question: str
    frame: CardImage
    panels: tuple[CardPanel, ...]
    slices: Mapping[str, str]

    @property
    def slices_json(self) -> str:
        """What filters look at."""
        return json.dumps(dict(self.slices))

    @property
    def bytes(self) -> int:
        """About how long it is as text, its image aside."""
        words = len(self.sample) + len(self.question) + len(self.slices_json)
        return CARD_BYTES + 6 * words + sum(panel.bytes for panel in self.panels)


@dataclass
class Gallery:
    """Cards, and how many samples were left out for want of room, or why there is no gallery at all."""

    cards: list[Card] = field(default_factory=list)
    left_out: int = 0
    problem: str | None = None

    @property
    def frames(self) -> list[CardImage]:
        """The images of the cards, each once."""
        return list({card.frame.key: card.frame for card in self.cards}.values())

    @property
    def kinds(self) -> dict[str, int]:
        """How many cards there are of each kind."""
        kinds = [card.kind for card in self.cards]
        return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}

    @property
    def filters(self) -> dict[str, list[str]]:
        """The values cards differ in, by slicing."""
        names = dict.fromkeys(name for card in self.cards for name in card.slices)
        values = {name: {card.slices[name] for card in self.cards if name in card.slices} for name in names}
        return {name: sorted(found) for name, found in values.items() if len(found) > 1}

    @property
    def layers(self) -> list[str]:
        """The layers some card has."""
        panels = [panel for card in self.cards for panel in card.panels]
        shapes = [shape for panel in panels for shape in panel.shapes]
        found = {
            "visible": any(shape.visible for shape in shapes),
            "hidden": any(shape.hidden for shape in shapes),
            "amodal": any(shape.amodal for shape in shapes),
            "ignored": any(panel.ignored for panel in panels),
        }
        return [name for name, there in found.items() if there]


@dataclass(frozen=True)
class GalleryRun:
    """A run in a gallery: its title, what it said, and how that was judged."""

    title: str
    data: RunData
    rows: ScoreRows


def fill_gallery(picked: Sequence[SelectedSample], runs: Sequence[GalleryRun]) -> Gallery:
    """Cards for the samples picked, as long as there is room; cards of one kind stand together."""
    gallery, used = Gallery(), 0
    frames: dict[str, CardImage] = {}
    for kind, row in picked:
        sample = runs[0].data.dataset[row]
        new = sample.image_id not in frames
        frame = frames.get(sample.image_id) or make_card_image(
            runs[0].data, sample.image_id, key=f"p{len(frames)}"
        )
        card = make_card(kind, row, sample, frame=frame, runs=runs)
        size = card.bytes + (len(frame.uri or "") if new else 0)
        if used + size > MAX_BYTES:
            gallery.left_out += 1
            continue
        used += size
        frames[sample.image_id] = frame
        gallery.cards.append(card)
    kinds = list(dict.fromkeys(kind for kind, _ in picked))
    gallery.cards.sort(key=lambda card: kinds.index(card.kind))
    return gallery


def make_card_image(data: RunData, image: str, *, key: str) -> CardImage:
    """An image, small enough for a page; where it cannot be opened, a frame that says why."""
    facts = data.dataset.image(image)
    width, height = canvas_size(facts.width, facts.height)
    try:
        pixels = data.dataset.open_image(image)
    except ImageError as error:
        return CardImage(key, width, height, None, shorten(str(error), 2 * MAX_NAME))
    pixels.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS, reducing_gap=3.0)
    return CardImage(key, width, height, image_to_data_uri(pixels))


def image_to_data_uri(image: Image.Image) -> str:
    """A JPEG as a data URI."""
    for quality in QUALITIES:
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=quality, optimize=True)
        if buffer.tell() <= MAX_IMAGE_BYTES:
            break
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def make_card(kind: str, row: int, sample: Sample, *, frame: CardImage, runs: Sequence[GalleryRun]) -> Card:
    """One sample: what is true, and what each run said."""
    size = runs[0].data.dataset.samples.size[row].tolist()
    panels = [_truth_panel(sample)]
    for run in runs:
        reply = run.data.reply(row)
        panels.append(_reply_panel(sample, reply, (size[0], size[1]), run=run, row=row))
    slices = {
        name: shorten(str(codes.names[codes.codes[row]]), MAX_TAG)
        for name, codes in runs[0].rows.slices.items()
    }
    return Card(kind, shorten(sample.id, MAX_NAME), shorten(sample.question), frame, tuple(panels), slices)


# -- panels ------------------------------------------------------------------------------------------------------------


def _truth_panel(sample: Sample) -> CardPanel:
    colours = list(range(len(sample.targets)))
    return CardPanel(
        title="Ground truth",
        shapes=_shapes(sample.targets, colours, [""] * len(colours)),
        words=colour_phrases(sample.answer, colours),
        mask_type=sample.mask_type,
        note=_too_many(len(sample.targets)) if sample.targets else "No target: nothing should be marked.",
        ignored=mask_to_path(sample.ignore) if sample.ignore is not None else None,
    )


def _reply_panel(
    sample: Sample, reply: Prediction | None, size: tuple[int, int], *, run: GalleryRun, row: int
) -> CardPanel:
    rows = run.rows
    value = format_value(float(rows.value[row])) if rows.scored[row] else None
    reason = rows.reason.names[rows.reason.codes[row]]
    if reply is None or reply.error is not None:
        said = "No reply." if reply is None else f"Failed: {reply.error}"
        return CardPanel(title=run.title, value=value, note=shorten(said))
    fits = all(mask.size == size for region in reply.regions for mask in _masks(region))
    regions = reply.regions if fits else ()
    colours, overlaps = match_colours(sample, regions)
    met = [f"IoU {format_value(overlap)} · " if sample.targets else "" for overlap in overlaps]
    notes = [f"{words}score {region.score:.2f}" for words, region in zip(met, regions)]
    remark = "" if reason is None else f"Not scored: {reason}."
    if reply.no_target or not reply.regions:
        remark = f"Says: nothing here. {remark}" if reply.no_target else f"No mask. {remark}"
    return CardPanel(
        title=run.title,
        shapes=_shapes(regions, colours, notes),
        words=colour_phrases(reply.answer, colours),
        mask_type=reply.mask_type,
        wrong_type=bool(sample.targets and reply.mask_type and reply.mask_type != sample.mask_type),
        value=value,
        note=shorten(remark.strip() or _too_many(len(regions)) or "") or None,
    )


def _masks(region: Drawable) -> list[Mask]:
    return [mask for mask in (region.visible, region.amodal) if mask is not None]


def _too_many(regions: int) -> str | None:
    return f"{regions - MAX_REGIONS} more regions are not drawn." if regions > MAX_REGIONS else None


def _shapes(
    regions: Sequence[Drawable], colours: Sequence[int], notes: Iterable[str]
) -> tuple[RegionPaths, ...]:
    return tuple(
        _shape(region, colour, note)
        for region, colour, note in list(zip(regions, colours, notes))[:MAX_REGIONS]
    )


def _shape(region: Drawable, colour: int, note: str) -> RegionPaths:
    visible, amodal = region.visible, region.amodal
    hidden = None if visible is None or amodal is None else amodal - visible
    return RegionPaths(
        colour % len(PALETTE),
        shorten(region.name or "", MAX_NAME),
        note,
        *(None if mask is None else mask_to_path(mask) for mask in (visible, amodal, hidden)),
    )


def match_colours(sample: Sample, regions: Sequence[PredictedRegion]) -> tuple[list[int], list[float]]:
    """A colour for each predicted region, that of the target it meets best if any, and its IoU with that target.

    The IoU is that of the mask type wanted, for `both` the mean of the two; a mask not there counts 0.
    """
    overlaps = np.zeros((len(regions), len(sample.targets)))
    types = ("visible", "amodal") if sample.mask_type == "both" else (sample.mask_type,)
    for mask_type in types:
        overlaps += _overlaps(regions, sample.targets, mask_type) / len(types)
    colours = [len(sample.targets) + item for item in range(len(regions))]
    values = [0.0] * len(regions)
    index = MaskPairs.all(np.array([0, len(regions)]), np.array([0, len(sample.targets)]))
    for pair in match(index, overlaps.ravel()):
        item, target = int(index.pred[pair]), int(index.target[pair])
        if overlaps[item, target] > 0:
            colours[item], values[item] = target, float(overlaps[item, target])
    return colours, values


def _overlaps(
    regions: Sequence[PredictedRegion], targets: Sequence[Region], mask_type: str
) -> NDArray[np.float64]:
    known = [
        [(item, getattr(region, mask_type)) for item, region in enumerate(side) if getattr(region, mask_type)]
        for side in (regions, targets)
    ]
    out = np.zeros((len(regions), len(targets)))
    if known[0] and known[1]:
        pred, target = (Masks.from_masks([mask for _, mask in side]) for side in known)
        rows, columns = ([item for item, _ in side] for side in known)
        out[np.ix_(rows, columns)] = pairwise_iou(pred, target)
    return out


def colour_phrases(answer: Answer | None, colours: Sequence[int]) -> tuple[ColouredText, ...]:
    """An answer in pieces; one that speaks of a region has its colour. Of phrases that overlap, the first counts."""
    if answer is None:
        return ()
    text, end = shorten(answer.text), 0
    pieces: list[ColouredText] = []
    for phrase in sorted(answer.phrases, key=lambda phrase: phrase.start):
        if phrase.start >= end and phrase.stop <= len(text) and phrase.regions:
            pieces += [(text[end : phrase.start], None)]
            pieces += [(text[phrase.start : phrase.stop], colours[phrase.regions[0]] % len(PALETTE))]
            end = phrase.stop
    return tuple(piece for piece in (*pieces, (text[end:], None)) if piece[0])
