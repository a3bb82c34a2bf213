"""Rephrase questions of the world with the sentence templates of the mask-type corpus.

A model that starts from random weights knows no English. The world's training split has few wordings; the corpus of
`training.intent` has thousands that state the mask type, so that a question asks for the same targets in other words.

Random words that state nothing are put around some questions, and some have nothing else beside their noun phrase.
These want the visible mask: a question does, unless its words ask for what is hidden (docs/results/intent.md, after
R2SM).
"""

from random import Random

from maskwise.language.intent.lexicon import load_lexicon
from maskwise.training.intent.templates import (
    TemplateCorpus,
    load_corpus,
    parse_template,
    tidy,
)
from maskwise.world import SceneQuestion

IMPLICIT_RATE = 0.6
"""How often a question that can be asked without the name ("what could I drink from") is asked so."""

NEUTRAL_RATE = 0.4
"""How often random words that state no mask type surround a question; for visible masks half of them replace it."""

LONGEST = 220
"""Longer sentences are drawn again; a few templates repeat phrases."""


class Paraphraser:
    """Sentences of the corpus about a given thing."""

    def __init__(self) -> None:
        self.corpus = load_corpus()
        kinds = ("visible", "amodal")
        self.explicit = {
            kind: [
                template
                for template in self.corpus.templates
                if template.mask_type == kind
            ]
            for kind in kinds
        }
        self.implicit = {
            kind: [template for template in templates if "<ask>" in template.line]
            for kind, templates in self.explicit.items()
        }
        lexicon = load_lexicon()
        self.neutral = sorted(
            self.corpus.vocabulary() - lexicon.concepts.keys() - lexicon.skipped
        )

    def rephrase(self, question: SceneQuestion, rng: Random) -> str:
        """A random sentence that asks for the same thing and mask type."""
        while True:
            write = self._surround if rng.random() < NEUTRAL_RATE else self._expand
            text = write(question, rng)
            if len(text) <= LONGEST:
                return text

    def _expand(self, question: SceneQuestion, rng: Random) -> str:
        """A sentence of the corpus that contains the question's noun phrase, or its form without the name."""
        if question.ask is not None and rng.random() < IMPLICIT_RATE:
            about = question.ask
            templates = self.implicit[question.mask_type]
            fixed = {"ask": parse_template(about)}
        else:
            about = question.np
            templates = self.explicit[question.mask_type]
            fixed = dict.fromkeys(("np", "np0", "npm"), parse_template(about))
        corpus = TemplateCorpus(self.corpus.phrases | fixed, [])
        while True:
            text = corpus.expand(rng.choice(templates), rng)
            if about.lower() in text.lower():
                return text

    def _surround(self, question: SceneQuestion, rng: Random) -> str:
        """Random words before or after a sentence, or around what is asked for alone."""
        before, after = (
            " ".join(rng.choices(self.neutral, k=rng.randrange(1, 6))) for _ in range(2)
        )
        if question.mask_type == "amodal" or rng.random() >= 0.5:
            text = self._expand(question, rng)
            mark = rng.choice(".,:!?")
            end = "" if text.endswith((".", "?", "!")) else "."
            return tidy(
                f"{before}{mark} {text}"
                if rng.random() < 0.5
                else f"{text}{end} {after}."
            )
        if question.ask is not None and rng.random() < IMPLICIT_RATE:
            first = rng.choice(["", f"{before}."])
            last = rng.choice(["", f"{after}."])
            return tidy(f"{first} {question.ask}? {last}")
        return tidy(
            f"{before} {question.np} {rng.choice(['', after])}"
            + rng.choice([".", "?", ""])
        )
