"""Readers of benchmarks on the hub, on files of their stated layouts that are written here; GSEval on the real file."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import maskwise as mw
from maskwise.benchmarks import find_benchmark
from maskwise.errors import FormatError
from maskwise.protocols.ground_truth import GroundTruth
from tests.formats import layouts
from tests.formats.reading import read, reasons
from tests.shared import shared

FRONT = layouts.FRONT
BACK = layouts.BACK_VISIBLE
SIZE = {"width": layouts.WIDTH, "height": layouts.HEIGHT}


def encode_image(plane: np.ndarray | None = None) -> bytes:
    out = io.BytesIO()
    image = Image.new("RGB", (layouts.WIDTH, layouts.HEIGHT))
    if plane is not None:
        image = Image.fromarray(plane.astype(np.uint8) * 255)
    image.save(out, "PNG")
    return out.getvalue()


IMAGE = {"bytes": encode_image(), "path": "x.png"}


def write_rows(root: Path, split: str, rows: list[Any]) -> None:
    path = root / "data" / f"{split}-00000-of-00001.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


# -- GSEval


def test_gseval_reads_the_published_file(tmp_path: Path) -> None:
    path = shared("data", "gseval", "GroundingSuite-Eval.jsonl")
    summary = mw.read_dataset(
        "gseval", path, tmp_path / "out", split="test", with_images=False
    )
    assert summary.kept["questions"] == 3715
    assert summary.kept["images"] == 2727
    assert not summary.skipped
    dataset = mw.load_dataset(tmp_path / "out")
    codes, names = dataset.samples.tag("class")
    counts = dict(zip(names, np.bincount(codes).tolist()))
    assert counts == {"stuff": 1011, "part": 455, "multi": 769, "single": 1480}


def test_gseval_bad_lines_are_skipped(tmp_path: Path) -> None:
    row = {
        "idx": 0,
        "image_path": "unlabeled2017/1.jpg",
        "class_id": 9,
        "label": "cat",
        "caption": "The cat.",
        "segmentation": layouts.rle(FRONT),
    }
    path = tmp_path / "GroundingSuite-Eval.jsonl"
    lines = [row, row | {"idx": 1, "caption": 5}, row | {"idx": 0}]
    path.write_text("\n\n".join(map(json.dumps, lines)) + "\nno json\n")
    (scene,), diagnostics = read("gseval", tmp_path, with_images=False)
    assert scene.samples[0].tags["class"] == "9"
    assert scene.regions[0].name == "cat"
    assert sorted(reasons(diagnostics)) == [
        "duplicate region id",
        "duplicate sample id",
        "fields of another type",
        "fields of another type",
    ]


# -- SA-Co


def write_saco(root: Path, annotator: str, masks: dict[int, list[Any]]) -> None:
    pairs = [
        {
            "id": number,
            "file_name": "photo.jpg",
            "text_input": text,
            "is_instance_exhaustive": number != 2 or annotator != "b",
            "is_pixel_exhaustive": True,
            **SIZE,
        }
        for number, text in ((1, "cat"), (2, "dog"), (3, "cow"))
    ]
    annotations = [
        {
            "id": 10 * number + item,
            "image_id": number,
            "bbox": [0.1, 0.1, 0.5, 0.5],
            "area": 0.25,
            "iscrowd": 0,
            "segmentation": layouts.rle(plane),
        }
        for number, planes in masks.items()
        for item, plane in enumerate(planes)
    ]
    name = f"gold_metaclip_merged_{annotator}_release_test.json"
    content = {"images": pairs, "annotations": annotations}
    layouts.write_json(root / "gt-annotations" / name, content)


def test_saco_gold_has_phrases_negatives_and_three_annotators(tmp_path: Path) -> None:
    layouts.write_image(tmp_path / "metaclip-images/photo.jpg")
    write_saco(tmp_path, "a", {1: [FRONT, BACK], 2: [FRONT]})
    write_saco(tmp_path, "b", {1: [FRONT], 2: [FRONT]})
    write_saco(tmp_path, "c", {2: [BACK]})
    mw.read_dataset("saco-gold", tmp_path, tmp_path / "out")
    dataset = mw.load_dataset(tmp_path / "out")
    assert dataset.manifest.about["annotators"] == "3"
    assert [len(sample.targets) for sample in dataset] == [2, 1, 0]
    assert [[len(item) for item in sample.other_targets] for sample in dataset] == [
        [1, 0],
        [1, 1],
        [0, 0],
    ]
    assert [sample.tags["exhaustive"] for sample in dataset] == ["yes", "no", "yes"]
    assert len(GroundTruth.from_dataset(dataset).others) == 2
    predictions = [
        mw.Prediction(
            sample=sample.id,
            regions=tuple(
                mw.PredictedRegion(visible=region.visible) for region in sample.targets
            ),
        )
        for sample in dataset
    ]
    run = mw.score(predictions, dataset, protocols=["saco"])
    assert run["saco"]["cgf1"] > 0.9


def test_saco_silver_has_one_annotator(tmp_path: Path) -> None:
    write_saco(tmp_path, "a", {1: [FRONT]})
    path = tmp_path / "gt-annotations/gold_metaclip_merged_a_release_test.json"
    path.rename(path.with_name("silver_food_merged_test.json"))
    (scene,), diagnostics = read("saco-silver", tmp_path, with_images=False)
    assert not diagnostics
    assert [len(sample.other_targets) for sample in scene.samples] == [0, 0, 0]
    assert scene.samples[0].tags["split"] == "food"


# -- Parquet with masks


def test_pbench_has_all_instances_of_an_expression(tmp_path: Path) -> None:
    masks = [layouts.rle(FRONT), layouts.rle(BACK)]
    row = {"image": IMAGE, "expression": "cups", "count": 2, "id": "p1", "masks": masks}
    none = row | {"id": "p2", "masks": [], "expression": "cows"}
    write_rows(tmp_path, "level_2", [row, none])
    scenes, diagnostics = read("pbench", tmp_path)
    assert not diagnostics
    assert [len(scene.samples[0].targets) for scene in scenes] == [2, 0]


def test_refcoco_m_has_a_question_per_sentence(tmp_path: Path) -> None:
    samples = [
        {
            "sentences": ["the cat", "left cat"],
            "mask": layouts.rle(FRONT),
            "bbox": [0.1, 0.2, 0.3, 0.4],
        }
    ]
    write_rows(tmp_path, "validation", [{"image": IMAGE, "samples": samples}])
    (scene,), _ = read("refcoco-m", tmp_path)
    assert [sample.question for sample in scene.samples] == ["the cat", "left cat"]
    assert (scene.regions[0].visible.to_dense() == FRONT).all()


@pytest.mark.parametrize(
    "mask",
    [
        {"bytes": encode_image(FRONT), "path": None},
        FRONT.astype(bool).tolist(),
        layouts.rle(FRONT),
    ],
    ids=["image", "matrix", "rle"],
)
def test_weatherreasonseg_reads_masks_of_three_types(mask: Any, tmp_path: Path) -> None:
    write_rows(
        tmp_path / "syn/val/cfog", "test", [{"image": IMAGE, "text": "?", "mask": mask}]
    )
    (scene,), _ = read("weatherreasonseg", tmp_path / "syn/val/cfog")
    assert (scene.regions[0].visible.to_dense() == FRONT).all()


@pytest.mark.parametrize("by_id", [False, True])
def test_vrt_bench_takes_the_objects_of_the_answer(by_id: bool, tmp_path: Path) -> None:
    objects: Any = [
        {"label": "cat", "mask": layouts.rle(FRONT)},
        {"label": "dog", "mask": layouts.rle(BACK)},
    ]
    if by_id:
        objects = [item | {"id": 7 + place} for place, item in enumerate(objects)]
    row = {
        "key": "k",
        "image": IMAGE,
        "question": "Which?",
        "human_answer_caption": "The dog.",
        "human_reasoning": "",
        "human_labeled_a_objs": [8 if by_id else 1],
        "human_labeled_r_objs": [0],
        "objects_info_json": json.dumps(objects),
    }
    broken = row | {"key": "b", "human_labeled_a_objs": [55]}
    write_rows(tmp_path, "test", [row, broken])
    (scene,), diagnostics = read("vrt-bench", tmp_path)
    assert (scene.regions[0].visible.to_dense() == BACK).all()
    assert scene.samples[0].answer.text == "The dog."
    assert reasons(diagnostics) == ["invalid mask"]


@pytest.mark.parametrize(
    "name", ["pbench", "refcoco-m", "weatherreasonseg", "vrt-bench"]
)
def test_files_with_other_columns_are_refused(name: str, tmp_path: Path) -> None:
    write_rows(tmp_path, "test", [{"a": 1}])
    with pytest.raises(FormatError, match="found: a"):
        read(name, tmp_path)


# -- JSON


def write_mask(path: Path, plane: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_image(plane))


def test_hallusegbench_asks_about_photo_and_edited_photo(tmp_path: Path) -> None:
    for name in ("real.png", "edited.png"):
        layouts.write_image(tmp_path / name)
    write_mask(tmp_path / "masks/a.png", FRONT)
    write_mask(tmp_path / "masks/b.png", BACK)
    pair = {
        "ann_id": 4,
        "factual_image_path": "real.png",
        "factual_mask_path": "masks/a.png",
        "counterfactual_mask_path": "masks/b.png",
        "edited": "edited.png",
        "name": "cat",
        "new_name": "dog",
    }
    layouts.write_json(tmp_path / "test.json", [pair])
    with pytest.raises(FormatError, match="--option label=NAME"):
        read("hallusegbench", tmp_path)
    options = {"label": "name", "edited_image": "edited", "edited_label": "new_name"}
    scenes, diagnostics = read("hallusegbench", tmp_path, options=options)
    assert not diagnostics
    found = [
        (sample.tags["image_kind"], sample.question, len(sample.targets))
        for scene in scenes
        for sample in scene.samples
    ]
    assert found == [
        ("factual", "cat", 1),
        ("counterfactual", "cat", 0),
        ("counterfactual", "dog", 1),
    ]


def test_llm_seg40k_has_answers(tmp_path: Path) -> None:
    pair = {"question": "What?", "answer": "A cat.", "rle_seg": layouts.rle(FRONT)}
    content = {
        "1.jpg": {"from_dataset": "coco", "qa_pairs": [pair, pair]},
        "2.jpg": {"from_dataset": "coco", "qa_pairs": 5},
    }
    layouts.write_json(tmp_path / "val.json", content)
    (scene,), diagnostics = read("llm-seg40k", tmp_path, with_images=False)
    assert [sample.id for sample in scene.samples] == ["1.jpg/0", "1.jpg/1"]
    assert scene.samples[0].answer.text == "A cat."
    assert reasons(diagnostics) == ["fields of another type"]


def test_gcg_phrases_refer_to_their_masks(tmp_path: Path) -> None:
    groundings = {
        "a cat": {"token_positives": [0, 5], "rle_masks": [layouts.rle(FRONT)]},
        "two dogs": {"token_positives": [10, 18], "rle_masks": [layouts.rle(BACK)] * 2},
        "far": {"token_positives": [50, 60], "rle_masks": [layouts.rle(BACK)]},
    }
    entry = {
        "file_name": "1.jpg",
        "caption": "a cat and two dogs",
        "groundings": groundings,
    }
    layouts.write_json(tmp_path / "val.json", [entry])
    (scene,), diagnostics = read("gcg", tmp_path, with_images=False)
    (sample,) = scene.samples
    text = sample.answer.text
    assert [
        (text[phrase.start : phrase.stop], phrase.regions)
        for phrase in sample.answer.phrases
    ] == [("a cat", (0,)), ("two dogs", (1, 2))]
    assert len(sample.targets) == 4
    assert reasons(diagnostics, kept=True) == ["phrase outside the caption"]


# -- ReasonSeg's further files


def test_explanations_belong_to_an_image_if_no_text_is_theirs(tmp_path: Path) -> None:
    layouts.reasonseg(tmp_path)
    (tmp_path / "val").rename(tmp_path / "train")
    explanation = [{"image": "a.jpg", "query": "Another?", "outputs": "The left one."}]
    layouts.write_json(tmp_path / "explanatory/train.json", explanation)
    (scene,), _ = read("reasonseg", tmp_path)
    answers = [sample.answer.text for sample in scene.samples]
    assert answers == ["The left one."] * 2


def test_false_premises_are_questions_without_target(tmp_path: Path) -> None:
    layouts.reasonseg(tmp_path)
    path = next((tmp_path / "val").glob("*.json"))
    content = json.loads(path.read_text())
    content["false_premise_QA"] = [["Where is the cow?", True]]
    layouts.write_json(path, content)
    (scene,), _ = read("reasonseg", tmp_path)
    assert len(scene.samples) == 1
    (tmp_path / "val").rename(tmp_path / "train")
    (scene,), _ = read("reasonseg", tmp_path)
    assert scene.samples[-1].question == "Where is the cow?"
    assert not scene.samples[-1].targets


def test_the_test_split_has_images_without_polygons(tmp_path: Path) -> None:
    layouts.reasonseg(tmp_path)
    (tmp_path / "val").rename(tmp_path / "test")
    path = next((tmp_path / "test").glob("*.json"))
    layouts.write_json(path, json.loads(path.read_text()) | {"shapes": []})
    (scene,), diagnostics = read("reasonseg", tmp_path, split="test")
    assert not scene.samples[0].targets
    assert reasons(diagnostics, kept=True) == ["no target"]


def test_cards_say_which_layouts_were_not_seen() -> None:
    for name in ("refcoco", "saco-gold", "pbench", "gcg"):
        assert "not seen" in find_benchmark(name).facts["layout"]
    assert "layout" not in find_benchmark("gseval").facts
