"""The gallery of a page: samples as cards with image, masks as SVG paths and texts, within a size limit."""

import base64
import functools
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from PIL import Image

from maskwise.arrays import Float64Array
from maskwise.errors import ImageError
from maskwise.language.intent import CueSpan, classify_intent, split_at_cues
from maskwise.masks import Mask, Masks, pairwise_iou
from maskwise.protocols.mask_pairs import MaskPairs
from maskwise.protocols.matching import match
from maskwise.report.formatting import format_value, shorten
from maskwise.report.overlay import PALETTE, Drawable
from maskwise.report.run_data import RunData
from maskwise.report.sample_selection import SelectedSample
from maskwise.report.svg_contours import canvas_size, mask_to_path
from maskwise.runs.tables import ScoreRows
from maskwise.schema import (
    Answer,
    ImageInfo,
    PredictedRegion,
    Prediction,
    Region,
    Sample,
)
from maskwise.store import Dataset

MAX_BYTES = 7_000_000
"""Limit for all cards and images together; the rest of a page has limits of its own and stays below 3 MB."""
MAX_SIDE = 640
MAX_IMAGE_BYTES = 100_000
QUALITIES = (78, 60, 40, 20)
"""JPEG qualities; the next one is used if an image is still too large."""
MAX_REGIONS = 24
MAX_NAME = 60
MAX_TAG = 40
CARD_BYTES = 4000
SHAPE_BYTES = 900
"""Bytes of a card, and of each of its regions, beside texts and paths."""

ColoredText = tuple[str, int | None]
"""A text, and the color of the region it refers to."""


@dataclass(frozen=True)
class RegionPaths:
    """A region to draw: paths of its masks (None: unknown; empty: no pixels), index of its color, name and note."""

    color: int
    name: str
    note: str
    visible: str | None
    amodal: str | None
    hidden: str | None


@dataclass(frozen=True)
class CardPanel:
    """One side of a card: the ground truth, or the prediction of a run. note: why something is not shown."""

    title: str
    shapes: tuple[RegionPaths, ...] = ()
    words: tuple[ColoredText, ...] = ()
    mask_type: str | None = None
    wrong_type: bool = False
    value: str | None = None
    note: str | None = None
    ignored: str | None = None

    @property
    def bytes(self) -> int:
        """Its approximate length as text."""
        paths = [
            path
            for shape in self.shapes
            for path in (shape.visible, shape.amodal, shape.hidden)
        ]
        drawn = sum(
            len(path or "") for path in (*paths, self.ignored)
        ) + SHAPE_BYTES * len(self.shapes)
        # An escaped character may need six, as &quot; does.
        return drawn + 6 * sum(len(text) + 10 for text, _ in self.words)


@dataclass(frozen=True)
class CardImage:
    """An image as a data URI, or the problem with it, and its width and height in path units."""

    key: str
    width: int
    height: int
    uri: str | None
    problem: str | None = None


@dataclass(frozen=True)
class Card:
    """One sample. kind: why it is shown. question: in pieces, those that decide about the mask type with their cue."""

    kind: str
    sample: str
    question: tuple[tuple[str, CueSpan | None], ...]
    frame: CardImage
    panels: tuple[CardPanel, ...]
    slices: Mapping[str, str]

    @property
    def slices_json(self) -> str:
        """The slices as JSON, for the page's filters."""
        return json.dumps(dict(self.slices))

    @property
    def bytes(self) -> int:
        """Its approximate length as text, without the image."""
        question = "".join(text for text, _ in self.question)
        words = len(self.sample) + len(question) + len(self.slices_json)
        return CARD_BYTES + 6 * words + sum(panel.bytes for panel in self.panels)


@dataclass
class Gallery:
    """Cards, and how many samples did not fit, or why there is no gallery."""

    cards: list[Card] = field(default_factory=list)
    left_out: int = 0
    problem: str | None = None

    @property
    def frames(self) -> list[CardImage]:
        """The images of the cards, without duplicates."""
        return list({card.frame.key: card.frame for card in self.cards}.values())

    @property
    def kinds(self) -> dict[str, int]:
        """Number of cards of each kind."""
        kinds = [card.kind for card in self.cards]
        return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}

    @property
    def filters(self) -> dict[str, list[str]]:
        """The values of the cards by slicing, where they differ."""
        names = dict.fromkeys(name for card in self.cards for name in card.slices)
        values = {
            name: {card.slices[name] for card in self.cards if name in card.slices}
            for name in names
        }
        return {
            name: sorted(several)
            for name, several in values.items()
            if len(several) > 1
        }

    @property
    def layers(self) -> list[str]:
        """The layers that occur in the cards."""
        panels = [panel for card in self.cards for panel in card.panels]
        shapes = [shape for panel in panels for shape in panel.shapes]
        occurs = {
            "visible": any(shape.visible for shape in shapes),
            "hidden": any(shape.hidden for shape in shapes),
            "amodal": any(shape.amodal for shape in shapes),
            "ignored": any(panel.ignored for panel in panels),
        }
        return [name for name, there in occurs.items() if there]


