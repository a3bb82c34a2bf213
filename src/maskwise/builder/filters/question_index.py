"""Near-duplicate questions: those about one image, compared by their words."""

import functools
from collections import defaultdict
from itertools import pairwise

from maskwise.builder.draft import Draft
from maskwise.language.lexicons import word_set
from maskwise.language.tokens import split_words

STOPWORDS = word_set(
    "a an the this that these those in on of at to is are be it its there "
    "please can could would you i me my we image picture photo scene"
)
"""Words without which two questions still ask the same."""

QuestionKey = tuple[str, tuple[str, ...], str]
"""Image, target regions in ascending order, mask type."""

Shingles = frozenset[str | tuple[str, str]]


class QuestionIndex:
    """Questions accepted so far, by image, targets and mask type."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, tuple[str, ...]], str] = {}
        self._alike: defaultdict[QuestionKey, list[tuple[Shingles, str]]] = defaultdict(
            list
        )

    def find_duplicate(self, draft: Draft, max_similarity: float) -> str | None:
        """An accepted question that asks the same: equal words about the same image, or similar ones about the same
        targets with the same mask type; None if there is none.
        """
        words = split_words(draft.question)
        if (draft.image_id, words) in self._texts:
            return self._texts[draft.image_id, words]
        own_shingles = shingles(words)
        for other, question in self._alike[question_key(draft)]:
            if similarity(own_shingles, other) > max_similarity:
                return question
        return None

    def add(self, draft: Draft) -> None:
        """Accept the question of a draft."""
        words = split_words(draft.question)
        self._texts[draft.image_id, words] = draft.question
        self._alike[question_key(draft)].append((shingles(words), draft.question))


def question_key(draft: Draft) -> QuestionKey:
    """Questions with different keys may have similar words."""
    return draft.image_id, tuple(sorted(draft.region_ids)), draft.mask_type


@functools.lru_cache(2**10)
def shingles(words: tuple[str, ...]) -> Shingles:
    """The words without stop words, and the pairs of adjacent ones; of stop words if there is nothing else."""
    kept = tuple(word for word in words if word not in STOPWORDS) or words
    return frozenset(kept) | frozenset(pairwise(kept))


def similarity(a: Shingles, b: Shingles) -> float:
    """The Dice coefficient of two sets, 0 to 1; 1 if both are empty."""
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0
