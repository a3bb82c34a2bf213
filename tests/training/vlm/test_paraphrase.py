"""Questions of the world in the words of the mask-type corpus."""

from random import Random

import pytest

from maskwise.language.intent import classify_intent
from maskwise.training.vlm import paraphrase
from maskwise.training.vlm.paraphrase import LONGEST, Paraphraser
from maskwise.world import SceneQuestion, make_scene


@pytest.fixture(scope="module")
def paraphrases() -> list[tuple[SceneQuestion, str]]:
    paraphraser = Paraphraser()
    rng = Random(5)
    questions = [
        one
        for scene in range(25)
        for one in make_scene(3, scene, "train", 32, questions=8).questions
    ]
    return [
        (question, paraphraser.rephrase(question, rng))
        for question in questions
        for _ in range(3)
    ]


def test_a_paraphrase_asks_for_the_same_thing(paraphrases):
    for question, text in paraphrases:
        assert len(text) <= LONGEST
        assert any(
            about and about.lower() in text.lower()
            for about in (question.np, question.ask)
        )


def test_questions_that_need_no_name_are_also_asked_without_it(paraphrases):
    unnamed = [
        question
        for question, text in paraphrases
        if question.np.lower() not in text.lower()
    ]
    assert unnamed
    assert all(question.ask for question in unnamed)
    assert {question.mask_type for question in unnamed} == {"visible", "amodal"}


def test_a_paraphrase_keeps_the_mask_type(paraphrases, monkeypatch):
    monkeypatch.setattr(paraphrase, "NEUTRAL_RATE", 0.0)  # random words are no English
    paraphraser = Paraphraser()
    rng = Random(6)
    questions = [question for question, _ in paraphrases]
    found = classify_intent(
        [paraphraser.rephrase(question, rng) for question in questions]
    )
    agree = sum(
        one.mask_type == question.mask_type for one, question in zip(found, questions)
    )
    assert agree / len(questions) > 0.95


def test_words_that_state_nothing_leave_the_mask_visible(paraphrases):
    paraphraser = Paraphraser()
    assert not {"whole", "entire", "hidden", "behind", "visible", "amodal"} & set(
        paraphraser.neutral
    )
