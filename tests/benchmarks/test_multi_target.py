"""MMR and MUSE: targets in order, parts, overlaps, answers in words, two image roots."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco_mask

from tests.formats import layouts
from tests.formats.reading import read, reasons


def change_record(path: Path, **fields: Any) -> None:
    records = json.loads(path.read_text())
    records[0] |= fields
    layouts.write_json(path, records)


def target(name: str, mask: Any) -> dict[str, Any]:
    return {
        "segmentation": mask,
        "category_name": name,
        "bbox": [0, 0, 1, 1],
        "image_id": 5,
        "category_id": 1,
    }


KNIFE = target("knife", layouts.rle(layouts.FRONT))


def test_mmr_answers_name_their_masks(tmp_path: Path) -> None:
    layouts.mmr(tmp_path)
    (scene,), _ = read("mmr", tmp_path)
    first, second = scene.samples
    assert (first.id, first.image_id, first.question) == ("5/0", "5", "What cuts?")
    assert first.answer is not None
    assert first.answer.text == "The knife_1."
    assert second.answer is not None
    assert second.answer.text == "Take the knife_1 by the knife_1's handle."
    words = [
        second.answer.text[phrase.start : phrase.stop]
        for phrase in second.answer.phrases
    ]
    assert words == ["knife_1", "knife_1's handle"]
    assert [phrase.regions for phrase in second.answer.phrases] == [(0,), (1,)]


def test_mmr_parts_and_their_objects(tmp_path: Path) -> None:
    path = layouts.mmr(tmp_path)
    (scene,), _ = read("mmr", tmp_path)
    knife, handle = scene.regions
    assert (knife.name, handle.name, handle.part_of) == (
        "knife",
        "knife:handle",
        knife.id,
    )
    change_record(
        path,
        text_answers=[
            "The knife_1 {seg}.",
            "The knife_2 {seg} and the knife_1's handle {seg}.",
        ],
    )
    (scene,), _ = read("mmr", tmp_path)
    assert [region.part_of for region in scene.regions] == [None, None]


def test_the_same_target_again_is_the_same_region(tmp_path: Path) -> None:
    layouts.mmr(tmp_path)
    (scene,), _ = read("mmr", tmp_path)
    assert len(scene.regions) == 2
    assert scene.samples[0].targets[0] == scene.samples[1].targets[0]
    path = tmp_path / "MMR_val.json"
    change_record(
        path,
        questions=["Both?"],
        answers=[[KNIFE, KNIFE]],
        text_answers=["The {seg} and {seg}."],
    )
    (scene,), _ = read("mmr", tmp_path)
    assert len(scene.samples[0].targets) == 2
    assert len(scene.regions) == 1


def test_mmr_lists_of_run_lengths_are_summed(tmp_path: Path) -> None:
    path = layouts.mmr(tmp_path)
    parts = [layouts.rle(layouts.FRONT), layouts.rle(layouts.BACK_AMODAL)]
    change_record(
        path,
        questions=["What?"],
        answers=[[target("knife", parts)]],
        text_answers=["It {seg}."],
    )
    (scene,), diagnostics = read("mmr", tmp_path)
    (region,) = scene.regions
    summed = coco_mask.decode(parts).sum(2)
    assert region.visible is not None
    assert region.overlap is not None
    assert np.array_equal(region.visible.to_dense(), summed > 0)
    assert np.array_equal(region.overlap.to_dense(), summed > 1)
    assert diagnostics == []


@pytest.mark.parametrize(
    "text", ["No mask.", "The knife_1 {seg} and {seg}.", "{seg}{seg}{seg}"]
)
def test_an_answer_that_miscounts_is_kept_without_phrases(
    text: str, tmp_path: Path
) -> None:
    path = layouts.mmr(tmp_path)
    change_record(path, questions=["What?"], answers=[[KNIFE]], text_answers=[text])
    (scene,), diagnostics = read("mmr", tmp_path)
    assert reasons(diagnostics, kept=True) == ["answer does not fit its targets"]
    assert scene.samples[0].answer is not None
    assert scene.samples[0].answer.phrases == ()
    assert "{seg}" not in scene.samples[0].answer.text


@pytest.mark.parametrize("text", ["{seg}", " {seg}.", ", {seg}"])
def test_a_mask_that_no_word_names_has_no_phrase(text: str, tmp_path: Path) -> None:
    path = layouts.mmr(tmp_path)
    change_record(path, questions=["What?"], answers=[[KNIFE]], text_answers=[text])
    (scene,), diagnostics = read("mmr", tmp_path)
    assert scene.samples[0].answer is not None
    assert scene.samples[0].answer.phrases == ()
    assert diagnostics == []


def test_questions_and_answers_must_pair(tmp_path: Path) -> None:
    path = layouts.mmr(tmp_path)
    change_record(path, questions=["One?"])
    scenes, diagnostics = read("mmr", tmp_path)
    assert scenes == []
    assert reasons(diagnostics) == ["answers do not fit the questions"]


@pytest.mark.parametrize(
    "answers", [KNIFE, None, [[KNIFE]], ["knife"], [target("knife", "text")], 7]
)
def test_answers_of_another_type_cost_one_question(
    answers: Any, tmp_path: Path
) -> None:
    path = layouts.mmr(tmp_path)
    change_record(path, answers=[answers, [KNIFE]], text_answers=[])
    (scene,), diagnostics = read("mmr", tmp_path)
    assert [sample.id for sample in scene.samples] == ["5/1"]
    assert set(reasons(diagnostics)) <= {
        "fields of another type",
        "invalid mask",
        "question about a skipped region",
    }


def test_a_question_may_have_no_target(tmp_path: Path) -> None:
    path = layouts.mmr(tmp_path)
    change_record(path, questions=["What?"], answers=[[]], text_answers=["Nothing."])
    (scene,), diagnostics = read("mmr", tmp_path)
    assert (scene.samples[0].targets, diagnostics) == ((), [])


def test_a_image_listed_again_stays_apart(tmp_path: Path) -> None:
    path = layouts.mmr(tmp_path)
    records = json.loads(path.read_text())
    layouts.write_json(path, records * 2)
    scenes, diagnostics = read("mmr", tmp_path)
    assert [scene.image.id for scene in scenes] == ["5", "5#2"]
    assert [sample.id for scene in scenes for sample in scene.samples] == [
        "5/0",
        "5/1",
        "5#2/0",
        "5#2/1",
    ]
    assert reasons(diagnostics, kept=True) == ["image listed again"]


def test_missing_answer_texts_are_none(tmp_path: Path) -> None:
    path = layouts.mmr(tmp_path)
    change_record(path, text_answers=["The knife_1 {seg}."])
    (scene,), _ = read("mmr", tmp_path)
    assert [sample.answer is None for sample in scene.samples] == [False, True]


def test_muse_has_two_image_roots(tmp_path: Path) -> None:
    path = layouts.muse(tmp_path)
    records = json.loads(path.read_text())
    layouts.write_image(tmp_path / "train2017/3.jpg")
    records.append(
        records[1] | {"coco_url": "http://images.cocodataset.org/train2017/3.jpg"}
    )
    layouts.write_json(path, records)
    scenes, diagnostics = read("muse", tmp_path)
    assert [scene.image.path for scene in scenes] == [
        "train2014/COCO_train2014_1.jpg",
        "val2017/2.jpg",
        "train2017/3.jpg",
    ]
    assert diagnostics == []


def test_muse_polygons_are_summed(tmp_path: Path) -> None:
    path = layouts.muse(tmp_path)
    polygons = json.loads(path.read_text())[0]["answers"][0][0]["segmentation"]
    scenes, _ = read("muse", tmp_path)
    summed = coco_mask.decode(coco_mask.frPyObjects(polygons, 10, 12)).sum(2)
    (region,) = scenes[0].regions
    assert region.visible is not None
    assert region.overlap is not None
    assert np.array_equal(region.visible.to_dense(), summed > 0)
    assert np.array_equal(region.overlap.to_dense(), summed > 1)


def test_muse_phrases_go_by_the_rephrased_name(tmp_path: Path) -> None:
    layouts.muse(tmp_path)
    scenes, _ = read("muse", tmp_path)
    answer = scenes[0].samples[0].answer
    assert answer is not None
    assert answer.text == "The sleepy cat does."
    assert [answer.text[phrase.start : phrase.stop] for phrase in answer.phrases] == [
        "sleepy cat"
    ]
    assert scenes[0].regions[0].name == "cat"
    assert scenes[1].samples[0].answer is None


@pytest.mark.parametrize(
    "fields",
    [{"coco_url": None}, {"coco_url": "http://x/../../secret"}, {"coco_url": ""}],
)
def test_muse_records_without_a_image(fields: dict[str, Any], tmp_path: Path) -> None:
    path = layouts.muse(tmp_path)
    records = json.loads(path.read_text())
    records[1] |= fields
    layouts.write_json(path, records)
    scenes, diagnostics = read("muse", tmp_path)
    assert len(scenes) == 1
    assert reasons(diagnostics) == ["missing image"]
