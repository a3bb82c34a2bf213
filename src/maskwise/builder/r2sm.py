"""Recipe `r2sm`: for one object, questions that want the visible mask and questions that want the amodal one.

After R2SM (arXiv 2506.01795): the wording, not the image, decides which mask is meant. Every suitable object that can
be described without its name gets reasoning questions in visible wording, some of them a referring one too; the others
get a referring one. Questions about an object that is really occluded are minimal pairs: the same question in visible
and in amodal wording, with one cue changed. The prompts and thresholds of the paper are not public; these are ours.
"""

from collections.abc import Iterator
from typing import NamedTuple

from maskwise.builder.cue_tags import CUE_PAIR_TAG, CUES_TAG, Cue, encode_cues
from maskwise.builder.facts import RegionFacts
from maskwise.builder.grammar import AnswerPhrase, ProposedQuestion
from maskwise.builder.knowledge import load_knowledge
from maskwise.builder.logical_forms import Form
from maskwise.builder.object_questions import (
    GrammarContext,
    SettledFact,
    ask_choices,
    ask_hidden,
    ask_neighbors,
    ask_riddles,
)
from maskwise.builder.recipe import Recipe
from maskwise.builder.selection import names_target
from maskwise.builder.wording import ask_about, introduce
from maskwise.language.intent import CueKind
from maskwise.language.word_forms import capitalize_first

MAX_OBJECTS = 4
"""Objects of one image that are asked about, the occluded ones first."""


class CuePair(NamedTuple):
    """A frame, and the words that make it a request for the visible and for the amodal mask.

    {np} is the object, {it} its pronoun, {occluder} what hides it.
    """

    frame: str
    visible: str
    visible_kind: CueKind
    amodal: str
    amodal_kind: CueKind


PAIRS = (
    CuePair(
        "Segment {cue} of {np}.",
        "only the visible part",
        "visible-only",
        "the complete shape",
        "completeness",
    ),
    CuePair(
        "Outline {np}, {cue}.",
        "leaving hidden parts out",
        "exclusion",
        "hidden parts included",
        "completeness",
    ),
    CuePair(
        "Please mark {np}, {cue}.",
        "but only what can be seen",
        "visible-only",
        "and also what cannot be seen",
        "completeness",
    ),
    CuePair(
        "I need {cue} of {np} as a mask.",
        "the visible surface",
        "visible-only",
        "the full extent, covered areas too,",
        "extent",
    ),
    CuePair(
        "Cut out {np} {cue}.",
        "without adding anything that is covered",
        "exclusion",
        "as if nothing were in front of {it}",
        "removal",
    ),
    CuePair(
        "Draw the outline of {np}, {cue} what is hidden.",
        "leaving out",
        "exclusion",
        "filling in",
        "restoration",
    ),
    CuePair(
        "Color {cue} of {np}.",
        "just the part that shows",
        "visible-only",
        "the entire shape, seen or unseen,",
        "completeness",
    ),
    CuePair(
        "For {np}, {cue}.",
        "mark no more than the eye can see",
        "visible-only",
        "mark the true shape, even where something covers {it}",
        "completeness",
    ),
    CuePair(
        "Could you segment {np}, {cue}?",
        "skipping every hidden area",
        "exclusion",
        "hidden areas and all",
        "completeness",
    ),
    CuePair(
        "Give me a mask of {np} {cue}.",
        "as far as the view allows",
        "visible-only",
        "as if the view were free",
        "removal",
    ),
    CuePair(
        "The mask of {np} should cover {cue}.",
        "the visible pixels alone",
        "visible-only",
        "its whole body, hidden or not",
        "completeness",
    ),
    CuePair(
        "Paint over {np}; {cue}.",
        "do not guess what is behind other things",
        "exclusion",
        "also guess what is behind other things",
        "restoration",
    ),
)
OCCLUDER_PAIRS = (
    CuePair(
        "Segment {np}, {cue} what {occluder} covers.",
        "but leave out",
        "exclusion",
        "and include",
        "completeness",
    ),
    CuePair(
        "Mark {np} {cue}.",
        "up to the edge of {occluder} and no further",
        "exclusion",
        "as if {occluder} were not there",
        "removal",
    ),
    CuePair(
        "Trace {np} and {cue} where {occluder} begins.",
        "stop",
        "exclusion",
        "continue the hidden outline",
        "continuation",
    ),
    CuePair(
        "Outline {np} {cue}.",
        "only where {occluder} does not hide {it}",
        "exclusion",
        "right through {occluder}, as if it were transparent",
        "see-through",
    ),
    CuePair(
        "{cue}, outline {np}.",
        "As far as {occluder} lets us see {it}",
        "visible-only",
        "Imagining {occluder} gone",
        "removal",
    ),
    CuePair(
        "Show me the mask of {np} {cue}.",
        "beside {occluder}, hidden area excluded",
        "exclusion",
        "behind {occluder}, hidden area included",
        "completeness",
    ),
    CuePair(
        "Segment {np} {cue}.",
        "with {occluder} left where it is, visible pixels only",
        "visible-only",
        "after taking {occluder} away in your mind",
        "removal",
    ),
    CuePair(
        "How much of {np} {cue}? Mark it.",
        "does {occluder} leave visible",
        "visible-only",
        "would be there without {occluder} in front",
        "extent",
    ),
)
"""Pairs that speak of what hides the object."""

