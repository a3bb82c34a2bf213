"""Dialogues about a scene: a question, and one or two that refer back to it.

Every turn has a logical form, as in `grammar`: the first names an object, each further one replaces it by an object
that hides it or is hidden by it, by one of another color or by one of its parts, or asks for its other mask.
"""

from collections.abc import Callable
from typing import NamedTuple

from maskwise.language.answers import write_answer
from maskwise.language.word_forms import is_plural
from maskwise.schema import Answer, Turn
from maskwise.world.catalogue import CATEGORIES
from maskwise.world.logical_forms import (
    AmbiguousError,
    HasCategory,
    HasColor,
    ObjectQuery,
    OccludedBy,
    Occludes,
    PartQuery,
)
from maskwise.world.question_templates import MaskIntent
from maskwise.world.random_streams import RandomStream
from maskwise.world.referring_expressions import ReferringExpressions
from maskwise.world.scene_graph import SceneGraph

TRIES = 40
"""Attempts per dialogue: most follow-up questions do not fit the scene."""

LEAST_HIDDEN = 0.08
"""Occlusion rate from which on the two masks of an object differ enough to ask for the other one."""

FIRST: dict[MaskIntent, tuple[str, ...]] = {
    "visible": ("Segment {np}.", "Where is {np}?", "Show me {np}."),
    "amodal": (
        "Show the complete shape of {np}, hidden parts included.",
        "Segment {np} as if nothing stood in front of it.",
    ),
}
TO_AMODAL = (
    "Now its complete shape, hidden part included.",
    "And what would it look like if nothing stood in front of it?",
    "Now the whole thing, the hidden part too.",
    "Complete it, as if nothing covered it.",
)
TO_VISIBLE = (
    "Now only what can be seen of it.",
    "And just its visible part?",
    "Leave out what is hidden: only the visible part of it.",
)
IN_FRONT = (
    "And the one in front of it?",
    "What about the object that hides a part of it?",
    "And the thing that stands in front of it?",
)
BEHIND = (
    "And the one behind it?",
    "What about the object that it partly hides?",
    "And the thing behind it?",
)
OTHER_COLOR = ("And the {color} one?", "What about the {color} one?")
PART = ("Now its {part}.", "And its {part}?", "Only its {part}, please.")


class DialogueState(NamedTuple):
    """The last turn: the object or part it asked for, the form that singles out the object, and the mask type."""

    target: int
    form: ObjectQuery
    mask_type: MaskIntent


class SceneDialogue(NamedTuple):
    """Earlier turns and the last one, which is asked. kind: what the last turn changes."""

    turns: tuple[Turn, ...]
    question: str
    mask_type: MaskIntent
    target: int
    answer: Answer
    kind: str


FollowUp = tuple[str, DialogueState]
"""The words of a turn, and what it asks for."""


def generate_dialogues(
    scene: SceneGraph, count: int, rng: RandomStream
) -> list[SceneDialogue]:
    """Up to `count` dialogues of two or three turns, in turn; fewer if the scene allows no more."""
    expressions = ReferringExpressions(scene, rng)
    dialogues: dict[tuple[str, ...], SceneDialogue] = {}
    for _ in range(count * TRIES):
        if len(dialogues) == count or not scene.nodes:
            break
        length = 2 + len(dialogues) % 2
        dialogue = _try_dialogue(expressions, length)
        if dialogue is not None:
            words = (*(turn.question for turn in dialogue.turns), dialogue.question)
            dialogues.setdefault(words, dialogue)
    return [*dialogues.values()]


