"""Each filter rejects what it is for; the first reason counts, and counts add up."""

from collections.abc import Iterable, Sequence
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwise.builder.draft import Draft, draft_to_sample
from maskwise.builder.filters import (
    FilterOptions,
    FilterResult,
    apply_filters,
    load_filters,
)
from maskwise.writers import Completion, CompletionRequest
from tests.builder.filters.drafts import IMAGE, IMAGES, make_draft


def reason(draft: Draft, **options: float) -> str | None:
    result = apply_filters([draft], IMAGES, FilterOptions(**options))
    return result.rejected[0].reason if result.rejected else None


def count(result: FilterResult, code: str) -> tuple[int, int, int]:
    (found,) = [count for count in result.counts if count.reason == code]
    return found.reached, found.rejected, found.not_checked


def test_a_good_draft_is_kept() -> None:
    draft = make_draft()
    result = apply_filters([draft], IMAGES, leaked={})
    assert (result.kept, result.rejected, result.flags) == ((draft,), (), ())
    assert [one.reason for one in result.counts] == [
        one.reason for one in load_filters()
    ]


@pytest.mark.parametrize(
    ("expected", "draft"),
    [
        ("unknown-target", make_draft(targets={"the cup": ("cup", "7")})),
        ("phrase-mismatch", make_draft(targets={})),
        ("phrase-mismatch", make_draft(targets={"the mug": ("cup",)})),
        ("phrase-mismatch", make_draft(targets={"the cup": ()})),
        ("phrase-mismatch", make_draft(targets={" ": ("cup",)})),
        (
            "phrase-mismatch",
            make_draft(
                answer="The cup on it.", targets={"it": ("table",), "The cup": ("cup",)}
            ),
        ),
        (
            "phrase-mismatch",
            make_draft(
                answer="The cup, a vessel.",
                targets={"The cup": ("cup",), "a vessel": ("cup",)},
            ),
        ),
        (
            "missing-mask",
            make_draft(answer="It.", targets={"It": ("handle",)}, mask_type="amodal"),
        ),
        (
            "missing-mask",
            make_draft(answer="It.", targets={"It": ("handle",)}, mask_type="both"),
        ),
        (
            "small-target",
            make_draft("What holds paper?", "The pin.", {"The pin": ("pin",)}),
        ),
        ("hidden-target", make_draft("What purrs?", "The cat.", {"The cat": ("cat",)})),
        (
            "truncated-target",
            make_draft(
                "What is it?", "The bus.", {"The bus": ("bus",)}, mask_type="amodal"
            ),
        ),
        (
            "unoccluded-amodal",
            make_draft(
                "Where do we eat?",
                "The table.",
                {"The table": ("table",)},
                mask_type="amodal",
            ),
        ),
        ("coordinates", make_draft("What is at (20, 20)?", kind="referring")),
        ("category-leak", make_draft("Which cup holds tea?")),
        (
            "answer-leak",
            make_draft("Which vessel?", "The vessel.", {"The vessel": ("cup",)}),
        ),
        ("toxic-words", make_draft("What is this shit?")),
    ],
)
def test_each_filter_gives_its_reason(expected: str, draft: Draft) -> None:
    assert reason(draft) == expected


def test_names_are_allowed_in_referring_questions() -> None:
    assert reason(make_draft("Segment the cup.", kind="referring")) is None


def test_the_object_of_a_part_must_not_be_named() -> None:
    part = {"answer": "The handle.", "targets": {"The handle": ("handle",)}}
    assert (
        reason(make_draft("Which part of the cup do I hold?", **part))
        == "category-leak"
    )
    assert reason(make_draft("Where do I put my fingers?", **part)) is None


def test_one_occluded_target_is_enough_for_an_amodal_question() -> None:
    targets = {"the cup": ("cup",), "the table": ("table",)}
    draft = make_draft(
        answer="It is the cup on the table.",
        targets=targets,
        question="What is it?",
        mask_type="amodal",
    )
    assert reason(draft) is None
    assert reason(draft, min_occlusion=0.6) == "unoccluded-amodal"


def test_thresholds_are_options() -> None:
    pin = make_draft("What holds paper?", "The pin.", {"The pin": ("pin",)})
    cat = make_draft("What purrs?", "The cat.", {"The cat": ("cat",)})
    bus = make_draft(
        "What is it?", "The bus.", {"The bus": ("bus",)}, mask_type="amodal"
    )
    assert reason(pin, min_area=0.0001) is None
    assert reason(cat, max_occlusion=0.96) is None
    assert reason(bus, max_border=0.8) is None


def test_the_border_is_no_matter_for_visible_masks() -> None:
    assert reason(make_draft("What is it?", "The bus.", {"The bus": ("bus",)})) is None


def test_the_first_reason_counts() -> None:
    result = apply_filters(
        [
            make_draft("Which cup holds this shit?"),
            make_draft(),
            make_draft("Give me tea?"),
        ],
        IMAGES,
        leaked={},
    )
    assert [(one.reason, one.detail) for one in result.rejected] == [
        ("category-leak", "'cup' reveals the target 'cup'")
    ]
    assert count(result, "category-leak") == (3, 1, 0)
    assert count(result, "toxic-words") == (2, 0, 0)


