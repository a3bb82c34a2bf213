"""Drafts become samples whose phrases point at their targets."""

import numpy as np
import pytest

from maskwise.builder.draft import (
    Draft,
    DraftTarget,
    SourceImage,
    draft_to_sample,
    find_phrases,
)
from maskwise.errors import RecordError
from maskwise.schema import ImageInfo, Region


def box(left: int, top: int, right: int, bottom: int) -> np.ndarray:
    mask = np.zeros((10, 20), bool)
    mask[top:bottom, left:right] = True
    return mask


IMAGE = SourceImage(
    ImageInfo(id="im", width=20, height=10),
    (
        Region(id="a", name="cup", visible=box(0, 0, 4, 5), amodal=box(0, 0, 8, 5)),
        Region(id="b", name="cupboard", visible=box(10, 0, 20, 10)),
        Region(id="b.door", name="door", visible=box(12, 0, 14, 10), part_of="b"),
    ),
)


def draft(answer: str, *targets: tuple[str, tuple[str, ...]]) -> Draft:
    found = tuple(
        DraftTarget(phrase=phrase, regions=regions) for phrase, regions in targets
    )
    return Draft(
        image_id="im",
        question="What holds tea?",
        answer=answer,
        targets=found,
        mask_type="both",
        kind="reasoning",
        tags={"level": "object"},
    )


def test_a_draft_becomes_a_sample_with_phrases() -> None:
    made = draft(
        "In the cupboard stands the cup.", ("the cupboard", ("b",)), ("the cup", ("a",))
    )
    sample = draft_to_sample(made, IMAGE, "s1")
    assert [region.id for region in sample.targets] == ["b", "a"]
    assert sample.answer is not None
    assert [sample.answer.text[p.start : p.stop] for p in sample.answer.phrases] == [
        "the cupboard",
        "the cup",
    ]
    assert [p.regions for p in sample.answer.phrases] == [(0,), (1,)]
    assert sample.tags == {"question_type": "reasoning", "level": "object"}


def test_a_phrase_may_refer_to_several_regions() -> None:
    sample = draft_to_sample(
        draft("Both of them.", ("Both of them", ("a", "b"))), IMAGE, "s"
    )
    assert sample.answer is not None
    assert sample.answer.phrases[0].regions == (0, 1)


def test_phrases_match_whole_words_in_order() -> None:
    assert find_phrases("the cupboard and the cup", ["the cup"]) == [(17, 24)]
    assert find_phrases("cup, cup", ["cup", "cup", "cup"]) == [(0, 3), (5, 8), None]
    assert find_phrases("a cup", [""]) == [None]


@pytest.mark.parametrize("target", [("the saucer", ("a",)), ("the cup", ("z",))])
def test_missing_phrases_and_regions_are_refused(
    target: tuple[str, tuple[str, ...]],
) -> None:
    with pytest.raises(RecordError, match=f"{target[0]}|{target[1][0]}"):
        draft_to_sample(draft("It is the cup.", target), IMAGE, "s")


def test_parts_and_occlusion_are_measured_once() -> None:
    assert [part.id for part in IMAGE.parts["b"]] == ["b.door"]
    assert IMAGE.occlusion == {"a": 0.5}
    assert IMAGE.occlusion is IMAGE.occlusion