@dataclass(frozen=True)
class GalleryRun:
    """A run in a gallery: its title, its predictions and their scores."""

    title: str
    data: RunData
    rows: ScoreRows


def fill_gallery(
    selected: Sequence[SelectedSample],
    runs: Sequence[GalleryRun],
    *,
    dataset: Dataset | None = None,
    notes: Mapping[int, str] | None = None,
    grouped: bool = True,
) -> Gallery:
    """Cards for the selected samples, up to the size limit.

    dataset: that of the runs if None. notes: below the ground truth, by row. grouped: cards of one kind are adjacent.
    """
    dataset = dataset or runs[0].data.dataset
    frames: dict[str, CardImage] = {}

    def make_cards() -> Iterator[Card]:
        for kind, row in selected:
            sample = dataset[row]
            id = sample.image_id
            if id not in frames:
                load = functools.partial(dataset.open_image, id)
                frames[id] = make_card_image(
                    dataset.image(id), load, key=f"p{len(frames)}"
                )
            card = make_card(kind, row, sample, frame=frames[id], runs=runs)
            note = (notes or {}).get(row)
            yield card if note is None else _with_note(card, note)

    return collect_cards(make_cards(), grouped=grouped)


def collect_cards(cards: Iterable[Card], *, grouped: bool = True) -> Gallery:
    """Cards up to the size limit, the first ones first. grouped: cards of one kind are adjacent."""
    gallery = Gallery()
    used = 0
    shown: set[str] = set()
    kinds: dict[str, int] = {}
    for card in cards:
        kinds.setdefault(card.kind, len(kinds))
        size = card.bytes + (
            len(card.frame.uri or "") if card.frame.key not in shown else 0
        )
        if used + size > MAX_BYTES:
            gallery.left_out += 1
            continue
        used += size
        shown.add(card.frame.key)
        gallery.cards.append(card)
    if grouped:
        gallery.cards.sort(key=lambda card: kinds[card.kind])
    return gallery


def make_card_image(
    image: ImageInfo, load: Callable[[], Image.Image], *, key: str
) -> CardImage:
    """An image, small enough for a page; if it cannot be opened, a frame with the problem."""
    width, height = canvas_size(image.width, image.height)
    try:
        pixels = load()
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
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode(
        "ascii"
    )


def make_card(
    kind: str, row: int, sample: Sample, *, frame: CardImage, runs: Sequence[GalleryRun]
) -> Card:
    """One sample: the ground truth and the prediction of each run."""
    panels = [_ground_truth_panel(sample)]
    slices: dict[str, str] = {"mask_type": sample.mask_type}
    for run in runs:
        height, width = run.data.dataset.samples.size[row].tolist()
        prediction = run.data.prediction(row)
        panels.append(
            _prediction_panel(sample, prediction, (height, width), run=run, row=row)
        )
        for name, codes in run.rows.slices.items():
            slices[name] = shorten(str(codes.names[codes.codes[row]]), MAX_TAG)
    return Card(
        kind,
        shorten(sample.id, MAX_NAME),
        mark_cues(sample.question),
        frame,
        tuple(panels),
        slices,
    )


def _with_note(card: Card, note: str) -> Card:
    """The card with a further note below its first panel."""
    notes = [text for text in (card.panels[0].note, note) if text]
    first = replace(card.panels[0], note=shorten(" ".join(notes)))
    return replace(card, panels=(first, *card.panels[1:]))


def mark_cues(question: str) -> tuple[tuple[str, CueSpan | None], ...]:
    """A question, shortened for a card, in pieces: the words that decide about the mask type with their cue."""
    shortened = shorten(question)
    (intent,) = classify_intent([question])
    spans = [span for span in intent.spans if span.end < len(shortened)]
    if shortened == question:
        spans = list(intent.spans)
    return tuple(split_at_cues(shortened, spans))


# -- panels ------------------------------------------------------------------------------------------------------------


def _ground_truth_panel(sample: Sample) -> CardPanel:
    colors = list(range(len(sample.targets)))
    return CardPanel(
        title="Ground truth",
        shapes=make_shapes(sample.targets, colors, [""] * len(colors)),
        words=color_phrases(sample.answer, colors),
        mask_type=sample.mask_type,
        note=_too_many(len(sample.targets))
        if sample.targets
        else "No target: the right prediction is empty.",
        ignored=mask_to_path(sample.ignore) if sample.ignore is not None else None,
    )


