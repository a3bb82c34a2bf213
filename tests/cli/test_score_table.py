"""The table of scores on the terminal: percent with intervals, roles, and what is left out."""

from pathlib import Path
from typing import Literal

import pytest

from maskwise.cli.score_table import _percent, _wrap, print_scores
from maskwise.runs import load_run
from maskwise.runs.schema import MetricValue


def metric(
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    *,
    unit: Literal["fraction", "count"] = "fraction",
) -> MetricValue:
    return MetricValue(value=value, low=low, high=high, unit=unit)


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ("-", metric(None)),
        ("50.0", metric(0.5)),
        ("50.0 [40.0, 60.0]", metric(0.5, low=0.4, high=0.6)),
        ("100.0", metric(1.0)),
        ("2.50", metric(2.5, unit="count")),
    ],
)
def test_numbers(shown: str, value: MetricValue) -> None:
    assert _percent(value) == shown


def test_metrics_are_never_broken_between_name_and_value() -> None:
    metrics = {"giou": metric(0.5, low=0.4, high=0.6), "ciou": metric(0.25)}
    text = _wrap("strict", metrics, 24)
    assert text.startswith("[bold]strict[/]:")
    for line in text.splitlines()[1:]:
        assert line.startswith("  ")
    assert "50.0\N{NO-BREAK SPACE}" in text


def test_a_small_dataset_has_no_intervals(
    oracle_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_scores(load_run(oracle_run))
    said = " ".join(capsys.readouterr().out.split())
    assert "without intervals" in said
    assert "strict" in said
    assert "100.0" in said


def test_every_question_is_counted_once(
    oracle_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = load_run(oracle_run)
    print_scores(run, all_protocols=True)
    row = next(
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("strict ")
    )
    scored, counted_as_zero, left_out = (
        int(cell.replace(",", "")) for cell in row.split()[-3:]
    )
    assert scored + counted_as_zero + left_out == run.info.dataset.samples


def test_all_shows_more_metrics(
    whole_image_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = load_run(whole_image_run)
    print_scores(run)
    short = capsys.readouterr().out
    print_scores(run, show_all=True)
    long = capsys.readouterr().out
    assert "all metrics: --all, or the report" in short
    assert len(long.split()) > len(short.split())
