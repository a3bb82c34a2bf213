"""Run folders: what is read equals what was scored, and damaged folders are refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from maskwise.errors import StoreError, UnknownNameError
from maskwise.report.run import Run


def test_figures_follow_from_the_rows(run: Run) -> None:
    for protocol, result in run.scores.protocols.items():
        for name, metric in run.metrics(protocol).items():
            figure = result.metrics[name]
            if not figure.gated:
                assert metric.value() == (None if figure.value is None else pytest.approx(figure.value)), name


def test_rows_are_in_the_order_of_the_dataset(run: Run) -> None:
    assert run.ids[:3] == ["s0-0", "s0-1", "s1-0"]
    assert run.clusters[:4].tolist() == [0, 0, 1, 1]
    rows = run.rows("strict")
    assert [rows.status.names[code] for code in rows.status.codes[[0, 5, 7]]] == [
        "scored",
        "failed",
        "missing",
    ]
    assert np.flatnonzero(~rows.scored).tolist() == [5, 7]
    assert rows.reason.names[rows.reason.codes[5]] == "out of memory"


def test_strict_comes_first(run: Run) -> None:
    assert run.main_protocol() == "strict"
    assert run.main_protocol("lisa") == "lisa"
    with pytest.raises(UnknownNameError, match=r"known: .*lisa"):
        run.main_protocol("mask-ap")


@pytest.fixture
def copy(toy: Path, tmp_path: Path) -> Path:
    return shutil.copytree(toy / "far", tmp_path / "copy")


def test_a_folder_without_run_json_is_not_a_run(copy: Path, tmp_path: Path) -> None:
    (copy / "run.json").unlink()
    with pytest.raises(StoreError, match=r"no run\.json.*maskwise score"):
        Run.open(copy)
    with pytest.raises(StoreError, match="does not exist"):
        Run.open(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 3}', "{" * 5000, '{"format": "maskwise run 2"}', "\xff"]
)
def test_damaged_json_is_refused(copy: Path, text: str) -> None:
    (copy / "run.json").write_text(text, encoding="latin-1")
    with pytest.raises(StoreError, match=r"run\.json"):
        Run.open(copy)


def test_another_format_is_refused(copy: Path) -> None:
    facts = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(facts | {"format": "maskwise run 99"}))
    with pytest.raises(StoreError, match=r"maskwise run 99.*score the run again"):
        Run.open(copy)


@pytest.mark.parametrize("name", ["scores.arrow", "metrics.arrow"])
def test_damaged_tables_are_refused(copy: Path, name: str) -> None:
    whole = (copy / name).read_bytes()
    for cut in (0, 9, len(whole) // 2, len(whole) - 3):
        (copy / name).write_bytes(whole[:cut])
        with pytest.raises(StoreError, match=name):
            Run.open(copy).metrics("strict")


def test_tables_without_a_column_are_refused(copy: Path) -> None:
    shutil.copy(copy / "metrics.arrow", copy / "scores.arrow")
    with pytest.raises(StoreError, match=r"scores\.arrow has no column 'protocol'"):
        Run.open(copy).rows("strict")


def test_a_table_of_other_samples_is_refused(copy: Path, toy: Path) -> None:
    facts = json.loads((copy / "scores.json").read_text())
    facts["protocols"]["other"] = facts["protocols"]["strict"]
    (copy / "scores.json").write_text(json.dumps(facts))
    with pytest.raises(StoreError, match="0 rows of other"):
        Run.open(copy).rows("other")
