"""Sentences of the offline writer: question-answer pairs whose phrases are known to refer to regions.

The grammar writes the same JSON object that a language model is asked for (`recipe.py`), from the facts of an image. A
choice among wordings is made by a seeded generator, so that a build can be repeated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from maskwise.builder.facts import RegionFacts
from maskwise.language.word_forms import capitalize_first

MAX_TARGETS = 6
"""More targets than this make an answer that nobody would say."""


class AnswerPhrase(NamedTuple):
    """Words that refer to regions, which are given by their numbers."""

    text: str
    regions: tuple[int, ...]


@dataclass(frozen=True)
class ProposedQuestion:
    """A question with its answer in pieces. family: what kind of question it is; a recipe mixes the families."""

    question: str
    answer: tuple[str | AnswerPhrase, ...]
    family: str
    about: tuple[RegionFacts, ...] = field(default=())

    def to_item(self) -> dict[str, Any]:
        """The pair as a language model would return it; the answer begins with a capital letter."""
        pieces = list(self.answer)
        first = pieces[0]
        text = first if isinstance(first, str) else first.text
        raised = capitalize_first(text)
        pieces[0] = raised if isinstance(first, str) else first._replace(text=raised)
        phrases = [piece for piece in pieces if isinstance(piece, AnswerPhrase)]
        return {
            "question": capitalize_first(self.question),
            "answer": "".join(
                piece if isinstance(piece, str) else piece.text for piece in pieces
            ),
            "targets": [
                {"phrase": phrase.text, "regions": list(phrase.regions)}
                for phrase in phrases
            ],
        }


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
