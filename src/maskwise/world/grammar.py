"""Generate questions about a scene: a logical form is sampled and executed, and then put into words.

A question is kept if its form gives the number of targets that its words imply, every target is sufficiently visible,
and nothing about it is ambiguous. The answer names every target, so that each mask belongs to a phrase.
"""

from collections.abc import Iterator
from typing import NamedTuple

from maskwise.language.answers import write_answer
from maskwise.language.word_forms import is_plural
from maskwise.schema import Answer
from maskwise.world.catalogue import HELD_OUT, SPLITS
from maskwise.world.logical_forms import (
    AmbiguousError,
    LogicalForm,
    ObjectQuery,
    UnionQuery,
)
from maskwise.world.question_proposals import PROPOSERS, QuestionProposal
from maskwise.world.question_templates import (
    MaskIntent,
    TemplateFamily,
    TemplateSlots,
    fill_template,
    template_slots,
    usable_templates,
)
from maskwise.world.random_streams import RandomStream
from maskwise.world.referring_expressions import ReferringExpressions
from maskwise.world.scene_graph import SceneGraph, SceneNode

TRIES = 12
"""Attempts at a question of one type before another type is sampled."""

AMODAL = 0.47
"""Fraction of questions that want the amodal mask."""

SLOT_RATES = {"ask": 0.6, "front": 0.25}
"""How often a question that can use this slot uses it: few template families have it."""

BOTH_TYPES = 0.2
"""How often a question is asked for both mask types, so that only the words tell which mask is wanted."""

QUESTION_TYPES: dict[str, float] = {
    "referring": 0.24,
    "function": 0.13,
    "part": 0.16,
    "part function": 0.08,
    "several": 0.13,
    "none": 0.16,
    "occlusion": 0.1,
}
"""Sampling weight of each type."""


class SceneQuestion(NamedTuple):
    """A question about a scene. targets: indices of nodes, left to right, in the order of the answer. np: the noun
    phrase of the target. ask: a question that refers to the target without naming it, if there is one.
    """

    text: str
    np: str
    ask: str | None
    mask_type: MaskIntent
    targets: tuple[int, ...]
    answer: Answer
    form: LogicalForm
    tags: dict[str, str]


def generate_questions(
    scene: SceneGraph, split: str, count: int, rng: RandomStream
) -> list[SceneQuestion]:
    """Up to `count` different questions; fewer only if the scene allows no more."""
    if not scene.nodes:
        return []
    asked: dict[str, SceneQuestion] = {}
    for question in _propose_questions(
        ReferringExpressions(scene, rng), split, 4 * count
    ):
        asked.setdefault(question.text, question)
        if len(asked) == count:
            break
    return list(asked.values())


def _propose_questions(
    expressions: ReferringExpressions, split: str, draws: int
) -> Iterator[SceneQuestion]:
    types = list(QUESTION_TYPES)
    weights = list(QUESTION_TYPES.values())
    for _ in range(draws):
        kind = expressions.rng.weighted_choice(types, weights)
        proposal = _find_proposal(expressions, kind)
        if proposal is None:
            continue
        intents: list[MaskIntent] = [
            "amodal" if expressions.rng.bernoulli(AMODAL) else "visible"
        ]
        if expressions.rng.bernoulli(BOTH_TYPES):
            intents = ["visible", "amodal"]
        for intent in intents:
            yield _write_question(
                expressions, proposal, kind, intent=intent, split=split
            )


def _find_proposal(
    expressions: ReferringExpressions, kind: str
) -> QuestionProposal | None:
    """A proposal of this type whose number of targets is right, or None after TRIES attempts."""
    for _ in range(TRIES):
        try:
            proposal = PROPOSERS[kind](expressions)
            if proposal is not None and _has_right_number(expressions, proposal):
                return proposal
        except AmbiguousError:
            continue
    return None


def _has_right_number(
    expressions: ReferringExpressions, proposal: QuestionProposal
) -> bool:
    targets = proposal.form.execute(expressions.scene)
    as_many = len(targets) == proposal.number or len(targets) > proposal.number == 2
    return as_many and all(
        expressions.is_recognisable(expressions.scene.nodes[place]) for place in targets
    )


def _write_question(
    expressions: ReferringExpressions,
    proposal: QuestionProposal,
    kind: str,
    *,
    intent: MaskIntent,
    split: str,
) -> SceneQuestion:
    scene = expressions.scene
    rng = expressions.rng
    targets = proposal.form.execute(scene)
    part = not isinstance(proposal.form, ObjectQuery | UnionQuery)
    wording = TemplateSlots(
        proposal.np, proposal.ask, _front(expressions, targets), proposal.plural, part
    )
    families = usable_templates(
        wording, intent, held_out=rng.bernoulli(SPLITS[split].held_out_wordings)
    )
    for slot, share in SLOT_RATES.items():
        special = [
            pair for pair in families if slot in template_slots(pair[1][0].lower())
        ]
        if special and rng.bernoulli(share):
            families = special
            break
    family, templates = rng.choice(families)
    nodes = [scene.nodes[place] for place in targets]
    tags = {"question_type": kind, "level": "part" if part else "object"} | _tags(
        nodes, family
    )
    tags |= {"split": split, "setting": scene.setting}
    text = fill_template(rng.choice(templates), wording)
    named = [(node.name, node.part or node.category) for node in nodes]
    return SceneQuestion(
        text,
        proposal.np,
        proposal.ask,
        mask_type=intent,
        targets=targets,
        answer=write_answer(named, amodal=intent == "amodal"),
        form=proposal.form,
        tags=tags,
    )


def _front(expressions: ReferringExpressions, targets: tuple[int, ...]) -> str | None:
    """The object that hides most of a single target, if it has a short expression."""
    scene = expressions.scene
    if len(targets) != 1:
        return None
    occluders = scene.occluders(targets[0])
    if occluders.sum() < 0.05 * scene.nodes[targets[0]].amodal_area:
        return None
    front = next(
        place
        for place in expressions.objects
        if scene.nodes[place].order == occluders.argmax() + 1
    )
    node = scene.nodes[front]
    named = expressions.shortest(front)
    return (
        named[1]
        if named and expressions.is_recognisable(node) and not is_plural(node.category)
        else None
    )


def _tags(nodes: list[SceneNode], family: TemplateFamily) -> dict[str, str]:
    unseen = any(node.color in HELD_OUT[node.category] for node in nodes)
    hidden = max((node.occlusion_rate for node in nodes), default=0.0)
    return {
        "family": family.name,
        "wording": "held out" if family.held_out else "seen",
        "colors": "held out" if unseen else "seen",
        "targets": ("none", "one", "several")[min(len(nodes), 2)],
        "hidden": "none" if hidden < 0.01 else "little" if hidden < 0.25 else "much",
    }
