"""Question templates in families, each of which asks for visible or for amodal masks.

The rule (R2SM, arXiv 2506.01795): a question wants the amodal mask only if its words ask for the whole shape, visible
or not. Plain questions want the visible mask, and so do questions that mention occlusion only to locate something ("the
mug behind the box") or to exclude the hidden part.

Slots: {np} is the noun phrase of the target; {it}, {they}, {its}, {is}, {does}, {s} agree with it; {front} is an object
that hides it; {ask} is a question that refers to the target without naming it ("what could I drink from"), {Ask} the
same with a capital. The first letter is capitalised after filling. A template is used only if all its slots can be
filled.

Families marked `held_out` occur in the test split only.
"""

import functools
import re
from typing import Literal, NamedTuple

from maskwise.language.word_forms import capitalize_first

MaskIntent = Literal["visible", "amodal"]


class TemplateFamily(NamedTuple):
    """Templates with one idea. `whole`: they suit whole objects only, because they would detach a part."""

    name: str
    intent: MaskIntent
    held_out: bool
    templates: tuple[str, ...]
    whole: bool = False


FAMILIES: tuple[TemplateFamily, ...] = (
    # -- visible, implicitly ----------------------------------------------------------------------------
    TemplateFamily(
        "command",
        "visible",
        False,
        (
            "Segment {np}.",
            "Please segment {np}.",
            "Mask {np}.",
            "Outline {np}.",
            "Mark {np}.",
            "Highlight {np}.",
            "Select {np}.",
            "Trace {np}.",
        ),
    ),
    TemplateFamily(
        "search",
        "visible",
        False,
        (
            "Find {np}.",
            "Locate {np}.",
            "Where {is} {np}?",
            "Can you spot {np}?",
            "Show me {np}.",
            "Point out {np}.",
            "Which pixels belong to {np}?",
        ),
    ),
    TemplateFamily(
        "bare", "visible", False, ("{np}", "{np}, please", "{np} in this picture")
    ),
    TemplateFamily(
        "polite",
        "visible",
        False,
        (
            "Could you mark {np} for me?",
            "Would you please outline {np}?",
            "I would like {np} highlighted.",
            "I need a mask of {np}.",
            "Kindly draw a mask over {np}.",
        ),
    ),
    TemplateFamily(
        "ask",
        "visible",
        False,
        (
            "{ask}?",
            "{ask}? Show me.",
            "{ask}? Mark {it}.",
            "Please tell me. {Ask}?",
            "{ask}? Please segment {it}.",
        ),
    ),
    TemplateFamily(
        "whole picture",
        "visible",
        False,
        (
            "Look over the whole picture and mark {np}.",
            "In the entire scene, where {is} {np}?",
            "Scan the full image for {np}.",
            "After a complete look around, outline {np}.",
        ),
    ),
    TemplateFamily(
        "make-believe",
        "visible",
        False,
        (
            "Imagine you are a painter and colour in {np}.",
            "Pretend to be a robot and point at {np}.",
            "Suppose I asked you for {np}: what would you mark?",
            "If you were to touch {np} on the screen, which pixels would you touch?",
        ),
    ),
    TemplateFamily(
        "taken away",
        "visible",
        False,
        (
            "{np} will be taken away; mark the pixels that show {it} now.",
            "I am about to remove {np} from the picture, so mark {it}.",
            "Mark {np}, because I want to move {it} aside.",
        ),
    ),
    TemplateFamily(
        "looking for",
        "visible",
        True,
        (
            "I am looking for {np}.",
            "Help me find {np}.",
            "Have you seen {np} anywhere here?",
            "My eyes are searching for {np}.",
            "Put your finger on {np}.",
        ),
    ),
    TemplateFamily(
        "ask, indirect",
        "visible",
        True,
        (
            "Here is a riddle. {Ask}?",
            "Quick question. {Ask}? A mask will do.",
            "{ask}? Paint {it} red.",
        ),
    ),
    TemplateFamily(
        "photo editor",
        "visible",
        True,
        (
            "Put a selection around {np}.",
            "Tint {np} blue.",
            "Apply a filter to {np} alone.",
            "Blur everything except {np}.",
        ),
    ),
    TemplateFamily(
        "chatter",
        "visible",
        True,
        (
            "Oh look, there {is} {np}! Mark {it}.",
            "My friend keeps talking about {np}; show her.",
            "Between you and me, which pixels make up {np}?",
            "We were all wondering about {np}. Could you outline {it} for everyone?",
        ),
    ),
    # -- visible, explicitly ------------------------------------------------------------------------------------------
    TemplateFamily(
        "visible part",
        "visible",
        False,
        (
            "Segment the visible part of {np}.",
            "Mark only what can be seen of {np}.",
            "Outline just the part of {np} in sight.",
            "Give the visible mask of {np}.",
            "Mask {np}, visible pixels only.",
        ),
    ),
    TemplateFamily(
        "leave out the hidden",
        "visible",
        False,
        (
            "Segment {np} and leave out anything that is covered.",
            "Mask {np} without the hidden parts.",
            "Outline {np}, skipping whatever is occluded.",
            "Mark {np} but not the concealed areas.",
            "Ignore the hidden portion and segment {np}.",
        ),
    ),
    TemplateFamily(
        "do not guess",
        "visible",
        False,
        (
            "Do not guess what is hidden: mark {np} as shown.",
            "Mark {np} without imagining what you cannot see.",
            "Nothing invented, please: outline {np} exactly as pictured.",
            "There is no need to complete {np}; trace what shows.",
            "Leave the covered part of {np} to the imagination and mask the rest.",
        ),
    ),
    TemplateFamily(
        "in spite of the cover",
        "visible",
        False,
        (
            "{front} covers part of {np}; mark what is left in view.",
            "Segment {np}, but not the part that {front} hides.",
            "Although {front} is in the way, outline what you can still see of {np}.",
            "Mark {np} up to the edge of {front}.",
        ),
    ),
    TemplateFamily(
        "ask, visible",
        "visible",
        False,
        (
            "{ask}? Mark only what shows of {it}.",
            "{ask}? The visible part is enough.",
            "{ask}? Leave out what is covered.",
        ),
    ),
    TemplateFamily(
        "exposed",
        "visible",
        True,
        (
            "Highlight the exposed surface of {np}.",
            "Mask the uncovered area of {np}.",
            "Trace the unobstructed portion of {np}.",
            "Mark the part of {np} that peeks out.",
        ),
    ),
    TemplateFamily(
        "camera",
        "visible",
        True,
        (
            "Which pixels of the photo actually show {np}?",
            "Mark {np} as the camera recorded {it}.",
            "Shade the spots where the lens caught {np}.",
            "Keep to what was photographed: outline {np}.",
        ),
    ),
    TemplateFamily(
        "not the whole",
        "visible",
        True,
        (
            "I do not need {np} in full, only the part in view.",
            "Not the entire shape of {np}, just what shows.",
            "Skip the full outline of {np}; the portion facing us is enough.",
            "Never mind how {np} continue{s} behind other things; mark what is there to see.",
        ),
    ),
    # -- amodal ----------------------------------------------------------------------------------------------------
    TemplateFamily(
        "hidden parts too",
        "amodal",
        False,
        (
            "Segment the whole of {np}, including the hidden parts.",
            "Mask all of {np}, hidden parts too.",
            "Outline {np} in full, even where covered.",
            "Mark {np} together with {its} occluded regions.",
            "Include what is hidden from view when you mask {np}.",
        ),
    ),
    TemplateFamily(
        "complete shape",
        "amodal",
        False,
        (
            "Give the complete shape of {np}.",
            "Show the full extent of {np}.",
            "The entire shape of {np}, please.",
            "Outline {np} completely, seen or unseen.",
            "I want the full silhouette of {np}.",
            "Segment {np} as a whole object.",
        ),
    ),
    TemplateFamily(
        "amodal",
        "amodal",
        False,
        (
            "Give the amodal mask of {np}.",
            "Amodal segmentation of {np}, please.",
            "Predict the amodal extent of {np}.",
        ),
    ),
    TemplateFamily(
        "clear view",
        "amodal",
        False,
        (
            "Imagine nothing stood in front of {np} and outline {it}.",
            "Pretend the view were clear and mark {np}.",
            "As if nothing were in the way, mask {np}.",
            "Outline {np} as though everything else had been cleared away.",
            "If all other things were removed, where would {np} be?",
        ),
    ),
    TemplateFamily(
        "without the front",
        "amodal",
        False,
        (
            "Suppose {front} were gone: outline {np}.",
            "Take {front} away in your mind and mask {np}.",
            "What would {np} look like if {front} were moved aside?",
            "Continue {np} behind {front}.",
            "Complete {np} where {front} cuts {it} off.",
            "Segment {np} and also the part that {front} hides.",
        ),
    ),
    TemplateFamily(
        "not only what shows",
        "amodal",
        False,
        (
            "Do not stop at what is visible: mask {np} entirely.",
            "Not just the visible part of {np}: all of {it}.",
            "Mark {np}, and not only the bit in sight.",
            "The part in view is not enough; outline all of {np}.",
        ),
    ),
    TemplateFamily(
        "fill in",
        "amodal",
        False,
        (
            "Fill in whatever is missing and outline {np}.",
            "Reconstruct the covered parts of {np} and mask {it} entirely.",
            "Mask {np} and complete {it} where something is in front.",
            "Extend the mask of {np} to {its} true edges.",
        ),
    ),
    TemplateFamily(
        "ask, amodal",
        "amodal",
        False,
        (
            "{ask}? Outline {it} completely, covered parts included.",
            "{ask}? I want {its} full shape.",
            "{ask}? Mask {it} as if nothing were in front.",
            "{ask}? Show {it} whole, seen or not.",
        ),
    ),
    TemplateFamily(
        "interrupted",
        "amodal",
        False,
        (
            "Carry the outline of {np} on where it breaks off.",
            "Finish the contour of {np} where it is interrupted.",
            "Undo every overlap and mark {np}.",
            "Join up the pieces of {np}, and what lies between them, into one mask.",
        ),
    ),
    TemplateFamily(
        "empty room",
        "amodal",
        False,
        (
            "Picture {np} here in an otherwise empty room and trace {its} outline.",
            "With {np} left and everything else carried out, which area would {they} take up?",
            "Empty the scene of all but {np}; now mask {it}.",
        ),
        whole=True,
    ),
    TemplateFamily(
        "see through",
        "amodal",
        True,
        (
            "Mark {np} as if you had X-ray eyes.",
            "Look through whatever is in the way and mask {np}.",
            "Treat everything in front of {np} as glass and outline {it}.",
            "Draw {np} as though other things were transparent.",
        ),
    ),
    TemplateFamily(
        "room taken",
        "amodal",
        True,
        (
            "How much room {does} {np} take up altogether, seen or not? Mark it.",
            "Mark all the space {np} fill{s}, even behind other things.",
            "From end to end, where {does} {np} reach, whatever is in front?",
            "Measure {np} from edge to edge regardless of what is in the way.",
        ),
    ),
    TemplateFamily(
        "cut-out",
        "amodal",
        True,
        (
            "Make a full cut-out of {np}, nothing missing.",
            "I want to paste {np} elsewhere without holes or gaps; give the whole outline.",
            "Prepare {np} as a sticker, complete to the last corner, covered corners included.",
        ),
    ),
    TemplateFamily(
        "unbroken",
        "amodal",
        True,
        (
            "Segment {np} as one unbroken shape, whatever overlaps {it}.",
            "Draw the true contour of {np} straight through anything that overlaps {it}.",
            "Outline {np} as {they} would look with nothing in front.",
        ),
    ),
    TemplateFamily(
        "measuring",
        "amodal",
        True,
        (
            "I am measuring {np} for a parcel; mark {its} real extent and not just the bit that shows.",
            "How wide and tall {is} {np} really? Mark all of {it}, obstacles or not.",
            "Give me {np} at true size, no matter what stands before {it}.",
        ),
    ),
    TemplateFamily(
        "ask, whole",
        "amodal",
        True,
        (
            "{ask}? Draw {it} uncut, whatever stands before {it}.",
            "{ask}? Trace {it} right through whatever overlaps {it}.",
            "{ask}? Even the corners nobody can see belong in the mask.",
        ),
    ),
)

