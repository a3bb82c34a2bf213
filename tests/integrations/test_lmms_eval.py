"""Tasks for lmms-eval: their metrics are those of `maskwise score` on the same predictions."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

import maskwise as mw
from maskwise.errors import UnknownNameError
from maskwise.harness.wire_format import without_sample
from maskwise.integrations.lmms_eval import (
    doc_to_target,
    doc_to_text,
    doc_to_visual,
    process_results,
    reply_to_prediction,
    write_tasks,
)
from maskwise.masks import Mask
from maskwise.registry import BENCHMARKS
from maskwise.schema import ImageInfo, Sample
from maskwise.store import DatasetWriter
from tests.cli.commands import run
from tests.report.runs import png

QUESTIONS = 60


class TaskLoader(yaml.SafeLoader):
    """Reads `!function utils.name` as the name."""


TaskLoader.add_constructor("!function", lambda loader, node: node.value)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lmms") / "tasks"
    assert run("lmms-eval", "world", "--out", folder).stdout == f"{folder}\n"
    return folder


@pytest.fixture(scope="module")
def docs(tasks: Path) -> list[dict[str, Any]]:
    path = tasks / "data" / "maskwise_world.parquet"
    return pq.read_table(path).to_pylist()[:QUESTIONS]


@pytest.fixture(scope="module")
def utils(tasks: Path) -> ModuleType:
    """utils.py, imported as lmms-eval imports it: from its file."""
    spec = importlib.util.spec_from_file_location("utils", tasks / "utils.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_task(path: Path) -> dict[str, Any]:
    task: dict[str, Any] = yaml.load(path.read_text(), TaskLoader)
    return task


def test_every_benchmark_has_a_task_with_its_protocol(tasks: Path) -> None:
    for name in BENCHMARKS.names():
        identifier = name.replace("+", "_plus").replace("-", "_")
        task = read_task(tasks / f"maskwise_{identifier}.yaml")
        metrics = [entry["metric"] for entry in task["metric_list"]]
        protocol = mw.list_benchmarks()[name]
        assert task["task"] == f"maskwise_{identifier}"
        assert metrics[-2:] == ["strict_giou", "strict_ciou"]
        assert metrics[0].removesuffix("_giou") in protocol


def test_tasks_name_functions_that_exist(tasks: Path, utils: ModuleType) -> None:
    for path in tasks.glob("*.yaml"):
        task = read_task(path)
        names = [task[key] for key in ("doc_to_visual", "doc_to_text", "doc_to_target")]
        names += [entry["aggregation"] for entry in task["metric_list"]]
        for name in names:
            module, _, function = name.partition(".")
            assert module == "utils"
            assert callable(getattr(utils, function))


def test_a_task_without_data_says_how_to_get_them(tasks: Path) -> None:
    text = (tasks / "maskwise_mmr.yaml").read_text()
    assert "maskwise read mmr PATH --out mmr" in text


def test_metrics_are_those_of_score(
    docs: list[dict[str, Any]], utils: ModuleType, tmp_path: Path
) -> None:
    data = mw.load_dataset("world")[:QUESTIONS]
    evaluation = mw.evaluate("tiny", data, tmp_path / "run", protocols="strict")
    lines = (tmp_path / "run" / "predictions.jsonl").read_bytes().splitlines()
    predictions = [msgspec.json.decode(line, type=mw.Prediction) for line in lines]
    replies = {
        prediction.sample: json.dumps(without_sample(prediction))
        for prediction in predictions
    }
    rows = [process_results(doc, [replies[doc["id"]]]) for doc in docs]
    for metric in ("giou", "ciou"):
        name = f"strict_{metric}"
        value = getattr(utils, name)([row[name] for row in rows])
        assert value == evaluation["strict"][metric]
        assert 0.1 < value < 1


def test_official_rules_score_part_of_a_dataset(
    docs: list[dict[str, Any]], utils: ModuleType
) -> None:
    data = mw.load_dataset("world")[:20]
    masks = [
        np.ones(
            (1, data.image(sample.image_id).height, data.image(sample.image_id).width),
            bool,
        )
        for sample in data
    ]
    expected = mw.score(masks, data, protocols=["mmr", "lisa"])
    rows = []
    for doc, mask in zip(docs[:20], masks):
        rle = Mask.from_dense(mask[0])
        reply = json.dumps({"masks": [{"size": rle.size, "counts": rle.counts}]})
        rows.append({"dataset": doc["dataset"], "sample": doc["id"], "reply": reply})
    # A repeated row, as distributed runs have them, counts once.
    rows.append(rows[0])
    for protocol in ("mmr", "lisa"):
        value = getattr(utils, f"{protocol}_ciou")(rows)
        assert value == expected[protocol]["ciou"]


def test_a_question_comes_with_its_image_and_the_form_of_the_answer(
    docs: list[dict[str, Any]],
) -> None:
    sample = mw.load_dataset("world")[0]
    (image,) = doc_to_visual(docs[0])
    assert image.tobytes() == sample.image.tobytes()
    assert doc_to_text(docs[0]).startswith(sample.question)
    assert '{"masks": [...]}' in doc_to_text(docs[0])
    wording = {"pre_prompt": "Q: ", "post_prompt": " A:"}
    assert doc_to_text(docs[0], wording) == f"Q: {sample.question} A:"


def test_the_target_is_a_perfect_reply(
    docs: list[dict[str, Any]], utils: ModuleType
) -> None:
    rows = [
        process_results(doc, [doc_to_target(doc)])["strict_giou"]
        for doc, sample in zip(docs, mw.load_dataset("world"))
        if sample.mask_type != "both"
    ]
    assert utils.strict_giou(rows) == 1


@pytest.mark.parametrize(
    ("reply", "regions", "no_target", "error"),
    [
        ('{"masks": []}', 0, True, None),
        ('Sure:\n```json\n{"masks": [{"size": [2, 2], "counts": "04"}]}\n```', 1, False, None),
        ('{"answer": "none", "no_target": true}', 0, True, None),
        ("I see {two} cups", 0, False, "no JSON"),
        ('{"masks": [{"size": [2, 2], "counts": "~~"}]}', 0, False, "malformed"),
        ('{"boxes": [[1, 2, 3, 4]]}', 0, False, "malformed"),
    ],
)  # fmt: skip
def test_replies_are_read(
    reply: str, regions: int, no_target: bool, error: str | None
) -> None:
    prediction = reply_to_prediction(reply, "s")
    assert prediction.sample == "s"
    assert len(prediction.regions) == regions
    assert prediction.no_target is no_target
    assert (error is None) == (prediction.error is None)
    assert error is None or error in str(prediction.error)


def test_amodal_masks_are_said_by_the_reply() -> None:
    mask = {"size": [2, 2], "counts": "04"}
    reply = json.dumps({"masks": [mask], "mask_type": "amodal"})
    (region,) = reply_to_prediction(reply).regions
    assert region.visible is None
    assert region.amodal is not None


def test_two_datasets_of_one_name_are_refused(tmp_path: Path) -> None:
    data = mw.load_dataset("world")[:1]
    with pytest.raises(mw.StoreError, match="two datasets give the task maskwise_a_b"):
        write_tasks(tmp_path, {"a b": data, "a-b": data})


def test_the_protocol_of_a_dataset_is_a_name_and_no_code(tmp_path: Path) -> None:
    """What a manifest says must not become Python code of utils.py."""
    code = 'x")\nimport os; os.mkdir("owned")\n#'
    with DatasetWriter(tmp_path / "data", name="d", about={"protocol": code}) as writer:
        writer.add_image(ImageInfo(id="i", width=6, height=4), data=png(0))
        writer.add_sample(Sample(id="s", image_id="i", question="?"))
    with pytest.raises(UnknownNameError, match="unknown protocol"):
        write_tasks(tmp_path / "tasks", {"d": mw.load_dataset(tmp_path / "data")})
    assert not (tmp_path / "tasks" / "utils.py").exists()
