"""Progress: bars in terminals, lines in logs."""

import time

import pytest

from maskwise import progress_bars
from maskwise.harness.progress import Progress, shown_progress, shown_stages
from maskwise.progress_bars import make_progress


def ignore(_: object) -> None:
    pass


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines every 50 ms instead of every 30 s."""
    monkeypatch.setattr(progress_bars, "LINE_SECONDS", 0.05)


def test_a_log_gets_a_line_at_least_every_30_seconds() -> None:
    assert progress_bars.LINE_SECONDS <= 30


@pytest.mark.usefixtures("frequent")
def test_lines_have_what_is_done_failed_and_remains(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with make_progress() as bars:
        bar = bars.add_task("predicting", total=600, failed=0)
        for done in (10, 20, 120):
            bars.update(bar, completed=done, failed=3)
            time.sleep(0.06)
    output = capsys.readouterr()
    assert output.out == ""
    last = output.err.splitlines()[-1]
    assert last.startswith("maskwise: predicting: 120 of 600, 3 failed, ")
    assert "/s, 0:00:" in last
    assert last.endswith(" left")


@pytest.mark.usefixtures("frequent")
def test_lines_come_while_one_step_takes_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with make_progress() as bars:
        bars.add_task("opening", total=None)
        time.sleep(0.18)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert set(lines) == {"maskwise: opening: 0:00:00 so far"}


@pytest.mark.usefixtures("frequent")
def test_quiet_progress_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with make_progress(quiet=True) as bars:
        bars.add_task("predicting", total=2)
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("speed", "text"), [(4.06, "4.1/s"), (0.05, "3.0/min")])
def test_slow_work_has_a_rate_per_minute(speed: float, text: str) -> None:
    assert progress_bars.format_rate(speed) == text


@pytest.mark.usefixtures("terminal")
def test_the_bar_of_an_evaluation_shows_stage_count_and_failures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown_progress(ignore, ignore, shown=True) as (on_progress, on_stage):
        on_stage("predicting")
        on_progress(Progress(done=3, total=8, failed=2))
    output = capsys.readouterr()
    assert output.out == ""
    for text in ("predicting", "3/8", "2 failed"):
        assert text in output.err


@pytest.mark.usefixtures("terminal")
def test_no_failures_are_not_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress(ignore, ignore, shown=True) as (on_progress, _):
        on_progress(Progress(done=8, total=8, failed=0))
    assert "failed" not in capsys.readouterr().err


@pytest.mark.usefixtures("terminal")
def test_the_bar_of_scoring_counts_stages(capsys: pytest.CaptureFixture[str]) -> None:
    stages: list[str] = []
    with shown_stages(stages.append, 3, shown=True) as on_stage:
        on_stage("reading")
        on_stage("strict")
    assert stages == ["reading", "strict"]
    assert "1/3" in capsys.readouterr().err