def test_near_duplicates_are_rejected_for_the_same_targets_only() -> None:
    question = "Which item on the desk would someone drink hot tea from?"
    similar = "Which item on this desk would somebody drink hot tea from?"
    drafts = [
        make_draft(question),
        make_draft(similar),
        make_draft(similar.replace("somebody", "anybody"), mask_type="both"),
        make_draft(
            similar.replace("somebody", "people"),
            answer="It is the table.",
            targets={"the table": ("table",)},
        ),
        make_draft(
            question + "!", answer="It is the table.", targets={"the table": ("table",)}
        ),
        make_draft("What could be filled with coffee?"),
    ]
    result = apply_filters(drafts, IMAGES, FilterOptions(max_similarity=0.7))
    assert [one.draft for one in result.rejected] == [drafts[1], drafts[4]]
    assert {one.reason for one in result.rejected} == {"near-duplicate"}


def test_rejected_questions_make_no_duplicates() -> None:
    toxic = make_draft(answer="You could use the cup, bastard.")
    result = apply_filters([toxic, make_draft()], IMAGES)
    assert [one.reason for one in result.rejected] == ["toxic-words"]


def test_leaked_images_are_rejected_and_counted() -> None:
    result = apply_filters(
        [make_draft()], IMAGES, leaked={"im": "near-identical to image '3' of coco"}
    )
    assert result.rejected[0].detail == "near-identical to image '3' of coco"
    assert count(result, "leaked-image") == (1, 1, 0)
    assert count(apply_filters([make_draft()], IMAGES), "leaked-image") == (1, 0, 1)


def answers(**objects: list[str]) -> object:
    """A writer that answers each question with the objects given for its first word, with certainty."""

    def ask(requests: Sequence[CompletionRequest]) -> Iterable[Completion]:
        for request in requests:
            word = request.text.split()[1]
            if word in objects:
                output = {"objects": objects[word], "certain": True}
                yield Completion(status="ok", output=output)
            else:
                yield Completion(status="refused", reason="no")

    return ask


def test_questions_that_need_no_image_are_rejected() -> None:
    drafts = [
        make_draft("What holds tea?"),
        make_draft("Where would tea go?"),
        make_draft("Guess what I drink from?"),
        make_draft("The cup.", kind="referring"),
    ]
    ask = answers(What=["a mug"], Where=["kettle"])
    result = apply_filters(drafts, IMAGES, ask=ask)
    assert [one.draft for one in result.rejected] == drafts[:1]
    assert result.rejected[0].detail == "answered without the image: a mug"
    assert count(result, "blind-answer") == (4, 1, 1)


def test_without_a_writer_to_ask_questions_are_not_checked() -> None:
    result = apply_filters(
        [make_draft(), make_draft("The cup.", kind="referring")], IMAGES
    )
    assert count(result, "blind-answer") == (2, 0, 1)


def test_every_target_must_be_named_to_answer_without_the_image() -> None:
    targets = {"the cup": ("cup",), "the table": ("table",)}
    draft = make_draft("What holds tea?", "It is the cup on the table.", targets)
    assert apply_filters([draft], IMAGES, ask=answers(What=["cup"])).kept == (draft,)
    assert (
        apply_filters([draft], IMAGES, ask=answers(What=["Cup", "Tables"])).kept == ()
    )


def test_wording_of_another_mask_type_is_flagged_and_kept() -> None:
    def classify(questions: Sequence[str]) -> list[SimpleNamespace]:
        return [SimpleNamespace(mask_type="amodal", probability=0.9) for _ in questions]

    drafts = [
        make_draft(),
        make_draft("What?", mask_type="both"),
        make_draft("All of?", mask_type="amodal"),
    ]
    result = apply_filters(drafts, IMAGES, classify=classify)
    assert len(result.kept) == 3
    assert [flag.draft for flag in result.flags] == drafts[:1]
    assert "amodal" in result.flags[0].detail
    strict = FilterOptions(min_wording_probability=0.95)
    assert not apply_filters(drafts, IMAGES, strict, classify=classify).flags


DRAFTS = st.builds(
    make_draft,
    question=st.sampled_from(
        ["What holds tea?", "What holds hot tea?", "The cup?", "It's at [1, 2, 3, 4]"]
    )
    | st.text(max_size=40),
    answer=st.sampled_from(["the cup", "the cup and the table", ""])
    | st.text(max_size=20),
    targets=st.dictionaries(
        st.sampled_from(["the cup", "the table", ""]),
        st.lists(st.sampled_from([*IMAGE.by_id, "?"]), max_size=2).map(tuple),
        max_size=2,
    ),
    mask_type=st.sampled_from(["visible", "amodal", "both"]),
    kind=st.sampled_from(["referring", "reasoning"]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(DRAFTS, max_size=8))
def test_any_drafts_are_sorted_into_kept_and_rejected(drafts: list[Draft]) -> None:
    result = apply_filters(drafts, IMAGES)
    assert len(result.kept) + len(result.rejected) == len(drafts)
    assert sum(one.rejected for one in result.counts) == len(result.rejected)
    assert all(
        after.reached == one.reached - one.rejected
        for one, after in zip(result.counts, result.counts[1:])
    )
    for number, draft in enumerate(result.kept):
        assert draft_to_sample(draft, IMAGE, str(number)).targets
    assert apply_filters(result.kept, IMAGES).kept == result.kept
