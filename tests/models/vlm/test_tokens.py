"""Segmentation tokens: written into answers and read from them."""

import numpy as np
import pytest

from maskwise.models.vlm.tokens import NO_TARGET, read_seg_answer, write_seg_answer
from maskwise.schema import Answer, Phrase, Region, Sample

TOKENS = ("[V]", "[A]")


def sample(
    text: str | None,
    phrases: dict[str, tuple[int, ...]],
    targets: int,
    mask_type: str = "visible",
) -> Sample:
    mask = np.ones((2, 2), bool)
    regions = tuple(
        Region(id=str(number), name="thing", visible=mask) for number in range(targets)
    )
    found = [
        Phrase(
            start=(text or "").index(words),
            stop=(text or "").index(words) + len(words),
            regions=chosen,
        )
        for words, chosen in phrases.items()
    ]
    answer = None if text is None else Answer(text=text, phrases=tuple(found))
    return Sample(
        id="1",
        image_id="1",
        question="?",
        mask_type=mask_type,
        targets=regions,
        answer=answer,
    )


def test_tokens_follow_the_phrases_of_their_targets():
    one = sample("It is the mug and the box.", {"the box": (0,), "the mug": (1,)}, 2)
    assert write_seg_answer(one, TOKENS) == (
        "It is the mug [V] and the box [V].",
        (1, 0),
    )


def test_the_mask_type_decides_the_kind_of_the_token():
    amodal = sample("The mug.", {"The mug": (0,)}, 1, "amodal")
    assert write_seg_answer(amodal, TOKENS) == ("The mug [A].", (0,))
    both = write_seg_answer(sample("The mug.", {"The mug": (0,)}, 1, "both"), TOKENS)
    assert both == ("The mug [V][A].", (0, 0))


def test_a_phrase_may_name_several_targets():
    one = sample("The mugs.", {"The mugs": (0, 1)}, 2)
    assert write_seg_answer(one, TOKENS) == ("The mugs [V][V].", (0, 1))


def test_targets_without_a_phrase_follow_at_the_end():
    assert write_seg_answer(sample(None, {}, 2), TOKENS) == (
        "Sure, it is [V][V].",
        (0, 1),
    )
    assert write_seg_answer(sample("On the left", {}, 1), TOKENS) == (
        "On the left [V]",
        (0,),
    )


def test_an_answer_without_targets_has_no_tokens():
    assert write_seg_answer(sample(None, {}, 0), TOKENS) == (NO_TARGET, ())
    assert write_seg_answer(sample("Nothing.", {}, 0), TOKENS) == ("Nothing.", ())


@pytest.mark.parametrize(
    ("pieces", "kinds", "text", "names"),
    [
        (["It is the mug", "."], [0], "It is the mug.", ["the mug"]),
        (
            ["It is the mug", ", shown whole."],
            [1],
            "It is the mug, shown whole.",
            ["the mug"],
        ),
        (
            ["They are the mug", " and the box", "."],
            [0, 0],
            "They are the mug and the box.",
            ["the mug", "the box"],
        ),
        (
            ["The two mugs", "", "."],
            [0, 0],
            "The two mugs.",
            ["The two mugs", "The two mugs"],
        ),
        (["The mug", "", "."], [0, 1], "The mug.", ["The mug"]),
        (["", ""], [0], "", [""]),
        (["Nothing."], [], "Nothing.", []),
    ],
)
def test_written_answers_are_read(pieces, kinds, text, names):
    answer, targets = read_seg_answer(pieces, kinds)
    assert answer.text == text
    assert [text[one.start : one.stop] for one in targets] == names
    assert [phrase.regions for phrase in answer.phrases] == [
        (place,) for place, name in enumerate(names) if name
    ]
