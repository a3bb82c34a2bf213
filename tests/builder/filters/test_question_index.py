"""Near-duplicate questions are found by their words."""

from hypothesis import given
from hypothesis import strategies as st

from maskwise.builder.filters.question_index import (
    QuestionIndex,
    shingles,
    similarity,
)
from maskwise.language.tokens import split_words
from tests.builder.filters.drafts import make_draft

WORDS = st.lists(
    st.sampled_from(["what", "which", "cup", "holds", "tea", "left", "the"]), max_size=6
).map(tuple)


def alike(a: str, b: str) -> float:
    return similarity(shingles(split_words(a)), shingles(split_words(b)))


def test_similarity_by_hand() -> None:
    # Four words and three pairs each; what, holds, tea and the pair of what and holds are common.
    assert alike("What holds hot tea?", "What holds cold tea?") == 2 * 4 / 14
    assert alike("What holds tea?", "what holds the TEA") == 1.0
    assert alike("What holds tea?", "Who sleeps here?") == 0.0
    assert alike("Is it there?", "is it, there") == 1.0


@given(WORDS, WORDS)
def test_similarity_is_symmetric_and_bounded(
    a: tuple[str, ...], b: tuple[str, ...]
) -> None:
    first = shingles(a)
    second = shingles(b)
    assert 0 <= similarity(first, second) == similarity(second, first) <= 1
    assert similarity(first, first) == 1


@given(st.text(max_size=40))
def test_a_question_duplicates_itself(question: str) -> None:
    index = QuestionIndex()
    draft = make_draft(question)
    assert index.find_duplicate(draft, 0.8) is None
    index.add(draft)
    assert index.find_duplicate(draft, 0.8) == question
    assert index.find_duplicate(make_draft(question, image_id="other"), 0.8) is None
