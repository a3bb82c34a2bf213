"""Rephrase questions of the world with the sentence templates of the mask-type corpus.

A model that starts from random weights knows no English. The world's training split has few wordings; the corpus of
`models.intent` has thousands that state the mask type, so that a question asks for the same targets in other words.
"""

from random import Random

from maskwise.models.intent.templates import (
    Alternatives,
    PhraseReference,
    SentenceTemplate,
    TemplateCorpus,
    load_corpus,
)

NOUN_PHRASES = ("np", "np0", "npm")
"""The phrases of the corpus that stand for the thing that is asked for."""

LONGEST = 220
"""Longer sentences are drawn again; a few templates repeat phrases."""


class Paraphraser:
    """Sentences of the corpus about a given noun phrase."""

    def __init__(self) -> None:
        self.corpus = load_corpus()
        self.templates = {
            kind: [one for one in self.corpus.templates if one.mask_type == kind and _is_about(one)]
            for kind in ("visible", "amodal")
        }

    def rephrase(self, noun_phrase: str, mask_type: str, rng: Random) -> str:
        """A random sentence that asks for this mask type of the noun phrase."""
        fixed = {name: Alternatives(((noun_phrase,),)) for name in NOUN_PHRASES}
        corpus = TemplateCorpus(self.corpus.phrases | fixed, [])
        while True:
            text = corpus.expand(rng.choice(self.templates[mask_type]), rng)
            if len(text) <= LONGEST:
                return text


def _is_about(template: SentenceTemplate) -> bool:
    """True if every sentence of the template contains one of the noun phrases."""
    return all(_contains(option) for option in template.content.options)


def _contains(parts: tuple[object, ...]) -> bool:
    return any(isinstance(part, PhraseReference) and part.name in NOUN_PHRASES for part in parts)
