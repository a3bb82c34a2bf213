"""Sentences of the offline writer: question-answer pairs whose phrases are known to refer to regions.

The grammar writes the same JSON object that a language model is asked for (`recipe.py`), from the facts of an image. A
choice among wordings is made by a seeded generator, so that a build can be repeated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from maskwise.builder.facts import RegionFacts
from maskwise.builder.logical_forms import FORM_TAG, Form, encode_form
from maskwise.builder.wording import count_noun
from maskwise.language.word_forms import capitalize_first

MAX_TARGETS = 6
"""More targets than this make an answer that nobody would say."""

MAX_GROUP = 7
"""Of more objects than this annotators leave some out: of eight people in a stadium, say."""

MIN_GROUP = 4
"""So many objects of one name are called by their number rather than one by one."""


class AnswerPhrase(NamedTuple):
    """Words that refer to regions, which are given by their numbers."""

    text: str
    regions: tuple[int, ...]


AnswerPieces = tuple[str | AnswerPhrase, ...]


@dataclass(frozen=True)
class ProposedQuestion:
    """A question with its answer in pieces.

    family: what kind of question it is; a recipe mixes the families. about: the targets. form: the predicate that
    exactly the targets fulfil; None where the question names them. mask_type, kind: where a recipe mixes them. tags:
    further properties of the sample.
    """

    question: str
    answer: AnswerPieces
    family: str
    about: tuple[RegionFacts, ...] = ()
    form: Form | None = None
    mask_type: str | None = None
    kind: str | None = None
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def all_tags(self) -> dict[str, str]:
        """The tags of the sample, with the family and the logical form."""
        tags = {"family": self.family} | self.tags
        if self.form is not None:
            tags[FORM_TAG] = encode_form(self.form)
        return tags

    def to_item(self) -> dict[str, Any]:
        """The pair as a language model would return it; the answer begins with a capital letter."""
        pieces = list(self.answer)
        first = pieces[0]
        text = first if isinstance(first, str) else first.text
        raised = capitalize_first(text)
        pieces[0] = raised if isinstance(first, str) else first._replace(text=raised)
        phrases = [piece for piece in pieces if isinstance(piece, AnswerPhrase)]
        item: dict[str, Any] = {
            "question": capitalize_first(self.question),
            "answer": "".join(
                piece if isinstance(piece, str) else piece.text for piece in pieces
            ),
            "targets": [
                {"phrase": phrase.text, "regions": list(phrase.regions)}
                for phrase in phrases
            ],
        }
        if self.mask_type is not None and self.kind is not None:
            item |= {"mask_type": self.mask_type, "kind": self.kind}
        return item


def enumerate_phrases(
    phrases: Sequence[AnswerPhrase], last: str = "and"
) -> list[str | AnswerPhrase]:
    """Phrases with commas and a last conjunction between them: "the cup, the bowl and the plate"."""
    pieces: list[str | AnswerPhrase] = []
    for place, phrase in enumerate(phrases):
        if place:
            pieces.append(f" {last} " if place == len(phrases) - 1 else ", ")
        pieces.append(phrase)
    return pieces


def refer(
    objects: Sequence[RegionFacts], names: dict[str, str]
) -> list[AnswerPhrase] | None:
    """One phrase for each object, from left to right; None if one has no phrase of its own or there are too many."""
    if not 0 < len(objects) <= MAX_TARGETS or any(
        region.id not in names for region in objects
    ):
        return None
    ordered = sorted(objects, key=lambda region: region.center[0])
    return [AnswerPhrase(names[region.id], (region.number,)) for region in ordered]


def refer_to_groups(
    objects: Sequence[RegionFacts],
    names: dict[str, str],
    by_noun: Mapping[str, Sequence[RegionFacts]],
) -> list[AnswerPhrase] | None:
    """Phrases for objects, where all objects of one noun may share one: "the seven dogs".

    by_noun: all objects of the image. None if there are too many, or if a part of a group has no phrases of its own.
    """
    if not 0 < len(objects) <= MAX_GROUP:
        return None
    phrases: list[AnswerPhrase] = []
    for noun in dict.fromkeys(region.noun.text for region in objects):
        alike = [region for region in objects if region.noun.text == noun]
        single = refer(alike, names) if len(alike) < MIN_GROUP else None
        if single is not None:
            phrases += single
        elif len(alike) > 1 and len(alike) == len(by_noun.get(noun, ())):
            numbers = tuple(region.number for region in alike)
            phrases.append(AnswerPhrase(f"the {count_noun(noun, len(alike))}", numbers))
        else:
            return None
    return phrases
