"""The offline judge: names, synonyms, kinds and masks; what it cannot tell is not certain."""

import msgspec
import pytest

from maskwise.judging.offline import judge_words
from tests.judging.cases import case


@pytest.mark.parametrize(
    "answer",
    [
        "It is the red cup.",
        "the red CUP",
        "It is the crimson mug.",
        "The red cup, not the laptop.",
        "red teacup",
    ],
)
def test_names_synonyms_and_kinds_are_right_for_certain(answer: str) -> None:
    verdict = judge_words(case(answer))
    assert verdict.certain
    assert verdict.correct
    assert verdict.complete
    assert verdict.grounded
    assert not verdict.hallucinated


def test_another_object_of_the_image_is_wrong_for_certain() -> None:
    verdict = judge_words(case("It is the laptop.", found=(1,)))
    assert verdict.certain
    assert not verdict.correct
    assert not verdict.complete
    assert not verdict.hallucinated
    assert verdict.grounded, "its mask is on the laptop"
    assert '"laptop"' in verdict.reason


@pytest.mark.parametrize(
    "answer",
    [
        "Something to sip tea from.",
        "It is the cup.",
        "It is the red cup, which floats.",
        "It is the red cup and the laptop.",
        "The one on the laptop.",
    ],
)
def test_what_the_words_do_not_settle_is_not_certain(answer: str) -> None:
    assert not judge_words(case(answer)).certain


def test_a_wrong_color_is_wrong_and_invented() -> None:
    verdict = judge_words(case("It is the blue cup."))
    assert not verdict.correct
    assert verdict.hallucinated


def test_an_object_of_the_dataset_that_is_not_in_the_image_is_invented() -> None:
    assert judge_words(case("It is the umbrella.")).hallucinated
    assert not judge_words(case("It is the sofa.")).hallucinated


def test_one_of_two_targets_is_not_complete() -> None:
    both = case(
        "It is the red cup.",
        targets=(0, 1),
        true_answer="They are the red cup and the laptop.",
    )
    verdict = judge_words(both)
    assert verdict.certain
    assert not verdict.complete
    assert not verdict.correct
    named = case(
        "The laptop and the red cup.", targets=(0, 1), true_answer="the cup, the laptop"
    )
    assert judge_words(named).correct


def test_the_mask_of_another_object_is_not_grounded() -> None:
    verdict = judge_words(case("It is the red cup.", found=(2,)))
    assert verdict.correct
    assert not verdict.grounded


def test_a_phrase_has_to_refer_to_its_object() -> None:
    answer = "It is the red cup, near the sofa."
    right = case(answer, found=(0, 2), phrase="the red cup")
    wrong = case(answer, found=(2, 0), phrase="the red cup")
    mentioned = "Which cup is near the sofa?"
    for item, expected in ((right, True), (wrong, False)):
        sample = msgspec.structs.replace(item.sample, question=mentioned)
        asked = type(item)(sample, item.prediction, item.others, item.vocabulary)
        assert judge_words(asked).grounded is expected


class TestWithoutTargets:
    def judge(self, answer: str, **options: object):  # type: ignore[no-untyped-def]
        nothing = {"targets": (), "true_answer": "There is nothing like that here."}
        return judge_words(case(answer, **nothing, **options))  # type: ignore[arg-type]

    def test_saying_so_is_right(self) -> None:
        verdict = self.judge("There is no cup.", question="Where is the cup?")
        assert verdict.correct
        assert verdict.grounded
        assert verdict.certain

    def test_the_flag_says_so_too(self) -> None:
        assert self.judge("", no_target=True).correct

    def test_a_mask_is_invented(self) -> None:
        verdict = self.judge("It is the cup.", found=(1,))
        assert verdict.certain
        assert verdict.hallucinated
        assert not verdict.correct


def test_denying_a_target_is_wrong() -> None:
    verdict = judge_words(case("There is nothing.", found=(), no_target=True))
    assert verdict.certain
    assert not verdict.correct


@pytest.mark.parametrize("answer", [None, "", "   "])
def test_without_an_answer_there_is_nothing_right(answer: str | None) -> None:
    verdict = judge_words(case(answer))
    assert verdict.origin == "no answer"
    assert not verdict.correct
    assert verdict.reason == "the prediction has no answer in words"
