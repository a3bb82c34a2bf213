"""Questions that other images have too are capped, and what text alone gets is measured."""

import msgspec

from maskwise.builder.draft import Draft
from maskwise.builder.filters import FilterOptions, apply_filters, limit_repeats
from maskwise.builder.filters.repeats import REASON, content_words
from maskwise.builder.logical_forms import HasFact, OfKind, encode_form
from maskwise.builder.text_baseline import measure_text_alone
from tests.builder.filters.drafts import IMAGE, IMAGES, make_draft

DRINK = "What could someone sip tea from?"


def about(image: str, question: str = DRINK, **fields: object) -> Draft:
    return make_draft(question, image_id=image, **fields)


def keep(drafts: list[Draft], **options: float) -> tuple[list[str], list[str]]:
    """The images of the drafts that are kept and of those that are rejected."""
    empty = apply_filters([], IMAGES)
    result = limit_repeats(
        msgspec.structs.replace(empty, kept=tuple(drafts)),
        FilterOptions(**options),  # type: ignore[arg-type]
    )
    assert result.counts[-1].reason == REASON
    assert result.counts[-1].rejected == len(result.rejected)
    kept = [draft.image_id for draft in result.kept]
    return kept, [finding.draft.image_id for finding in result.rejected]


def test_a_string_is_kept_as_often_as_the_cap_allows() -> None:
    drafts = [about(str(n)) for n in range(5)]
    assert keep(drafts) == (["0", "1"], ["2", "3", "4"])
    assert keep(drafts, max_repeats=1)[0] == ["0"]


def test_the_same_content_in_other_frames_is_capped_too() -> None:
    frames = (
        "What",
        "Which thing",
        "Find what",
        "Show me what",
        "Tell me what",
        "Mark what",
    )
    drafts = [
        about(str(n), f"{frame} purrs on the windowsill?")
        for n, frame in enumerate(frames)
    ]
    assert keep(drafts)[0] == ["0", "1", "2", "3"]
    assert content_words(drafts[0].question) == {"purrs", "windowsill"}


def test_a_minimal_pair_is_kept_or_rejected_together() -> None:
    pairs = [
        about(str(n), question, tags={"cue_pair": "1 referring"})
        for n in range(3)
        for question in ("Mark the visible part.", f"Mark the whole thing {n}.")
    ]
    assert keep(pairs) == (["0", "0", "1", "1"], ["2", "2"])


def test_targets_that_do_not_fulfil_the_form_are_rejected() -> None:
    purrs = encode_form(HasFact("does: purr when stroked"))
    wrong = make_draft(tags={"logical_form": purrs})
    (finding,) = apply_filters([wrong], IMAGES).rejected
    assert finding.reason == "logical-form"
    assert "'cat' fulfils the question too" in finding.detail
    drink = encode_form(OfKind("drinking vessel"))
    right = make_draft(tags={"logical_form": drink})
    assert apply_filters([right], IMAGES).kept == (right,)


def test_a_form_that_cannot_be_read_rejects_its_question() -> None:
    for text in ("{", '{"type":"fact","fact":"no such fact"}'):
        draft = make_draft(tags={"logical_form": text})
        (finding,) = apply_filters([draft], IMAGES).rejected
        assert finding.reason == "logical-form"
        assert "cannot be read" in finding.detail


def test_text_alone_guesses_from_other_images_only() -> None:
    cat = {"the cat": ("cat",)}
    drafts = [
        about("a"),
        about("b"),
        about("c", targets=cat, answer="Use the cat."),
        about("d", "Who meows at night?", targets=cat, answer="It is the cat."),
    ]
    images = dict.fromkeys("abcd", IMAGE)
    # "cup" is guessed for a, b and c: the others of each are (cup, cat), (cup, cat), (cup, cup).
    baseline = measure_text_alone(drafts, images)
    assert (baseline.questions, baseline.repeated, baseline.by_string) == (4, 3, 2)
    assert baseline.by_content == 2
    assert measure_text_alone([], {}).questions == 0
