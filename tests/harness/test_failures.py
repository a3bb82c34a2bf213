"""Failures that show themselves: exceptions, warnings, tracebacks, and runs that stop early."""

import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import maskwise as mw
from maskwise.cli.main import app
from maskwise.harness.plan import Plan
from maskwise.harness.predict import predict_dataset
from maskwise.harness.prediction_job import PredictionJob
from maskwise.harness.worker import Worker, WorkerConfig
from tests.harness.fakes import FAKES, Painter, write_dataset


class Broken(Painter):
    """Fails at every question."""

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list:
        return [{}["missing"]]


class Picky(Painter):
    """Fails at questions with the word `raise`."""

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list:
        if any("raise" in question for question in questions):
            raise KeyError("missing")
        return super().predict(image, questions)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "truth", 12)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every fourth question fails under `Picky`; the first does not."""
    questions = ("fine", "fine", "raise", "fine")
    return write_dataset(
        tmp_path_factory.mktemp("mixed") / "truth", 12, questions=questions
    )


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


# -- nothing predicted -----------------------------------------------------------------


@pytest.mark.parametrize("in_folder", [True, False])
def test_a_run_without_any_prediction_is_an_error(
    data: Path, tmp_path: Path, in_folder: bool
) -> None:
    out = tmp_path / "run" if in_folder else None
    with pytest.raises(
        mw.ModelError, match=r"all 24 questions failed; the first: KeyE"
    ):
        mw.evaluate(Broken(), data, out, keep_going=True, protocols="strict")
    if out is not None:
        assert lines(out / "predictions.jsonl") == 24
        # The folder is kept, so that the questions can be asked again (--retry-failed).
        with pytest.raises(mw.ModelError, match="all 24"):
            mw.evaluate(Broken(), data, out, protocols="strict")


def test_predicting_alone_is_checked_too(data: Path, tmp_path: Path) -> None:
    with pytest.raises(mw.ModelError, match="all 24 questions failed"):
        predict_dataset(Broken(), data, tmp_path / "run", keep_going=True)


# -- something failed ------------------------------------------------------------------


@pytest.fixture(scope="module")
def partial(mixed: Path) -> mw.Run:
    with pytest.warns(UserWarning, match=r"6 of 24 questions failed; the first: KeyE"):
        return mw.evaluate(Picky(), mixed, protocols=["strict", "lisa"])


def test_a_run_with_failures_says_so_wherever_it_is_shown(partial: mw.Run) -> None:
    assert ", 24 samples, 6 failed, in memory)" in repr(partial)
    assert "6 of 24 questions failed" in partial._repr_html_()
    assert "KeyError" in partial._repr_html_()
    assert partial.failure_notice in partial.notices


def test_a_metric_of_a_run_with_failures_is_not_shown_without_them(
    partial: mw.Run,
) -> None:
    metric = partial["strict"]["giou"]
    assert isinstance(metric, mw.Metric)
    assert metric.failed == 6
    assert repr(metric).endswith(", failed=6)")
    copied = pickle.loads(pickle.dumps(metric))
    assert repr(copied) == repr(metric)
    assert "failed=6" in repr(partial["strict"])


def test_a_run_without_failures_does_not_mention_them(data: Path) -> None:
    run = mw.evaluate(Painter(), data, protocols="strict")
    assert "failed" not in repr(run)
    assert "failed=" not in repr(run["strict"]["giou"])
    assert run.failure_notice is None


def test_scored_failures_are_warned_about(mixed: Path) -> None:
    dataset = mw.load_dataset(mixed)
    predictions = {
        sample.id: mw.Prediction(error="out of memory")
        if not number
        else np.zeros((12, 16), bool)
        for number, sample in enumerate(dataset)
    }
    with pytest.warns(UserWarning, match="1 of 24 questions failed; the first: out of"):
        run = mw.score(predictions, dataset, protocols="strict")
    assert "1 failed" in repr(run)


# -- tracebacks ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:6 of 24 questions failed")
def test_the_folder_keeps_one_traceback_per_distinct_error(
    mixed: Path, tmp_path: Path
) -> None:
    mw.evaluate(Picky(), mixed, tmp_path / "run", protocols="strict")
    text = (tmp_path / "run" / "errors.txt").read_text()
    assert text.count("### KeyError: 'missing'\nfirst at sample 'p") == 1
    assert 'raise KeyError("missing")' in text
    assert "test_failures.py" in text


def test_an_exception_in_python_carries_the_traceback(data: Path) -> None:
    with pytest.raises(mw.ModelError) as stopped:
        mw.evaluate(Broken(), data)
    assert 'return [{}["missing"]]' in stopped.value.__notes__[0]


def test_debug_prints_the_first_traceback(data: Path, tmp_path: Path) -> None:
    model = f"{__name__}:Broken"
    arguments = ["eval", data, "--model", model, "--out", tmp_path / "run", "--debug"]
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert 'return [{}["missing"]]' in done.stderr
    assert done.stderr.count("Traceback") == 1


# -- stopping early --------------------------------------------------------------------


def test_five_failures_in_a_row_at_the_start_stop_the_run(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with pytest.raises(
        mw.ModelError, match=r"the first 6 questions failed.*--keep-goi"
    ):
        mw.evaluate(Broken(), data, out)
    # The image at which the run stopped is predicted again when it is resumed.
    assert lines(out / "predictions.jsonl") == 3
    with pytest.raises(mw.ModelError, match="all 24 questions failed"):
        mw.evaluate(Broken(), data, out, keep_going=True)


def test_failures_after_a_success_do_not_stop_the_run(tmp_path: Path) -> None:
    questions = ("fine", *(["raise"] * 11))
    dataset = write_dataset(tmp_path / "truth", 12, questions=questions)
    with pytest.warns(UserWarning, match="questions failed"):
        run = mw.evaluate(Picky(), dataset, protocols="strict")
    assert run.summary is not None
    assert run.summary.failed > 10


def test_fail_fast_stops_at_the_first_failure(mixed: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(mw.ModelError, match=r"sample 'p1-1' failed: KeyError.*errors"):
        mw.evaluate(Picky(), mixed, out, fail_fast=True)
    assert lines(out / "predictions.jsonl") == 1


def test_the_flags_of_the_command_line_do_the_same(mixed: Path, tmp_path: Path) -> None:
    arguments = ["eval", mixed, "--model", f"{__name__}:Picky", "--fail-fast"]
    done = CliRunner().invoke(app, [*map(str, arguments), "--out", str(tmp_path / "a")])
    assert isinstance(done.exception, mw.ModelError)
    arguments = ["eval", mixed, "--model", f"{__name__}:Broken", "--keep-going"]
    done = CliRunner().invoke(app, [*map(str, arguments), "--out", str(tmp_path / "b")])
    assert "all 24 questions failed" in str(done.exception)


@pytest.mark.filterwarnings("ignore:.*questions failed")
def test_a_retry_is_not_stopped(tmp_path: Path) -> None:
    """Its questions failed before, so more failures say nothing about the model."""
    questions = ("fine", *(["raise"] * 11))
    dataset = write_dataset(tmp_path / "truth", 12, questions=questions)
    out = tmp_path / "run"
    mw.evaluate(Picky(), dataset, out, protocols="strict")
    run = mw.evaluate(Picky(), dataset, out, protocols="strict", retry_failed=True)
    assert run.summary is not None
    assert run.summary.failed > 10


def test_a_ray_worker_delivers_its_tracebacks(tmp_path: Path) -> None:
    """As the job sends them: encoded."""
    dataset = write_dataset(tmp_path / "truth", 2, questions=("raise",))
    worker = Worker(WorkerConfig(dataset, f"{FAKES}:Moody"))
    plan = Plan.from_dataset(worker.dataset)
    job = PredictionJob.of(worker)
    result = job.decode(job.encode(worker.run(worker.load(plan[0]))))
    (text,) = result.tracebacks.values()
    assert "Traceback" in text
    assert result.predictions[0].error in result.tracebacks
