"""The report of a build is one offline page with yield, cost, statistics and examples, and a JSON file."""

import re
from pathlib import Path

import msgspec
import numpy as np
from PIL import Image

from maskwise.builder.build_report import (
    KEPT,
    PER_REASON,
    build_to_html,
    select_examples,
    write_build_report,
)
from maskwise.builder.build_summary import (
    BuildFacts,
    BuildSummary,
    FailureReason,
    WriterFailure,
    WriterUsage,
    summarize_build,
)
from maskwise.builder.draft import SourceImage
from maskwise.builder.filters import FilterResult, apply_filters
from tests.builder.filters.drafts import IMAGE, IMAGES, make_draft

HOSTILE = "<script>alert(1)</script>"
DRAFTS = [
    make_draft(),
    make_draft(f"What is {HOSTILE} for?", tags={"level": HOSTILE}),
    make_draft("Which cup is it?"),
    make_draft(
        "Which one?", targets={"the cup": ("cup", "nowhere"), "the saucer": ("gone",)}
    ),
]
FAILURE = WriterFailure(image_id=HOSTILE, status="refused", reason=HOSTILE)
USAGE = WriterUsage(
    writer="openai",
    model=HOSTILE,
    input_tokens=12_000,
    output_tokens=900,
    cost=0.25,
    statuses={"ok": 9, "refused": 1},
    unanswered=3,
    unanswered_cost=0.125,
    failures=(FAILURE,),
    reasons=(FailureReason(count=4, example=FAILURE),),
)


def build(usage: WriterUsage = USAGE) -> tuple[BuildSummary, FilterResult]:
    result = apply_filters(DRAFTS, IMAGES)
    facts = BuildFacts(
        recipe="r2sm",
        source="coco",
        out="made",
        usage=usage,
        options={"limit": HOSTILE},
    )
    return summarize_build(result, IMAGES, build=facts), result


def visible_text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("<main")[2]))


def test_page_and_json_are_written(tmp_path: Path) -> None:
    summary, result = build()
    page = write_build_report(tmp_path, summary, result, images=IMAGES)
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert (
        msgspec.json.decode((tmp_path / "build.json").read_bytes(), type=BuildSummary)
        == summary
    )


def test_page_states_yield_reasons_and_cost() -> None:
    summary, result = build()
    text = visible_text(build_to_html(summary, result, images=IMAGES))
    assert "50.0 % of the questions written" in text
    assert re.search(r"Unknown target [^.]*\. unknown-target 1 3", text)
    assert "category-leak: &#39;cup&#39; reveals the target &#39;cup&#39;" in text
    assert "2 not checked" in text
    assert "$0.2500" in text
    assert re.search(r"refused 1 10.0 %", text)


def test_texts_are_escaped_and_nothing_is_loaded() -> None:
    summary, result = build()
    page = build_to_html(summary, result, images=IMAGES)
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


def test_the_grammar_writer_has_no_section_of_calls() -> None:
    summary, result = build(WriterUsage())
    assert 'id="writer"' not in build_to_html(summary, result, images=IMAGES)


def test_images_are_shown_where_there_are_pixels() -> None:
    pixels = Image.fromarray(np.zeros((100, 200, 3), np.uint8))
    seen = SourceImage(IMAGE.info, IMAGE.regions, pixels.copy)
    summary, result = build()
    assert "data:image/jpeg" in build_to_html(summary, result, images={"im": seen})
    assert "has no pixels" in build_to_html(summary, result, images=IMAGES)


def test_an_empty_build_has_a_page() -> None:
    result = apply_filters([], {})
    summary = summarize_build(
        result, {}, build=BuildFacts(recipe="r2sm", source="a", out="b")
    )
    text = visible_text(build_to_html(summary, result, images={}))
    assert "no question was written" in text
    assert "There is no sample to show." in text


def test_examples_come_from_different_images_and_all_reasons() -> None:
    images = {
        str(number): SourceImage(IMAGE.info, IMAGE.regions)
        for number in range(2 * KEPT)
    }
    drafts = [make_draft(image_id=id) for id in images for _ in range(2)]
    drafts += [make_draft("Which cup?", image_id=id) for id in images]
    examples = select_examples(apply_filters(drafts, images))
    kept = [one.draft.image_id for one in examples if one.kind == "kept"]
    assert len(set(kept)) == len(kept) == KEPT
    reasons = [one.reason for one in examples if one.kind == "rejected"]
    assert reasons == ["category-leak"] * PER_REASON + ["near-duplicate"] * PER_REASON