PLAIN = (
    "Segment {np}.",
    "Please mark {np}.",
    "Where is {np}?",
    "Which pixels show {np}?",
    "Find {np} and mark {it}.",
    "Can you point out {np}?",
    "I would like a mask of {np}.",
    "Highlight {np} for me.",
    "Put a color on {np}, please.",
    "Do you see {np}? Select {it}.",
    "Click on {np}.",
    "Separate {np} from the rest of the scene.",
    "Let me have {np} as a cut-out.",
    "Show where {np} can be found.",
    "Just {np}, nothing else.",
    "My notes mention {np}; draw the contour.",
    "The caption is about {np}. Shade that region.",
    "For the training data we need {np} annotated.",
    "Trace {np} with a fine pen.",
    "Could somebody circle {np}?",
    "Our customer wants {np} in another color, so select {it} first.",
    "I cannot spot {np}. Guide me.",
    "Label {np} in this frame.",
    "Keep an eye on {np} and mark {it} in blue.",
    "Which area would you click to select {np}?",
    "Extract {np} for my presentation.",
    "Our drone has to lock on to {np}.",
    "Brighten {np} a little, but no other area.",
    "We are going to discuss {np}; locate {it}, please.",
    "Track {np} from this frame onward.",
    "Isolate {np} on a separate layer.",
    "What are the pixels of {np}?",
    "Crop tightly around {np} and mask {it}.",
    "Count the pixels that belong to {np}; a mask will do.",
    "Assign the foreground class to {np}.",
    "Write nothing, simply segment {np}.",
    "Use the brush tool to color {np} red.",
    "A silhouette of {np} would help my design.",
    "The curator would like {np} highlighted on the touch screen.",
    "To recolor {np}, I need a selection.",
    "Sketch the contour of {np} as a reference for the painter.",
    "The tooltip should pop up over {np}.",
    "Double-check the detector with a mask of {np}.",
    "Please vectorize {np} for a logo.",
    "The augmented reality headset must anchor a hologram at {np}.",
    "Sharpen {np}; leave other regions soft.",
    "Compute the average brightness of {np}; which pixels count?",
    "The spotlight belongs on {np}. Where should it point?",
    "Grab {np} with the lasso.",
    "Our client asks for {np}; respond with a mask.",
    "The visually impaired user asks for {np}.",
    "Put a sticker on {np}.",
    "Create a layer that contains {np} alone.",
    "As evidence, the lawyer needs {np} outlined.",
    "Attach a speech bubble to {np}.",
    "In this week's newsletter we refer to {np}, so encircle {it}.",
    "Paint {np} green in the annotation tool.",
    "A conservator examines {np} first. Frame {it}.",
    "Cut a stencil in the shape of {np}.",
    "One piece of the jigsaw puzzle should have the shape of {np}.",
    "The museum app vibrates when a finger touches {np}. On which area?",
    "Turn everything gray except {np}.",
    "Let {np} glow in the thumbnail.",
    "Print {np} on a cotton bag; the design is {its} silhouette.",
    "The eye tracker recorded glances at {np}. Show the region.",
    "Our magazine cover needs {np} on a white background.",
    "Swap the background behind {np}; mask {it} first.",
    "An embroidery machine has to stitch {np}. Provide the outline.",
    "Hide a virtual coin on {np}.",
)
"""Requests without any cue, which want the visible mask."""

