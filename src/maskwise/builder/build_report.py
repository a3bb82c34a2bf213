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
"""Examples on the page: kept, flagged, and rejected for each reason."""


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
    used = [one for one in summary.filters if one.rejected or one.not_checked]
    return render(
        "build.html",
        summary=summary,
        name=Path(summary.build.out).name,
        filters=used,
        unused=[one.name.lower() for one in summary.filters if one not in used],
        share=lambda count: round(100 * count / written, 2),
        statuses=make_histogram(summary.build.usage.statuses),
        histograms=_histograms(summary.statistics),
        gallery=_gallery(select_examples(result), images),
    )


def _histograms(found: BuildStatistics) -> list[tuple[str, list[HistogramBar]]]:
    """Charts with titles, those with bars only."""
    charts = {
        "Question types": found.question_types,
        "Mask types": found.mask_types,
        "Targets per question": found.targets_per_question,
        "Questions per image": found.questions_per_image,
        "Hidden share of the targets": found.occlusion,
        "Words per question": found.words_per_question,
        "Words per answer": found.words_per_answer,
        f"Categories of the targets ({len(found.categories)} of {found.category_count})": found.categories,
        **{
            shorten(slice_label(name), MAX_NAME): values
            for name, values in found.tags.items()
        },
    }
    made = ((title, make_histogram(_trim(counts))) for title, counts in charts.items())
    return [(title, bars) for title, bars in made if bars]


def _trim(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts without zeros at the end."""
    last = max(
        (place for place, count in enumerate(counts.values()) if count), default=-1
    )
    return dict(list(counts.items())[: last + 1])


def select_examples(result: FilterResult) -> list[Example]:
    """Kept, flagged and rejected drafts in turn, at random but repeatable, from different images where possible."""
    flagged = {id(flag.draft) for flag in result.flags}
    rejected = [
        Example("rejected", one.draft, one.reason, one.detail)
        for one in result.rejected
    ]
    chosen = [
        _choose(
            [
                Example("kept", draft)
                for draft in result.kept
                if id(draft) not in flagged
            ],
            KEPT,
        ),
        _choose(
            [
                Example("flagged", one.draft, one.reason, one.detail)
                for one in result.flags
            ],
            FLAGGED,
        ),
        [
            example
            for count in result.counts
            for example in _choose(
                [found for found in rejected if found.reason == count.reason],
                PER_REASON,
            )
        ],
    ]
    return [example for examples in chosen for example in examples]


def _choose(examples: Sequence[Example], count: int) -> list[Example]:
    order = [
        examples[place]
        for place in np.random.default_rng(0).permutation(len(examples)).tolist()
    ]
    first = {example.draft.image_id: example for example in reversed(order)}
    ours = {id(example) for example in first.values()}
    return sorted(order, key=lambda example: id(example) not in ours)[:count]


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
        shorten(draft.question),
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
