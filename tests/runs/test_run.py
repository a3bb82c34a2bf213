"""Run folders: what is read equals what was written, and damaged folders are refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from maskwise.errors import StoreError, UnknownNameError
from maskwise.report.report_text import run_to_markdown
from maskwise.runs import Run, load_run, write_run


def test_metrics_follow_from_the_rows(run: Run) -> None:
    for protocol, result in run.scores.protocols.items():
        for name, metric in run.metrics(protocol).items():
            found = result.metrics[name]
            if not found.gated:
                assert metric.value() == (
                    None if found.value is None else pytest.approx(found.value)
                ), name


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


def test_a_run_written_again_is_equal(run: Run, tmp_path: Path) -> None:
    write_run(tmp_path / "again", run)
    assert run.folder is not None
    for name in ("run.json", "scores.json"):
        assert (tmp_path / "again" / name).read_bytes() == (
            run.folder / name
        ).read_bytes()
    again = load_run(tmp_path / "again")
    assert again.info == run.info
    assert again.scores == run.scores
    assert again.score_table.equals(run.score_table)
    assert again.metric_table.equals(run.metric_table)


def test_a_run_is_short_when_printed_and_has_its_protocols_by_name(run: Run) -> None:
    assert len(repr(run)) < 300
    assert (
        run["strict"].metrics["giou"].value
        == run.scores.protocols["strict"].metrics["giou"].value
    )
    with pytest.raises(UnknownNameError, match="mask-ap"):
        run["mask-ap"]


@pytest.fixture
def copy(toy: Path, tmp_path: Path) -> Path:
    return shutil.copytree(toy / "far", tmp_path / "copy")


def test_a_folder_without_run_json_is_not_a_run(copy: Path, tmp_path: Path) -> None:
    (copy / "run.json").unlink()
    with pytest.raises(StoreError, match=r"no run\.json.*maskwise score"):
        load_run(copy)
    with pytest.raises(StoreError, match="does not exist"):
        load_run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"format": 3}', "{" * 5000, '{"format": "maskwise run 3"}', "\xff"],
)
def test_damaged_json_is_refused(copy: Path, text: str) -> None:
    (copy / "run.json").write_text(text, encoding="latin-1")
    with pytest.raises(StoreError, match=r"run\.json"):
        load_run(copy)


def test_another_format_is_refused(copy: Path) -> None:
    facts = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(facts | {"format": "maskwise run 99"}))
    with pytest.raises(StoreError, match=r"maskwise run 99.*score the run again"):
        load_run(copy)


@pytest.mark.parametrize("name", ["scores.arrow", "metrics.arrow"])
def test_damaged_tables_are_refused(copy: Path, name: str) -> None:
    whole = (copy / name).read_bytes()
    for cut in (0, 9, len(whole) // 2, len(whole) - 3):
        (copy / name).write_bytes(whole[:cut])
        with pytest.raises(StoreError, match=name):
            load_run(copy).metrics("strict")


def test_tables_without_a_column_are_refused(copy: Path) -> None:
    shutil.copy(copy / "metrics.arrow", copy / "scores.arrow")
    with pytest.raises(StoreError, match=r"scores\.arrow has no column 'protocol'"):
        load_run(copy).rows("strict")


def test_a_table_of_other_samples_is_refused(copy: Path, toy: Path) -> None:
    facts = json.loads((copy / "scores.json").read_text())
    facts["protocols"]["other"] = facts["protocols"]["strict"]
    (copy / "scores.json").write_text(json.dumps(facts))
    with pytest.raises(StoreError, match="0 rows of other"):
        load_run(copy).rows("other")


@pytest.mark.parametrize("where", ["protocol", "slice"])
def test_scores_without_a_metric_are_refused(copy: Path, where: str) -> None:
    scores = json.loads((copy / "scores.json").read_text())
    strict = scores["protocols"]["strict"]
    del (strict if where == "protocol" else strict["slices"]["mask_type"][0])[
        "metrics"
    ]["giou"]
    (copy / "scores.json").write_text(json.dumps(scores))
    with pytest.raises(StoreError, match=r"scores\.json.*no metric 'giou'"):
        load_run(copy)


def test_a_scored_run_without_predictions_is_refused(copy: Path) -> None:
    info = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(info | {"predictions": None}))
    with pytest.raises(StoreError, match="which predictions"):
        load_run(copy)


def test_a_ladder_without_the_values_of_a_rule_is_refused(copy: Path) -> None:
    ladder = json.loads((copy / "ladder.json").read_text())
    values = ladder["runs"][0]["values"]
    name = next(iter(values))
    for changed in ({}, {**values, name: {**values[name], "metrics": {}}}):
        ladder["runs"][0]["values"] = changed
        (copy / "ladder.json").write_text(json.dumps(ladder))
        with pytest.raises(StoreError, match="lacks values of the rule"):
            run_to_markdown(load_run(copy))