REFERRING_SHARE = 0.4
"""Share of the objects with a reasoning question that get a referring one too. Most of what people ask of such a model
does not name the target, and ReasonSeg has no question that does."""

MOST_IMPLICIT = 2
"""Reasoning questions about one object of which nothing is hidden."""

INSTRUCTIONS = f"""\
Choose up to {MAX_OBJECTS} objects of this image that a person might ask about, the occluded ones first. Write questions
about one object each, which is the only target:
- a referring question (kind "referring") that names the object and singles it out, in visible wording (mask_type
  "visible"): it asks for the object as it appears, or for its visible part;
- a reasoning question (kind "reasoning") in visible wording that describes the object by its use, its place or common
  sense, without its name or a synonym of it;
- only if the object is listed as occluded: one of each kind in amodal wording (mask_type "amodal"), which asks for the
  complete shape, including what is hidden.

The wording alone must say which mask is meant. A question that only mentions something in front of the object still
wants the visible mask. Vary the wording. The answer is one short sentence with one phrase for the object; give the
phrase and the number of its region."""


def write(context: GrammarContext) -> list[ProposedQuestion]:
    """The grammar's questions: pairs about occluded objects, plain requests about a few others."""
    objects = _choose(context)
    balanced = any(region.is_occluded for region in objects)
    proposals: list[ProposedQuestion] = []
    for region in objects:
        if region.is_occluded:
            proposals += _ask_in_pairs(context, region)
        else:
            plain = _ask_plainly(context, region)
            # Where there are pairs, requests for the visible mask alone stay few.
            proposals += context.sample(plain, 1) if balanced else plain
    return proposals


def _choose(context: GrammarContext) -> list[RegionFacts]:
    table = load_knowledge().table
    objects = [
        region
        for region in context.facts.objects
        if context.can_ask(region)
        and region.id in context.names
        and region.noun.known not in table.background | table.vague
    ]
    context.random.shuffle(objects)
    return sorted(objects, key=lambda region: not region.is_occluded)[:MAX_OBJECTS]


def _ask_in_pairs(
    context: GrammarContext, region: RegionFacts
) -> Iterator[ProposedQuestion]:
    """Minimal pairs: the object by what is true of it, and by its name, always if nothing singles it out."""
    described = _describe(context, region)
    if described is not None:
        text, form = described
        yield from _write_pair(context, region, text, "reasoning", form)
    if described is None or context.random.random() < REFERRING_SHARE:
        yield from _write_pair(
            context, region, context.names[region.id], "referring", None
        )


def _describe(context: GrammarContext, region: RegionFacts) -> tuple[str, Form] | None:
    """A phrase for an object without its name, and what it says; None if nothing singles the object out."""
    described: list[SettledFact] = [
        item for item in context.stated if item.objects == [region]
    ]
    context.random.shuffle(described)
    for item in described:
        proposal = ProposedQuestion(item.description, (), "", (region,))
        if not names_target(proposal, context.facts):
            return item.description, item.form
    return None


def _write_pair(
    context: GrammarContext,
    region: RegionFacts,
    phrase: str,
    kind: str,
    form: Form | None,
) -> list[ProposedQuestion]:
    """The same question twice, for the visible and for the amodal mask; a description names the object in neither."""
    front = context.facts.main_occluder(region.id)
    occluder = None if front is None else context.names.get(front.id)
    pairs = PAIRS if occluder is None else (*PAIRS, *OCCLUDER_PAIRS)
    words = {"np": phrase, "it": _it(region), "occluder": occluder or ""}
    for pair in context.sample(pairs, len(pairs)):
        both = pair.frame.format(cue="", **words)
        introduction = _introduction(context, region, both)
        proposals = [
            _fill_pair(
                context,
                region,
                pair=pair,
                mask_type=mask_type,
                introduction=introduction,
                words=words,
                kind=kind,
                form=form,
            )
            for mask_type in ("visible", "amodal")
        ]
        leaks = [names_target(proposal, context.facts) for proposal in proposals]
        if kind == "referring" or not any(leaks):
            return proposals
    return []


