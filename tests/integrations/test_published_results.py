"""`maskwise publish`: results for the hub, the model card and Every Eval Ever."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import maskwise as mw
from maskwise.integrations.published_results import Publication, to_every_eval_ever
from tests.builder.release.hub_server import TOKEN, hub
from tests.cli.commands import fail, run
from tests.harness.fakes import write_dataset
from tests.integrations.every_eval_ever import SCHEMA

jsonschema = pytest.importorskip("jsonschema")
huggingface_hub = pytest.importorskip("huggingface_hub")

IDS = ("--dataset-id", "lab/things", "--model-id", "lab/oracle")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with intervals, of 12 images."""
    root = tmp_path_factory.mktemp("published")
    data = write_dataset(root / "data", images=24)
    options = ["--model-option", "drop=0.3"]
    protocols = ["--protocol", "strict", "--protocol", "lisa"]
    run("eval", data, "--model", "oracle", *options, *protocols, "--out", root / "run")
    return root / "run"


@pytest.fixture(scope="module")
def published(folder: Path) -> Path:
    out = folder.parent / "model"
    out.mkdir()
    (out / "README.md").write_text(
        "---\nlicense: mit\nmodel-index:\n- name: mine\n  results:\n"
        "  - task: {type: image-segmentation}\n"
        "    dataset: {name: other, type: lab/other}\n"
        "    metrics: [{type: strict_giou, value: 0.5}]\n---\n\n# Mine\n\nWords.\n"
    )
    run("publish", folder, "--to", out, *IDS)
    run("publish", folder, "--to", out, *IDS)
    return out


def test_the_hub_reads_the_results(folder: Path, published: Path) -> None:
    (path,) = (published / ".eval_results").glob("*.yaml")
    content = yaml.safe_load(path.read_text())
    entries = huggingface_hub.parse_eval_result_entries(content)
    by_task = {entry.task_id: entry for entry in entries}
    assert list(by_task) == ["strict_giou", "strict_ciou", "lisa_giou", "lisa_ciou"]
    strict = mw.load_run(folder)["strict"]
    entry = by_task["strict_giou"]
    assert entry.dataset_id == "lab/things"
    assert entry.value == pytest.approx(strict["giou"], abs=1e-6)
    assert "95 % interval" in entry.notes
    assert "0 failed" in entry.notes
    assert "given the ground truth" in entry.notes, "notices go with every number"


def test_the_card_keeps_what_it_had(folder: Path, published: Path) -> None:
    card = huggingface_hub.ModelCard.load(published / "README.md")
    assert card.data.license == "mit"
    assert "Words." in card.text
    values = {
        (result.dataset_type, result.metric_type): result.metric_value
        for result in card.data.eval_results
    }
    assert len(values) == len(card.data.eval_results) == 5, "nothing is repeated"
    assert values["lab/other", "strict_giou"] == 0.5
    ciou = mw.load_run(folder)["lisa"]["ciou"]
    assert values["lab/things", "lisa_ciou"] == pytest.approx(ciou, abs=1e-6)


def test_a_card_is_made_where_there_is_none(folder: Path, tmp_path: Path) -> None:
    said = run("publish", folder, "--to", tmp_path / "new", *IDS).stdout.split()
    assert [Path(path).suffix for path in said] == [".yaml", ".json", ".md"]
    card = huggingface_hub.ModelCard.load(tmp_path / "new" / "README.md")
    assert card.data.model_name == "oracle"


def test_every_eval_ever_has_intervals_and_is_valid(
    folder: Path, published: Path
) -> None:
    (path,) = (published / "every_eval_ever").glob("*.json")
    record = json.loads(path.read_text())
    jsonschema.validate(record, SCHEMA)
    strict = mw.load_run(folder)["strict"]
    score = record["evaluation_results"][0]["score_details"]
    interval = score["uncertainty"]["confidence_interval"]
    assert score["score"] == strict["giou"]
    assert (interval["lower"], interval["upper"]) == strict["giou"].interval
    assert interval["confidence_level"] == 0.95
    assert score["details"]["failed"] == "0"


def test_the_schema_refuses_what_it_should(folder: Path) -> None:
    publication = Publication(dataset_id="a/b", model_id="c/d", relationship="friend")
    record = to_every_eval_ever(mw.load_run(folder), publication, retrieved=0.0)
    with pytest.raises(jsonschema.ValidationError, match="friend"):
        jsonschema.validate(record, SCHEMA)


def test_results_are_proposed_to_a_model_on_the_hub(
    folder: Path, tmp_path: Path
) -> None:
    with hub() as server:
        server.repository = "lab/oracle"
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("HF_")
        }
        environment = kept | {
            "HF_ENDPOINT": server.address,
            "HF_HOME": str(tmp_path),
            "HF_HUB_DISABLE_XET": "1",
            "HF_TOKEN": TOKEN,
        }
        command = ["publish", str(folder), "--to", "hf:lab/oracle", *IDS[:2]]
        done = subprocess.run(
            [sys.executable, "-m", "maskwise", *command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == f"{server.address}/lab/oracle/discussions/7"
        suffixes = sorted(Path(name).suffix for name in server.files)
        assert suffixes == [".json", ".yaml"]


def test_a_folder_needs_the_name_of_the_model(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = ("publish", folder, "--to", tmp_path, *IDS[:2])
    assert "--model-id OWNER/NAME" in fail(capsys, monkeypatch, *arguments)


def test_rows_of_datasets_come_in_and_go_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("MASKWISE_DATA", str(tmp_path / "cache"))
    data = mw.load_dataset("world")[:12]
    mw.write_dataset(data, "huggingface", tmp_path / "rows")
    rows = datasets.load_dataset(
        str(tmp_path / "rows"), split="test", cache_dir=str(tmp_path / "hf")
    )
    again = mw.load_dataset(rows)
    assert [sample.id for sample in again] == [sample.id for sample in data]
    assert again[0].targets == data[0].targets
    assert again[0].image.tobytes() == data[0].image.tobytes()
    part = mw.load_dataset(rows.select([0]))
    assert 0 < len(part) < len(again), "other rows, another dataset"


def test_long_and_odd_names_fit_a_file_system(folder: Path, tmp_path: Path) -> None:
    run_folder = tmp_path / ("é" * 100 + " <b>")
    shutil.copytree(folder, run_folder)
    run("publish", run_folder, "--to", tmp_path / "out", *IDS)
    (path,) = (tmp_path / "out" / ".eval_results").iterdir()
    assert len(path.name.encode()) <= 255
