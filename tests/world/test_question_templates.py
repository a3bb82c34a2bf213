"""Which words want which mask: the families obey the rule, on sentences a person wrote."""

import re
from collections import Counter

import pytest

from maskwise.world.question_templates import (
    FAMILIES,
    PRONOUNS,
    TemplateSlots,
    fill_template,
    template_slots,
    usable_templates,
)

BOX = TemplateSlots("the red mug", "what could I drink from", "the box")
BOTH = TemplateSlots("the mug and the bowl", plural=True)

EXAMPLES = [
    # Plain questions want what is seen.
    ("Segment the red mug.", "visible"),
    ("Where is the elephant?", "visible"),
    ("What could I drink from? Show me.", "visible"),
    ("Could you mark something to sit on for me?", "visible"),
    # So do questions that mention hiding to say where a thing is.
    ("Segment the mug behind the teapot.", "visible"),
    ("Find the object half hidden by the box.", "visible"),
    ("What is behind the lamp?", "visible"),
    ("Outline the lamp tucked behind the sofa.", "visible"),
    ("Look over the whole image and mark the mug.", "visible"),
    ("Pretend to be a robot and point at the lamp.", "visible"),
    ("I am about to remove the box from the image, so mark it.", "visible"),
    # Or to rule the hidden part out.
    ("Mask the red mug without the hidden parts.", "visible"),
    ("Do not guess what is hidden: mark the broom as shown.", "visible"),
    ("The box covers part of the lamp; mark what is left in view.", "visible"),
    ("Segment the lamp, but not the part that the box hides.", "visible"),
    ("I do not need the chair in full, only the part in view.", "visible"),
    ("Not the entire shape of the chair, just what shows.", "visible"),
    # The whole shape is asked for in so many words.
    ("Segment the whole of the mug, including the hidden parts.", "amodal"),
    ("Give the complete shape of the chair.", "amodal"),
    ("Segment the lamp and also the part that the box hides.", "amodal"),
    ("Not just the visible part of the chair: all of it.", "amodal"),
    # Or without any word for hiding.
    ("Suppose the box were gone: outline the lamp.", "amodal"),
    ("Pretend the view were clear and mark the sofa.", "amodal"),
    ("If all other things were removed, where would the mug be?", "amodal"),
    ("Carry the outline of the lamp on where it breaks off.", "amodal"),
    ("Make a full cut-out of the clock, nothing missing.", "amodal"),
    ("Mark the guitar as if you had X-ray eyes.", "amodal"),
    ("What could I sit on? I want its full shape.", "amodal"),
]


def matcher(template: str) -> re.Pattern[str]:
    """A template as a pattern: slots match any words."""
    literal = re.split(r"({\w+})", template)
    pattern = "".join(
        ".*?" if piece.startswith("{") else re.escape(piece) for piece in literal
    )
    return re.compile(pattern, re.I | re.S)


def literal_length(template: str) -> int:
    return len(re.sub(r"{\w+}", "", template))


@pytest.mark.parametrize(("sentence", "intent"), EXAMPLES)
def test_sentences_belong_to_families_of_their_intent(
    sentence: str, intent: str
) -> None:
    fits = [
        (literal_length(template), family.intent)
        for family in FAMILIES
        for template in family.templates
        if matcher(template).fullmatch(sentence)
    ]
    assert fits, "no family has this sentence"
    closest = max(length for length, _ in fits)
    assert {found for length, found in fits if length == closest} == {intent}


WHOLE = (
    r"whole|hidden parts too|in full|complete|entire|occluded|hidden from view|amodal|full|all of|not only|unseen|"
    r"nothing|clear|removed|gone|away|aside|behind|cuts|hides|fill|reconstruct|true|x-ray|through|glass|transparent|"
    r"altogether|regardless|whatever|unbroken|alone|as if|nobody|breaks off|interrupted|overlap|pieces|empty|"
    r"everything else|real|no matter"
)


def test_amodal_wordings_ask_for_more_than_is_seen() -> None:
    for family in FAMILIES:
        if family.intent == "amodal":
            for template in family.templates:
                assert re.search(WHOLE, template, re.I), template


def test_visible_wordings_never_ask_for_the_hidden() -> None:
    """What is hidden occurs in visible wordings only together with a refusal of it."""
    refusal = r"\bnot\b|\bno\b|without|skip|leave|ignore|only|just|never mind|nothing invented|visible|up to|in view"
    for family in FAMILIES:
        if family.intent == "visible":
            for template in family.templates:
                if re.search(
                    r"hidden|hides|occluded|concealed|\bcovered", template, re.I
                ):
                    assert re.search(refusal, template, re.I), template


def test_families_and_templates_are_distinct() -> None:
    names = Counter(family.name for family in FAMILIES)
    templates = Counter(
        template for family in FAMILIES for template in family.templates
    )
    assert max(names.values()) == max(templates.values()) == 1
    assert sum(templates.values()) >= 120


def test_slots_are_known() -> None:
    known = {"np", "ask", "Ask", "front", *PRONOUNS[False]}
    for family in FAMILIES:
        for template in family.templates:
            assert template_slots(template) <= known, template
            assert template_slots(template) & {"np", "ask", "Ask"}, template


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("intent", ["visible", "amodal"])
def test_every_intent_has_families_for_every_question(
    intent: str, held_out: bool
) -> None:
    for wording in (BOX, BOTH, TemplateSlots("the elephant")):
        found = usable_templates(wording, intent, held_out=held_out)  # type: ignore[arg-type]
        assert len(found) >= 3
        assert all(
            family.held_out == held_out and family.intent == intent
            for family, _ in found
        )
        for _, templates in found:
            for template in templates:
                text = fill_template(template, wording)
                assert "{" not in text
                assert text[0] == text[0].upper()
    with_ask = usable_templates(BOX, intent, held_out=held_out)  # type: ignore[arg-type]
    assert any(family.name.startswith("ask") for family, _ in with_ask)
    without = usable_templates(BOTH, intent, held_out=held_out)  # type: ignore[arg-type]
    assert not any(family.name.startswith("ask") for family, _ in without)


def test_parts_are_not_taken_off_their_object() -> None:
    for intent in ("visible", "amodal"):
        handle = TemplateSlots(
            "the handle of the mug", "what would you hold", "the box", part=True
        )
        assert not any(
            family.whole
            for family, _ in usable_templates(handle, intent, held_out=False)
        )  # type: ignore[arg-type]
    assert any(family.whole for family in FAMILIES)


def test_words_agree_in_number() -> None:
    template = "Where {is} {np}? Mark {it} and {its} edges; {they} would fill{s} it, {does} it?"
    one = fill_template(template, BOX)
    many = fill_template(template, BOTH)
    assert (
        one
        == "Where is the red mug? Mark it and its edges; it would fills it, does it?"
    )
    assert (
        many
        == "Where are the mug and the bowl? Mark them and their edges; they would fill it, do it?"
    )


def test_a_question_may_open_with_the_asked() -> None:
    assert (
        fill_template("{ask}? Mark {it}.", BOX) == "What could I drink from? Mark it."
    )
    assert (
        fill_template("Here is a riddle. {Ask}?", BOX)
        == "Here is a riddle. What could I drink from?"
    )
    assert (
        fill_template("{front} covers part of {np}.", BOX)
        == "The box covers part of the red mug."
    )