def _fill_pair(
    context: GrammarContext,
    region: RegionFacts,
    *,
    pair: CuePair,
    mask_type: str,
    introduction: tuple[str, str],
    words: dict[str, str],
    kind: str,
    form: Form | None,
) -> ProposedQuestion:
    """One of the two questions of a pair, with the place of its cue."""
    is_amodal = mask_type == "amodal"
    cue = (pair.amodal if is_amodal else pair.visible).format(**words)
    cue_kind = pair.amodal_kind if is_amodal else pair.visible_kind
    before, _, after = pair.frame.partition("{cue}")
    opening, closing = introduction
    before = opening + before.format(**words)
    span = Cue(cue_kind, len(before), len(before) + len(cue))
    return _propose(
        context,
        region,
        before + cue + after.format(**words) + closing,
        mask_type=mask_type,
        kind=kind,
        form=form,
        tags={CUES_TAG: encode_cues([span]), CUE_PAIR_TAG: f"{region.number} {kind}"},
    )


def _ask_plainly(
    context: GrammarContext, region: RegionFacts
) -> list[ProposedQuestion]:
    """Questions without a cue about an object of which nothing is hidden."""
    proposals: list[ProposedQuestion] = []
    asked: set[Form] = set()
    implicit = _implicit_questions(context, region)
    context.random.shuffle(implicit)
    for question, form in implicit:
        before, after = _introduction(context, region, question)
        described = _propose(
            context,
            region,
            before + capitalize_first(question) + after,
            mask_type="visible",
            kind="reasoning",
            form=form,
        )
        if form not in asked and not names_target(described, context.facts):
            proposals.append(described)
            asked.add(form)
        if len(proposals) == MOST_IMPLICIT:
            break
    if proposals and context.random.random() >= REFERRING_SHARE:
        return proposals
    question = context.random.choice(PLAIN).format(
        np=context.names[region.id], it=_it(region), its=_its(region)
    )
    before, after = _introduction(context, region, question)
    named = _propose(
        context,
        region,
        before + question + after,
        mask_type="visible",
        kind="referring",
    )
    return [*proposals, named]


def _implicit_questions(
    context: GrammarContext, region: RegionFacts
) -> list[tuple[str, Form]]:
    """Questions for one object by what is true of it, by its place and by what hides it."""
    questions = [
        (ask_about(item.fact, 1, item.kind, context.random), item.form)
        for item in context.settled
        if item.objects == [region]
    ]
    for ask in (ask_riddles, ask_choices, ask_hidden, ask_neighbors):
        proposed = [
            (proposal.question, proposal.form)
            for proposal in ask(context)
            if proposal.about == (region,) and proposal.form is not None
        ]
        # One of each: two riddles about a dog say the same of it.
        questions += proposed[:1]
    return questions


def _propose(
    context: GrammarContext,
    region: RegionFacts,
    question: str,
    *,
    mask_type: str,
    kind: str,
    form: Form | None = None,
    tags: dict[str, str] | None = None,
) -> ProposedQuestion:
    openings = ("this is ", "that is ", "it is ")
    opening = context.random.choice(openings)
    if region.noun.is_plural:
        opening = "these are "
    ending = ", hidden part included." if mask_type == "amodal" else "."
    phrase = AnswerPhrase(context.names[region.id], (region.number,))
    return ProposedQuestion(
        capitalize_first(question),
        (opening, phrase, ending),
        "cue pair" if tags else "plain",
        (region,),
        form,
        mask_type,
        kind,
        {CUES_TAG: ""} | (tags or {}),
    )


def _introduction(
    context: GrammarContext, region: RegionFacts, question: str
) -> tuple[str, str]:
    """What stands before and after a question, which does not name the object; mostly nothing."""
    before, after = introduce(question, context.random)
    spoken = ProposedQuestion(before, (), "", (region,))
    return ("", "") if names_target(spoken, context.facts) else (before, after)


def _it(region: RegionFacts) -> str:
    return "them" if region.noun.is_plural else "it"


def _its(region: RegionFacts) -> str:
    return "their" if region.noun.is_plural else "its"


R2SM = Recipe(
    name="r2sm",
    title="per object, questions in visible and in amodal wording, referring and reasoning",
    prompt_version="r2sm 1",
    instructions=INSTRUCTIONS,
    per_image=3 * MAX_OBJECTS,
    write=write,
    reasoning_share=0.5,
)
