"""The report of a build: one offline HTML page with yield, cost, statistics and examples, and build.json."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from PIL import Image

from maskwise.builder.build_summary import BuildStatistics, BuildSummary
from maskwise.builder.draft import Draft, SourceImage, find_phrases
from maskwise.builder.filters import FilterResult
from maskwise.errors import ImageError
from maskwise.report.charts import HistogramBar, make_histogram
from maskwise.report.formatting import shorten
from maskwise.report.gallery import (
    MAX_NAME,
    MAX_TAG,
    Card,
    CardImage,
    CardPanel,
    Gallery,
    collect_cards,
    color_phrases,
    make_card_image,
    make_shapes,
    mark_cues,
)
from maskwise.report.metric_labels import slice_label
from maskwise.report.render import render
from maskwise.schema import Answer, Phrase
from maskwise.store.atomic import atomic_write

PAGE = "build.html"
SUMMARY = "build.json"
KEPT = 30
FLAGGED = 12
PER_REASON = 4
"""Examples on the page: kept, flagged, and rejected for each reason:
few enough for a person to look through."""


class Example(NamedTuple):
    """A draft to show. note: why it was rejected or flagged."""

    kind: str
    draft: Draft
    reason: str | None = None
    note: str | None = None


def write_build_report(
    folder: str | os.PathLike[str],
    summary: BuildSummary,
    result: FilterResult,
    *,
    images: Mapping[str, SourceImage],
) -> Path:
    """Write build.json and build.html to an existing folder; returns the path of the page."""
    page = Path(folder) / PAGE
    encoded = msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n"
    texts = {
        Path(folder) / SUMMARY: encoded,
        page: build_to_html(summary, result, images=images).encode(),
    }
    for path, text in texts.items():
        with atomic_write(path) as file:
            file.write(text)
    return page


def build_to_html(
    summary: BuildSummary, result: FilterResult, *, images: Mapping[str, SourceImage]
) -> str:
    """One offline page below 10 MB."""
    written = max(1, summary.written)
    used = [count for count in summary.filters if count.rejected or count.not_checked]
    return render(
        "build.html",
        summary=summary,
        name=Path(summary.build.out).name,
        filters=used,
        unused=[count.name.lower() for count in summary.filters if count not in used],
        share=lambda count: round(100 * count / written, 2),
        statuses=make_histogram(summary.build.usage.statuses),
        histograms=_histograms(summary.statistics),
        gallery=_gallery(select_examples(result), images),
    )


def _histograms(statistics: BuildStatistics) -> list[tuple[str, list[HistogramBar]]]:
    """Charts with titles, those with bars only."""
    listed = f"{len(statistics.categories)} of {statistics.category_count}"
    charts = {
        "Question types": statistics.question_types,
        "Mask types": statistics.mask_types,
        "Targets per question": statistics.targets_per_question,
        "Questions per image": statistics.questions_per_image,
        "Hidden share of the targets": statistics.occlusion,
        "Words per question": statistics.words_per_question,
        "Words per answer": statistics.words_per_answer,
        f"Categories of the targets ({listed})": statistics.categories,
    }
    for name, values in statistics.tags.items():
        charts[shorten(slice_label(name), MAX_NAME)] = values
    histograms = []
    for title, counts in charts.items():
        bars = make_histogram(_trim(counts))
        if bars:
            histograms.append((title, bars))
    return histograms


def _trim(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts without zeros at the end."""
    items = list(counts.items())
    while items and not items[-1][1]:
        items.pop()
    return dict(items)


def select_examples(result: FilterResult) -> list[Example]:
    """Kept, flagged and rejected drafts in turn, at random but repeatable, from different images where possible."""
    flagged_drafts = {id(flag.draft) for flag in result.flags}
    kept = [
        Example("kept", draft)
        for draft in result.kept
        if id(draft) not in flagged_drafts
    ]
    flagged = [
        Example("flagged", flag.draft, flag.reason, flag.detail)
        for flag in result.flags
    ]
    examples = [*_choose(kept, KEPT), *_choose(flagged, FLAGGED)]
    for count in result.counts:
        rejected = [
            Example("rejected", rejection.draft, rejection.reason, rejection.detail)
            for rejection in result.rejected
            if rejection.reason == count.reason
        ]
        examples += _choose(rejected, PER_REASON)
    return examples


def _choose(examples: Sequence[Example], count: int) -> list[Example]:
    """Up to `count` examples in random order; those that repeat an image come last."""
    order = np.random.default_rng(0).permutation(len(examples)).tolist()
    shuffled = [examples[place] for place in order]
    first_of_image: list[Example] = []
    others: list[Example] = []
    images: set[str] = set()
    for example in shuffled:
        is_first = example.draft.image_id not in images
        images.add(example.draft.image_id)
        (first_of_image if is_first else others).append(example)
    return [*first_of_image, *others][:count]


def _gallery(examples: Iterable[Example], images: Mapping[str, SourceImage]) -> Gallery:
    frames: dict[str, CardImage] = {}

    def make_cards() -> Iterator[Card]:
        for example in examples:
            image = images[example.draft.image_id]
            if image.info.id not in frames:
                frames[image.info.id] = _make_frame(image, key=f"p{len(frames)}")
            yield make_example_card(example, image, frames[image.info.id])

    return collect_cards(make_cards())


def _make_frame(image: SourceImage, *, key: str) -> CardImage:
    def load() -> Image.Image:
        if image.load is None:
            raise ImageError(f"image {image.info.id!r} has no pixels")
        return image.load()

    return make_card_image(image.info, load, key=key)


def make_example_card(example: Example, image: SourceImage, frame: CardImage) -> Card:
    """A draft with those of its targets that the image has."""
    draft = example.draft
    regions = [image.by_id[id] for id in draft.region_ids if id in image.by_id]
    colors = list(range(len(regions)))
    panel = CardPanel(
        title=f"{draft.kind} question",
        shapes=make_shapes(regions, colors, [""] * len(regions)),
        words=color_phrases(_answer(draft, [region.id for region in regions]), colors),
        mask_type=draft.mask_type,
        note=None
        if example.reason is None
        else f"{example.reason}: {shorten(example.note or '')}",
    )
    slices = {"mask_type": draft.mask_type, "question_type": draft.kind, **draft.tags}
    if example.reason is not None:
        slices["reason"] = example.reason
    return Card(
        example.kind,
        shorten(draft.image_id, MAX_NAME),
        mark_cues(draft.question),
        frame,
        (panel,),
        {name: shorten(value, MAX_TAG) for name, value in slices.items()},
    )


def _answer(draft: Draft, known: Sequence[str]) -> Answer:
    """The answer with the phrases that are in it, and their regions that the image has."""
    spans = find_phrases(draft.answer, [target.phrase for target in draft.targets])
    phrases = tuple(
        Phrase(
            start=span[0],
            stop=span[1],
            regions=tuple(known.index(id) for id in target.regions if id in known),
        )
        for target, span in zip(draft.targets, spans)
        if span is not None
    )
    return Answer(text=draft.answer, phrases=phrases)
