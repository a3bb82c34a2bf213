"""What a reviewer may change, and what the sample is afterwards."""

from typing import Any

import msgspec
import pytest

from maskwise.masks import Mask
from maskwise.review import edits
from maskwise.review.edits import (
    InvalidDecisionError,
    apply_edit,
    changes_nothing,
    check_mask,
    to_sample,
)
from maskwise.review.records import EditedSample, SampleEdit
from maskwise.schema import Answer, Phrase, Region, Sample
from tests.review.datasets import HEIGHT, WIDTH, box

CUP = Region(id="cup", name="cup", visible=box(2, 2, 4, 4), amodal=box(2, 2, 4, 6))
TABLE = Region(id="table", name="table", visible=box(0, 6, 16, 6))
SAMPLE = Sample(
    id="s",
    image_id="i",
    question="What can I drink from?",
    mask_type="both",
    targets=(CUP,),
    answer=Answer(text="The cup.", phrases=(Phrase(start=4, stop=7, regions=(0,)),)),
    tags={"split": "val"},
)


def apply(**edit: Any) -> EditedSample:
    changes = msgspec.convert(edit, SampleEdit)
    return apply_edit(SAMPLE, [CUP, TABLE], changes, size=(HEIGHT, WIDTH))


def test_what_is_absent_stays_as_it_is() -> None:
    assert changes_nothing(SAMPLE, apply())
    edited = apply(question="What holds tea?")
    assert not changes_nothing(SAMPLE, edited)
    assert (edited.question, edited.targets) == ("What holds tea?", (CUP,))
    assert edited.answer == SAMPLE.answer


def test_an_edited_sample_keeps_its_id_image_and_tags() -> None:
    sample = to_sample(SAMPLE, apply(mask_type="amodal"))
    assert (sample.id, sample.image_id, sample.tags) == ("s", "i", {"split": "val"})
    assert sample.mask_type == "amodal"


def test_a_target_of_the_image_keeps_the_masks_that_are_not_given() -> None:
    (target,) = apply(targets=[{"id": "cup", "visible": box(2, 2, 3, 3)}]).targets
    assert (target.visible, target.amodal) == (box(2, 2, 3, 3), CUP.amodal)


def test_null_removes_a_mask_but_not_the_last() -> None:
    (target,) = apply(targets=[{"id": "cup", "amodal": None}]).targets
    assert target.amodal is None
    with pytest.raises(InvalidDecisionError, match="neither a visible nor an amodal"):
        apply(targets=[{"id": "cup", "visible": None, "amodal": None}])


def test_other_regions_of_the_image_and_new_ones_become_targets() -> None:
    new = {"id": "mug", "name": "mug", "visible": box(8, 2, 3, 3)}
    targets = apply(targets=[{"id": "cup"}, {"id": "table"}, new]).targets
    assert [target.name for target in targets] == ["cup", "table", "mug"]
    assert targets[1] == TABLE


def test_the_answer_may_be_removed_but_not_refer_to_missing_targets() -> None:
    assert apply(answer=None, targets=[]).targets == ()
    with pytest.raises(InvalidDecisionError, match="phrase"):
        apply(targets=[])


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x1b", "\x7f"])
@pytest.mark.parametrize("field", ["question", "answer", "name"])
def test_control_characters_are_refused_in_every_text(
    field: str, character: str
) -> None:
    text = f"a{character}b"
    changes: dict[str, Any] = {field: text}
    if field == "answer":
        changes = {"answer": {"text": text}}
    if field == "name":
        changes = {"targets": [{"id": "cup", "name": text}]}
    with pytest.raises(InvalidDecisionError, match="control character U\\+00"):
        apply(**changes)


def test_tabs_and_line_feeds_are_text() -> None:
    assert apply(question="one\n\ttwo").question == "one\n\ttwo"


def test_an_answer_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidDecisionError, match="more than the limit of 8000"):
        apply(answer={"text": "x" * 8001})


def test_masks_have_the_size_of_the_image_and_few_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InvalidDecisionError, match=r"\(12, 16\), found \(2, 2\)"):
        check_mask(Mask(size=(2, 2), counts="4"), (HEIGHT, WIDTH), "visible")
    monkeypatch.setattr(edits, "MAX_MASK_BYTES", 3)
    with pytest.raises(InvalidDecisionError, match="more than the limit of 3"):
        check_mask(box(2, 2, 4, 4), (HEIGHT, WIDTH), "visible")