def _try_dialogue(
    expressions: ReferringExpressions, length: int
) -> SceneDialogue | None:
    """A dialogue of this length; None if a turn does not fit the scene."""
    rng = expressions.rng
    place = expressions.sample_object()
    named = expressions.shortest(place)
    if place is None or named is None:
        return None
    form, phrase = named
    intent: MaskIntent = "amodal" if rng.bernoulli(0.3) else "visible"
    state = DialogueState(place, form, intent)
    text = rng.choice(FIRST[intent]).format(np=phrase)
    turns: list[Turn] = []
    kind = ""
    for _ in range(length - 1):
        # Parts come last: nothing is said about what stands behind a handle.
        if expressions.scene.nodes[state.target].part is not None:
            return None
        turns.append(Turn(question=text, answer=_answer(expressions, state).text))
        kind = rng.choice(list(FOLLOW_UPS))
        try:
            follow_up = FOLLOW_UPS[kind](expressions, state)
        except AmbiguousError:
            return None
        if follow_up is None:
            return None
        text, state = follow_up
    answer = _answer(expressions, state)
    return SceneDialogue(
        tuple(turns), text, state.mask_type, state.target, answer, kind
    )


def _answer(expressions: ReferringExpressions, state: DialogueState) -> Answer:
    node = expressions.scene.nodes[state.target]
    named = [(node.name, node.part or node.category)]
    return write_answer(named, amodal=state.mask_type == "amodal")


def _change_type(
    expressions: ReferringExpressions, state: DialogueState
) -> FollowUp | None:
    node = expressions.scene.nodes[state.target]
    if node.occlusion_rate < LEAST_HIDDEN or is_plural(node.category):
        return None
    if state.mask_type == "visible":
        return expressions.rng.choice(TO_AMODAL), state._replace(mask_type="amodal")
    return expressions.rng.choice(TO_VISIBLE), state._replace(mask_type="visible")


def _in_front(
    expressions: ReferringExpressions, state: DialogueState
) -> FollowUp | None:
    form = ObjectQuery((Occludes(state.form),))
    return _move(expressions, state, form, expressions.rng.choice(IN_FRONT))


def _behind(expressions: ReferringExpressions, state: DialogueState) -> FollowUp | None:
    form = ObjectQuery((OccludedBy(state.form),))
    return _move(expressions, state, form, expressions.rng.choice(BEHIND))


def _other_color(
    expressions: ReferringExpressions, state: DialogueState
) -> FollowUp | None:
    node = expressions.scene.nodes[state.target]
    colors = {
        other.color
        for other in (expressions.scene.nodes[place] for place in expressions.objects)
        if other.category == node.category and other.color != node.color
    }
    if not colors:
        return None
    color = expressions.rng.choice(sorted(colors))
    form = ObjectQuery((HasCategory(node.category), HasColor(color)))
    text = expressions.rng.choice(OTHER_COLOR).format(color=color)
    return _move(expressions, state, form, text)


def _part(expressions: ReferringExpressions, state: DialogueState) -> FollowUp | None:
    node = expressions.scene.nodes[state.target]
    part = expressions.rng.choice(CATEGORIES[node.category].parts)
    places = PartQuery(part, state.form).execute(expressions.scene)
    if len(places) != 1 or is_plural(part) or is_plural(node.category):
        return None
    if not expressions.is_recognisable(expressions.scene.nodes[places[0]]):
        return None
    text = expressions.rng.choice(PART).format(part=part)
    # "Only its handle" asks for what can be seen; "And its handle?" asks as before.
    kept = state.mask_type if text.startswith("And") else "visible"
    return text, state._replace(target=places[0], mask_type=kept)


def _move(
    expressions: ReferringExpressions,
    state: DialogueState,
    form: ObjectQuery,
    text: str,
) -> FollowUp | None:
    """The turn that asks the same about the only object of a form; None if there is none or it is hardly visible."""
    place = form.execute_unique(expressions.scene)
    named = expressions.shortest(place)
    node = expressions.scene.nodes[place]
    if named is None or is_plural(node.category):
        return None
    if not expressions.is_recognisable(node):
        return None
    return text, state._replace(target=place, form=named[0])


FOLLOW_UPS: dict[
    str, Callable[[ReferringExpressions, DialogueState], FollowUp | None]
] = {
    "mask type": _change_type,
    "in front": _in_front,
    "behind": _behind,
    "color": _other_color,
    "part": _part,
}
