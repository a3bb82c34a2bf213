"""Questions become words and concepts: spelling, contractions, phrases, objects and actions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.language.intent.lexicon import load_lexicon
from maskwise.language.intent.spelling import SpellingCorrector, split_words
from maskwise.language.intent.tokenizer import QuestionTokenizer


@pytest.fixture(scope="module")
def tokenizer() -> QuestionTokenizer:
    return QuestionTokenizer(["chair", "whale", "code"])


def test_unknown_words_are_corrected_to_cue_words(tokenizer: QuestionTokenizer) -> None:
    assert tokenizer.tokenize("the entrie chiar").concepts == ["WHOLE", "THING"]
    assert tokenizer.tokenize("the hiden part").concepts == ["HIDDEN", "PART"]
    assert tokenizer.tokenize("the whale").concepts == ["THING"]


@pytest.mark.parametrize(
    ("word", "corrected"),
    [
        ("hiden", "hidden"),  # a letter is missing
        ("hiddden", "hidden"),  # one too many
        ("hibden", "hidden"),  # another one
        ("hiddne", "hidden"),  # two are swapped
        ("teh", "the"),  # listed
        ("hidebn", "hidebn"),  # two edits away
        ("only", "only"),
        ("hide", "hide"),  # known
        ("cup", "cup"),  # too short
        ("hidden2", "hidden2"),  # no word
    ],
)
def test_one_edit_is_corrected(word: str, corrected: str) -> None:
    corrector = SpellingCorrector(["hidden"], ["hidden", "hide", "only"])
    assert corrector.correct(word) == corrected


def test_contractions_are_expanded(tokenizer: QuestionTokenizer) -> None:
    expanded = tokenizer.tokenize("you cannot see it")
    assert tokenizer.tokenize("you can't see it") == expanded
    assert tokenizer.tokenize("you cant see it") == expanded
    assert tokenizer.tokenize("don’t") == tokenizer.tokenize("do not")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What's there?", "what is there ?"),
        ("Were the box gone", "if the box gone"),
        ("the dog from nose to tail", "the dog from end to end"),
        ("fence or no fence", "no matter"),
        ("full-length", "fulllength"),
        ("a well-known dog", "a well known dog"),
        ("left - right", "left - right"),
        ("80% & more", "80 % & more"),
        ("", ""),
    ],
)
def test_questions_are_split_into_words_and_marks(text: str, words: str) -> None:
    assert split_words(text) == words.split()


def test_phrases_are_merged(tokenizer: QuestionTokenizer) -> None:
    assert tokenizer.tokenize("out of sight").concepts == ["HIDDEN"]
    assert tokenizer.tokenize("in front of").concepts == ["FRONT"]


def test_actions_are_told_from_objects_by_the_next_word(
    tokenizer: QuestionTokenizer,
) -> None:
    assert tokenizer.tokenize("peering through").concepts == ["DOING", "THROUGH"]
    assert tokenizer.tokenize("a parked car").concepts == ["THING"]


def test_consecutive_objects_are_one_token(tokenizer: QuestionTokenizer) -> None:
    tokens = tokenizer.tokenize("old garden chairs")
    assert (tokens.words, tokens.concepts) == (["chairs"], ["THINGS"])


def test_every_form_of_a_verb_has_its_concept() -> None:
    concepts = load_lexicon().concepts
    forms = ("omit", "omits", "omitted", "omitting")
    assert len({concepts[form] for form in forms}) == 1


def test_longer_phrases_are_tried_first() -> None:
    for phrases in load_lexicon().phrases.values():
        lengths = [len(words) for words, _ in phrases]
        assert lengths == sorted(lengths, reverse=True)


@given(st.text())
def test_any_text_is_tokenized(text: str) -> None:
    tokens = QuestionTokenizer([]).tokenize(text[:50])
    assert len(tokens.words) == len(tokens.concepts)
