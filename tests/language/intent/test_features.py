"""Features tell apart what the words of a question say together, not only which words there are."""

import numpy as np
import pytest

from maskwise.language.intent.features import (
    HASH_BITS,
    Feature,
    extract_features,
    hash_features,
)
from maskwise.language.intent.tokenizer import QuestionTokenizer, TokenizedQuestion


@pytest.fixture(scope="module")
def tokenizer() -> QuestionTokenizer:
    return QuestionTokenizer([])


def features_of(*concepts: str) -> set[Feature]:
    tokens = TokenizedQuestion(list(concepts), list(concepts))
    return set(extract_features(tokens))


def test_a_negation_marks_the_cues_after_it_in_its_clause() -> None:
    assert ("signed", ("not-HIDDEN",)) in features_of("NOT", "HIDDEN")
    assert ("signed", ("HIDDEN",)) in features_of("HIDDEN", "NOT")
    assert ("signed", ("HIDDEN",)) in features_of("NOT", ",", "HIDDEN")
    assert ("signed", ("HIDDEN",)) in features_of("NOT", "BUT", "HIDDEN")


def test_what_is_not_seen_is_hidden() -> None:
    assert ("cues", ("^", "hidden")) in features_of("NOT", "SEEN")
    assert ("cues", ("^", "seen")) in features_of("NOT", "HIDDEN")
    far = features_of("NOT", "THING", "THING", "THING", "SEEN")
    assert ("cues", ("not", "seen")) in far


def test_pairs_across_clauses_are_features_of_their_own() -> None:
    assert ("pair", ("WHOLE", "SHAPE")) in features_of("WHOLE", "SHAPE")
    assert ("pair apart", ("WHOLE", "SHAPE")) in features_of("WHOLE", ",", "SHAPE")


def test_a_cue_after_a_linking_word_describes() -> None:
    assert ("link", ("whose", "WHOLE")) in features_of("whose", "WHOLE")
    assert ("link", ("^", "WHOLE")) in features_of("whose", ",", "WHOLE")


def test_the_last_request_gives_the_mood() -> None:
    features = features_of("SEGMENT", "WHOLE", ".", "which", "HIDDEN")
    assert ("mood", ("ask", "whole")) in features
    assert ("mood", ("which", "hidden")) in features
    assert ("request", ("which", "whole")) in features


def test_asking_for_the_looks_is_another_mood() -> None:
    assert ("mood", ("what like", "whole")) in features_of(
        "what", "WHOLE", "SEE", "like"
    )


def test_words_without_a_cue_have_no_ngrams() -> None:
    kinds = {kind for kind, _ in features_of("THING", "THINGS")}
    assert "concepts" not in kinds
    assert "words" not in kinds


def test_hashed_features_are_unique_sorted_and_in_range(
    tokenizer: QuestionTokenizer,
) -> None:
    indices = hash_features(tokenizer.tokenize("the whole dog, hidden parts included"))
    assert indices.dtype == np.int64
    assert (np.diff(indices) > 0).all()
    assert 0 <= indices[0] < indices[-1] < 2**HASH_BITS


def test_order_matters(tokenizer: QuestionTokenizer) -> None:
    first = hash_features(tokenizer.tokenize("the modal mask, not the amodal one"))
    second = hash_features(tokenizer.tokenize("the amodal mask, not the modal one"))
    assert set(first.tolist()) != set(second.tolist())