def _prediction_panel(
    sample: Sample,
    prediction: Prediction | None,
    size: tuple[int, int],
    *,
    run: GalleryRun,
    row: int,
) -> CardPanel:
    rows = run.rows
    value = format_value(float(rows.value[row])) if rows.scored[row] else None
    reason = rows.reason.names[rows.reason.codes[row]]
    if prediction is None or prediction.error is not None:
        problem = (
            "No prediction." if prediction is None else f"Failed: {prediction.error}"
        )
        return CardPanel(title=run.title, value=value, note=shorten(problem))
    fits = all(
        mask.size == size for region in prediction.regions for mask in _masks(region)
    )
    regions = prediction.regions if fits else ()
    colors, overlaps = match_colors(sample, regions)
    ious = [
        f"IoU {format_value(overlap)} · " if sample.targets else ""
        for overlap in overlaps
    ]
    notes = [f"{iou}score {region.score:.2f}" for iou, region in zip(ious, regions)]
    remark = "" if reason is None else f"Without a score: {reason}."
    if prediction.no_target or not prediction.regions:
        remark = (
            f"Predicted: no target. {remark}"
            if prediction.no_target
            else f"No mask. {remark}"
        )
    return CardPanel(
        title=run.title,
        shapes=make_shapes(regions, colors, notes),
        words=color_phrases(prediction.answer, colors),
        mask_type=prediction.mask_type,
        wrong_type=_has_wrong_type(sample, prediction),
        value=value,
        note=shorten(remark.strip() or _too_many(len(regions)) or "") or None,
    )


def _has_wrong_type(sample: Sample, prediction: Prediction) -> bool:
    stated = prediction.mask_type
    return bool(sample.targets) and stated is not None and stated != sample.mask_type


def _masks(region: Drawable) -> list[Mask]:
    return [mask for mask in (region.visible, region.amodal) if mask is not None]


def _too_many(regions: int) -> str | None:
    return (
        f"{regions - MAX_REGIONS} more regions are not drawn."
        if regions > MAX_REGIONS
        else None
    )


def make_shapes(
    regions: Sequence[Drawable], colors: Sequence[int], notes: Iterable[str]
) -> tuple[RegionPaths, ...]:
    """The paths of regions, as many as are drawn, with their colors and notes."""
    return tuple(
        _shape(region, color, note)
        for region, color, note in list(zip(regions, colors, notes))[:MAX_REGIONS]
    )


def _shape(region: Drawable, color: int, note: str) -> RegionPaths:
    visible = region.visible
    amodal = region.amodal
    hidden = None if visible is None or amodal is None else amodal - visible
    return RegionPaths(
        color % len(PALETTE),
        shorten(region.name or "", MAX_NAME),
        note,
        *(
            None if mask is None else mask_to_path(mask)
            for mask in (visible, amodal, hidden)
        ),
    )


def match_colors(
    sample: Sample, regions: Sequence[PredictedRegion]
) -> tuple[list[int], list[float]]:
    """The color of each predicted region, which is that of its matched target if any, and its IoU with that target.

    The IoU is that of the requested mask type, for `both` the mean of the two; a missing mask counts as 0. Ignored
    pixels are left out, as in the metrics.
    """
    overlaps = np.zeros((len(regions), len(sample.targets)))
    types = ("visible", "amodal") if sample.mask_type == "both" else (sample.mask_type,)
    for mask_type in types:
        overlaps += _overlaps(regions, sample.targets, mask_type, sample.ignore) / len(
            types
        )
    colors = [len(sample.targets) + item for item in range(len(regions))]
    values = [0.0] * len(regions)
    index = MaskPairs.all(
        np.array([0, len(regions)]), np.array([0, len(sample.targets)])
    )
    for pair in match(index, overlaps.ravel()):
        item = int(index.pred[pair])
        target = int(index.target[pair])
        if overlaps[item, target] > 0:
            colors[item] = target
            values[item] = float(overlaps[item, target])
    return colors, values


def _overlaps(
    regions: Sequence[PredictedRegion],
    targets: Sequence[Region],
    mask_type: str,
    ignore: Mask | None,
) -> Float64Array:
    """IoU of every region with every target, float64 [regions, targets]."""
    known = [
        [
            (item, getattr(region, mask_type))
            for item, region in enumerate(side)
            if getattr(region, mask_type)
        ]
        for side in (regions, targets)
    ]
    out = np.zeros((len(regions), len(targets)))
    if known[0] and known[1]:
        pred, target = (
            Masks.from_masks(
                [mask if ignore is None else mask - ignore for _, mask in side]
            )
            for side in known
        )
        rows, columns = ([item for item, _ in side] for side in known)
        out[np.ix_(rows, columns)] = pairwise_iou(pred, target)
    return out


def color_phrases(
    answer: Answer | None, colors: Sequence[int]
) -> tuple[ColoredText, ...]:
    """An answer in parts; a phrase has the color of its region. Of overlapping phrases the first one counts."""
    if answer is None:
        return ()
    text = shorten(answer.text)
    end = 0
    pieces: list[ColoredText] = []
    for phrase in sorted(answer.phrases, key=lambda phrase: phrase.start):
        if phrase.start >= end and phrase.stop <= len(text) and phrase.regions:
            pieces += [(text[end : phrase.start], None)]
            pieces += [
                (
                    text[phrase.start : phrase.stop],
                    colors[phrase.regions[0]] % len(PALETTE),
                )
            ]
            end = phrase.stop
    return tuple(piece for piece in (*pieces, (text[end:], None)) if piece[0])
