"""Predicted mask types on hand-written sentences and on wordings that are not in the training data."""

import csv
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.language.intent import classify_intent
from maskwise.world import make_scene

SENTENCES = Path(__file__).with_name("sentences.tsv")


class Sentence(NamedTuple):
    """`half`: the set; see docs/results/intent.md."""

    half: str
    mask_type: str
    trick: str
    question: str


def sentences(half: str) -> list[Sentence]:
    with SENTENCES.open(encoding="utf-8", newline="") as file:
        rows = [
            Sentence(**row)
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
    return [row for row in rows if row.half == half]


def wrong(found: list[Sentence]) -> list[Sentence]:
    intents = classify_intent([sentence.question for sentence in found])
    return [
        sentence
        for sentence, intent in zip(found, intents)
        if intent.mask_type != sentence.mask_type
    ]


SETS = {"check": 0.98, "fresh": 0.95, "blind": 0.98}
"""Set of `sentences.tsv` to the least accuracy."""


@pytest.mark.parametrize("name", SETS)
def test_hand_written_sentences_are_classified(name: str) -> None:
    found = sentences(name)
    least = SETS[name]
    failed = wrong(found)
    assert len(found) >= 120
    assert 1 - len(failed) / len(found) >= least, "\n".join(map(str, failed))


def test_held_out_wordings_of_the_world_are_classified() -> None:
    asked = [
        question
        for index in range(60)
        for question in make_scene(11, index, "test").questions
    ]
    intents = classify_intent([question.text for question in asked])
    failed = [
        q.text for q, intent in zip(asked, intents) if intent.mask_type != q.mask_type
    ]
    assert len(failed) <= 0.01 * len(asked), failed


PAIRS = [
    ("the cup behind the teapot", "the cup, even the part behind the teapot"),
    (
        "Segment the dog behind the fence.",
        "Segment the dog as if the fence were not there.",
    ),
    ("Which glass is full?", "Segment the full shape of the glass."),
    ("Mask the whole family.", "Mask the whole dog."),
    ("Do not complete the car.", "Complete the car."),
    ("Only the visible part of the bus.", "Not only the visible part of the bus."),
    (
        "Leave out the hidden part of the chair.",
        "Do not leave out the hidden part of the chair.",
    ),
    (
        "Include only what can be seen of the boat.",
        "Include what cannot be seen of the boat.",
    ),
    (
        "Give the modal mask, not the amodal one.",
        "Give the amodal mask, not the modal one.",
    ),
    ("Segment the cat under the blanket.", "Segment the entire cat under the blanket."),
    (
        "Stop at the edge of the box: the ball.",
        "Don't stop at the edge of the box: the ball.",
    ),
    (
        "Which bottle is partly hidden?",
        "Which bottle is partly hidden? Show its full outline.",
    ),
    ("Mark the sofa without the hidden parts.", "Mark the sofa with the hidden parts."),
    (
        "No need to guess what the tree covers; the car.",
        "Guess what the tree covers; the car.",
    ),
    (
        "Segment the lamp in front of the mirror.",
        "Segment the mirror, ignoring the lamp in front of it.",
    ),
    (
        "What is hidden under the cloth?",
        "What is under the cloth? Include its hidden parts.",
    ),
    (
        "I want the exposed side, not the whole ship.",
        "I want the whole ship, not the exposed side.",
    ),
    (
        "Look over the entire image and mark the cat.",
        "Look over the image and mark the entire cat.",
    ),
    (
        "segmnt only the visble bit of teh chair",
        "segmnt the entier chair incl hiden legs",
    ),
    (
        "Which chair is completely visible?",
        "Segment the chair completely, visible or not.",
    ),
]


@pytest.mark.parametrize(("visible", "amodal"), PAIRS)
def test_minimal_pairs_are_told_apart(visible: str, amodal: str) -> None:
    assert [intent.mask_type for intent in classify_intent([visible, amodal])] == [
        "visible",
        "amodal",
    ]


@given(st.text())
def test_any_text_gets_a_prediction(text: str) -> None:
    (intent,) = classify_intent([text])
    assert intent.mask_type in ("visible", "amodal")
    assert 0.5 <= intent.probability <= 1


@given(
    st.lists(
        st.sampled_from(
            ["whole", "not", "the", "dog", "hidden", ",", ".", "if", "only", "^", "$"]
        ),
        max_size=40,
    )
)
def test_a_prediction_does_not_depend_on_the_batch(words: list[str]) -> None:
    text = " ".join(words)
    assert classify_intent([text, "the whole dog"])[0] == classify_intent([text])[0]


LANGUAGES = [
    "请分割被遮挡的整只狗",
    "图中哪一个物体可以用来切面包？",
    "犬",
    "犬の全体を表示してください",
    "울타리 뒤의 개",
    "الكلب خلف السياج",
    "собака за забором",
    "कुत्ता बाड़ के पीछे",
    "Segmenta el perro completo detrás de la valla",
    "Montre-moi toute la tasse, même la partie cachée",
    "der ganze Hund hinter dem Zaun",
    "tutta la tazza, compresa la parte nascosta",
    "hela hunden bakom staketet",
    "cały pies za płotem",
]


@pytest.mark.parametrize("question", LANGUAGES)
def test_other_languages_lower_the_confidence(question: str) -> None:
    (prediction,) = classify_intent([question])
    assert not prediction.language_supported
    assert prediction.probability < 0.75


@pytest.mark.parametrize(
    "question",
    [
        "zebra",
        "platypus behind the ottoman",
        "crème brûlée with a spoon",
        "El Niño poster on the wall",
        "the piñata",
        "42",
    ],
)
def test_rare_and_borrowed_words_are_english(question: str) -> None:
    assert classify_intent([question])[0].language_supported


def test_every_hand_written_sentence_is_english() -> None:
    questions = [sentence.question for name in SETS for sentence in sentences(name)]
    assert all(
        prediction.language_supported for prediction in classify_intent(questions)
    )


@pytest.mark.parametrize("text", ["", " ", "?!", "\n\t", "…", "犬", "\x00"])
def test_text_without_words_is_visible(text: str) -> None:
    assert classify_intent([text])[0].mask_type == "visible"


def test_no_questions_give_no_predictions() -> None:
    assert classify_intent([]) == []


def test_only_the_first_characters_of_a_long_question_are_read() -> None:
    assert (
        classify_intent(
            ["the dog " * 100_000 + "the whole dog, hidden parts included"]
        )[0].mask_type
        == "visible"
    )