_SLOTS = re.compile(r"{(\w+)}")

PRONOUNS = {
    False: {
        "it": "it",
        "they": "it",
        "its": "its",
        "is": "is",
        "does": "does",
        "s": "s",
    },
    True: {
        "it": "them",
        "they": "they",
        "its": "their",
        "is": "are",
        "does": "do",
        "s": "",
    },
}
"""Singular and plural forms."""


class TemplateSlots(NamedTuple):
    """The values of the slots: `np` always, `ask` and `front` if there are any; whether `np` is plural, and whether it
    is a part.
    """

    np: str
    ask: str | None = None
    front: str | None = None
    plural: bool = False
    part: bool = False


@functools.cache
def template_slots(template: str) -> frozenset[str]:
    """The slots of a template."""
    return frozenset(_SLOTS.findall(template))


def usable_templates(
    wording: TemplateSlots, intent: MaskIntent, *, held_out: bool
) -> list[tuple[TemplateFamily, list[str]]]:
    """The families of an intent with those of their templates whose slots can be filled."""
    given = {"np", *PRONOUNS[False]}
    given |= ({"ask", "Ask"} if wording.ask else set()) | (
        {"front"} if wording.front else set()
    )
    usable = []
    for family in FAMILIES:
        if (
            family.intent == intent
            and family.held_out == held_out
            and not (family.whole and wording.part)
        ):
            templates = [
                template
                for template in family.templates
                if template_slots(template) <= given
            ]
            if templates:
                usable.append((family, templates))
    return usable


def fill_template(template: str, wording: TemplateSlots) -> str:
    """Fill a template."""
    words = PRONOUNS[wording.plural] | {"np": wording.np, "front": wording.front or ""}
    words |= {"ask": wording.ask or "", "Ask": capitalize_first(wording.ask or "")}
    text = template.format(**words)
    return capitalize_first(text)
