"""The summary of a build counts what was written, rejected, flagged and kept."""

import msgspec

from maskwise.builder.build_summary import (
    BuildFacts,
    BuildSummary,
    WriterUsage,
    summarize_build,
)
from maskwise.builder.draft import SourceImage
from maskwise.builder.filters import apply_filters
from maskwise.schema import ImageInfo
from tests.builder.filters.drafts import IMAGES, make_draft

EMPTY = SourceImage(ImageInfo(id="empty", width=20, height=10), ())
DRAFTS = [
    make_draft(tags={"level": "object"}),
    make_draft("What holds hot drinks?", mask_type="amodal", tags={"level": "object"}),
    make_draft("Which cup?"),
    make_draft(
        "Put it where we dine.",
        "Put the cup on the table.",
        {"the cup": ("cup",), "the table": ("table",)},
        kind="referring",
    ),
]


def summarize() -> BuildSummary:
    usage = WriterUsage(writer="openai", model="m", statuses={"ok": 3, "refused": 1})
    facts = BuildFacts(recipe="r2sm", source="coco", out="made", usage=usage)
    return summarize_build(
        apply_filters(DRAFTS, IMAGES), IMAGES | {"empty": EMPTY}, build=facts
    )


def test_counts_add_up() -> None:
    found = summarize()
    assert (found.written, found.rejected, found.kept, found.flagged) == (4, 1, 3, 0)
    assert (found.images, found.images_kept) == (2, 1)
    assert found.build.usage.calls == 4
    assert {one.reason: one.rejected for one in found.filters if one.rejected} == {
        "category-leak": 1
    }


def test_statistics_describe_kept_questions() -> None:
    found = summarize().statistics
    assert found.questions_per_image == {"0": 1, "3": 1}
    assert found.targets_per_question == {"1": 2, "2": 1}
    assert found.occlusion["none"] == 1
    assert found.occlusion["25 % to 50 %"] == 1
    assert sum(found.words_per_question.values()) == 3
    assert found.words_per_question["1 to 5"] == 2
    assert found.words_per_question["6 to 10"] == 1
    assert found.question_types == {"reasoning": 2, "referring": 1}
    assert found.mask_types == {"visible": 2, "amodal": 1}
    assert found.categories == {"cup": 1, "dining table": 1}
    assert found.tags == {"level": {"object": 2}}


def test_a_build_without_questions_has_a_summary() -> None:
    facts = BuildFacts(recipe="r2sm", source="coco", out="made")
    found = summarize_build(apply_filters([], IMAGES), IMAGES, build=facts)
    assert (found.written, found.kept) == (0, 0)
    assert found.statistics.occlusion == {}


def test_the_summary_is_its_json_form() -> None:
    found = summarize()
    assert msgspec.json.decode(msgspec.json.encode(found), type=BuildSummary) == found
