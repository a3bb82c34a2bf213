"""`maskwise score`: predictions made elsewhere, against a dataset."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import fail, run


@pytest.fixture
def predictions(oracle_run: Path) -> Path:
    """What the oracle predicted."""
    return oracle_run / "predictions.jsonl"


def test_predictions_of_a_run_get_the_scores_of_the_run(
    scenes: Path, oracle_run: Path, predictions: Path
) -> None:
    again = json.loads(
        run("score", predictions, scenes, "--protocol", "strict", "--json").stdout
    )
    before = json.loads((oracle_run / "scores.json").read_text())
    assert (
        again["protocols"]["strict"]["metrics"]
        == (before["protocols"]["strict"]["metrics"])
    )
    assert again["protocols"]["strict"]["metrics"]["giou"]["value"] == 1.0


def test_out_writes_a_run_with_a_report(
    scenes: Path, predictions: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    said = run("score", predictions, scenes, "--out", folder).stdout
    assert f"Written to {folder}" in " ".join(said.split())
    assert (folder / "scores.json").is_file()
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")
    assert "gIoU" in run("report", folder).stdout


def test_all_prints_every_metric(scenes: Path, predictions: Path) -> None:
    short = run("score", predictions, scenes, "--protocol", "strict").stdout
    long = run("score", predictions, scenes, "--protocol", "strict", "--all").stdout
    assert len(long) > len(short)
    assert "all metrics: --all" in short
    assert "all metrics: --all" not in long


def test_several_protocols_are_printed_in_one_table(
    scenes: Path, predictions: Path
) -> None:
    arguments = ("--protocol", "strict", "--protocol", "lisa")
    said = run("score", predictions, scenes, *arguments).stdout
    assert "lisa" in said
    assert "strict" in said


def test_json_output_is_json_alone(scenes: Path, predictions: Path) -> None:
    result = run("score", predictions, scenes, "--protocol", "lisa", "--json")
    assert json.loads(result.stdout)["protocols"].keys() == {"lisa"}
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--protocol-option", "strict"), "expected PROTOCOL.OPTION=VALUE"),
        (("--protocol-option", "nothing.x=1"), "unknown protocol 'nothing'"),
        (("--protocol", "nothing"), "known: "),
    ],
)
def test_mistakes_are_one_line(
    arguments: tuple[str, ...],
    expected: str,
    predictions: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = fail(capsys, monkeypatch, "score", predictions, "world", *arguments)
    assert expected in said
    assert len(said.strip().splitlines()) == 1


def test_missing_predictions_are_named(
    scenes: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = tmp_path / "nothing.jsonl"
    assert str(missing) in fail(capsys, monkeypatch, "score", missing, scenes)


def test_an_invalid_line_is_named_by_its_number(
    scenes: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text('{"sample": "a", "no_target": true}\n{"sample": 3}\n')
    said = fail(capsys, monkeypatch, "score", path, scenes)
    assert "predictions.jsonl" in said
    assert "2" in said
