"""An evaluation keeps a record that can be continued, and goes on when samples fail."""

import copy
import errno
import json
import os
import queue
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwise.datasets import find_dataset
from maskwise.errors import (
    MaskwiseError,
    ModelError,
    ModelGoneError,
    ProtocolError,
    StoreError,
    UnknownNameError,
)
from maskwise.harness.evaluate import evaluate
from maskwise.harness.predict import RETRY
from maskwise.harness.progress import Progress
from maskwise.harness.run_record import result_to_run
from maskwise.harness.scoring import compute_scores
from maskwise.report.report_page import run_to_html
from maskwise.report.report_text import run_to_markdown
from maskwise.report.run_data import RunPaths, load_run_data
from maskwise.runs import load_run, write_run
from maskwise.schema import Prediction
from maskwise.store import Dataset, Log
from maskwise.store.lock import locked
from maskwise.world import bundled
from tests.harness.fakes import FAKES, Moody, Painter, write_dataset
from tests.harness.outcome import Outcome, run_model

SCORES = ("scores.json", "scores.arrow", "metrics.arrow")
PROTOCOLS = ("strict", "union")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("dataset") / "small")


def run(dataset: Path, out: Path, model: str = "Painter", **more: Any) -> Outcome:
    """Evaluate quickly; `more` are arguments of `run_model`."""
    return run_model(
        f"{FAKES}:{model}", dataset, out, **{"protocols": PROTOCOLS, **more}
    )


def replies(folder: Path) -> list[Prediction]:
    return Log(folder / "predictions.jsonl", Prediction).read()


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def same(
    one: Path, other: Path, names: tuple[str, ...] = ("predictions.jsonl", *SCORES)
) -> None:
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


# -- a run from beginning to end ---------------------------------------------------------------------------------------


def test_a_run_folder_is_a_record(dataset: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    done = run(
        dataset,
        tmp_path / "run",
        options={"weights": "w7"},
        on_progress=lambda p: seen.append(copy.copy(p)),
    )
    assert (done.samples, done.images, done.failed) == (48, 24, 0)
    ids = [reply.sample for reply in replies(tmp_path / "run")]
    assert ids == [f"p{k}-{q}" for k in range(24) for q in range(1 + k % 3)], (
        "images in order, questions together"
    )
    facts = record(tmp_path / "run")
    assert facts["state"] == "scored"
    assert facts["dataset"]["samples"] == 48
    inputs = facts["evaluation"]["inputs"]
    assert inputs["dataset"] == facts["dataset"]["sha256"]
    assert inputs["model"]["name"] == "painter"
    assert inputs["model"]["weights_hash"] == "w7"
    assert inputs["model"]["options"] == {"weights": "w7"}
    assert not inputs["model"]["uses_ground_truth"]
    (attempt,) = facts["evaluation"]["attempts"]
    assert attempt["packages"]["numpy"] == np.__version__
    assert attempt["cores"] >= 1
    assert [part["name"] for part in facts["protocols"]] == ["strict", "union"]
    assert done.run is not None
    assert seen[-1].done == seen[-1].total == 48


def test_scoring_the_predictions_gives_the_same_scores(
    dataset: Path, tmp_path: Path
) -> None:
    run(dataset, tmp_path / "run")
    path = tmp_path / "run" / "predictions.jsonl"
    opened = Dataset.open(dataset)
    result = compute_scores(path, opened, PROTOCOLS)
    write_run(tmp_path / "scored", result_to_run(result))
    same(tmp_path / "run", tmp_path / "scored", SCORES)
    before = record(tmp_path / "run")
    write_run(tmp_path / "run", result_to_run(result))
    assert record(tmp_path / "run") == before, (
        "scoring again keeps the record of the evaluation"
    )
    other = tmp_path / "other.jsonl"
    other.write_bytes(path.read_bytes())
    with pytest.raises(StoreError, match="record of an evaluation"):
        write_run(
            tmp_path / "run", result_to_run(compute_scores(other, opened, PROTOCOLS))
        )


def test_all_questions_of_a_image_are_asked_together(
    dataset: Path, tmp_path: Path
) -> None:
    run(
        dataset,
        tmp_path / "run",
        options={"calls": str(tmp_path / "calls")},
        predict_only=True,
    )
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [len(call.split("|")) for call in calls] == [1 + k % 3 for k in range(24)]


def test_predict_only_leaves_a_run_to_be_scored(dataset: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    options = {"calls": str(calls)}
    done = run(dataset, tmp_path / "run", options=options, predict_only=True)
    assert done.run is None
    assert record(tmp_path / "run")["state"] == "predicted"
    with pytest.raises(StoreError, match="predicted, not scored"):
        load_run(tmp_path / "run")
    calls.unlink()
    assert run(dataset, tmp_path / "run", options=options).run is not None
    assert not calls.exists()
    assert len(record(tmp_path / "run")["evaluation"]["attempts"]) == 1, (
        "nothing was predicted again"
    )
    run(dataset, tmp_path / "run", options=options, predict_only=True)
    assert load_run(tmp_path / "run").info.dataset.samples == 48, (
        "a scored run stays scored"
    )


def test_other_protocols_score_again_without_predicting(
    dataset: Path, tmp_path: Path
) -> None:
    options = {"calls": str(tmp_path / "calls")}
    run(dataset, tmp_path / "run", options=options)
    calls = (tmp_path / "calls").read_bytes()
    done = run(dataset, tmp_path / "run", options=options, protocols=["lisa"])
    assert done.run is not None
    assert list(done.run.scores.protocols) == ["lisa"]
    assert (tmp_path / "calls").read_bytes() == calls


def test_world_is_known_by_name() -> None:
    assert find_dataset("world") == bundled()
    with pytest.raises(StoreError, match="maskwise read mmr"):
        find_dataset("MMR")
    with pytest.raises(StoreError, match="neither a dataset folder nor one of: world"):
        find_dataset("nowhere")


# -- a part of a dataset -----------------------------------------------------------------------------------------------


def test_a_limit_draws_images_with_all_their_questions(
    dataset: Path, tmp_path: Path
) -> None:
    done = run(dataset, tmp_path / "run", limit=5, seed=3)
    ids = [reply.sample for reply in replies(tmp_path / "run")]
    images = list(dict.fromkeys(name.partition("-")[0] for name in ids))
    assert done.images == len(images) == 5
    assert images == sorted(images, key=lambda name: int(name[1:]))
    assert ids == [
        f"{name}-{q}" for name in images for q in range(1 + int(name[1:]) % 3)
    ]
    assert done.run is not None
    assert done.run.info.dataset.samples == len(ids), (
        "the rest of the dataset does not count as missing"
    )
    assert done.run["strict"].counts.failed == 0


def test_a_larger_draw_holds_a_smaller_one_and_seeds_differ(
    dataset: Path, tmp_path: Path
) -> None:
    def drawn(limit: int, seed: int) -> set[str]:
        folder = tmp_path / f"{limit}-{seed}"
        run(dataset, folder, limit=limit, seed=seed, predict_only=True)
        return {reply.sample.partition("-")[0] for reply in replies(folder)}

    assert drawn(4, 0) < drawn(9, 0)
    assert drawn(4, 0) != drawn(4, 1)
    assert len(drawn(100, 0)) == 24


def test_reports_know_the_part_a_run_was_on(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "run", limit=5)
    opened = load_run(tmp_path / "run")
    data = load_run_data(opened, RunPaths())
    assert data.dataset.samples.id == opened.ids
    assert all(data.prediction(row) is not None for row in range(len(opened.ids)))
    assert "5 images drawn with seed 0" in run_to_html(opened)
    assert "5 images drawn with seed 0" in run_to_markdown(opened)


# -- continuing --------------------------------------------------------------------------------------------------------


def test_a_run_cut_at_any_byte_continues_to_the_same_bytes(
    dataset: Path, tmp_path: Path
) -> None:
    run(dataset, tmp_path / "whole")
    whole = (tmp_path / "whole" / "predictions.jsonl").read_bytes()
    facts = record(tmp_path / "whole")
    started = {key: facts[key] for key in ("format", "dataset", "evaluation")} | {
        "state": "predicting"
    }
    chance = np.random.default_rng(5)
    cuts = [
        0,
        1,
        len(whole) - 1,
        len(whole),
        *chance.integers(0, len(whole), 40).tolist(),
    ]
    for number, cut in enumerate(cuts):
        folder = tmp_path / f"cut{number}"
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps(started))
        (folder / "predictions.jsonl").write_bytes(whole[:cut])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *args, **more: None)
            run(dataset, folder, predict_only=True)
        same(tmp_path / "whole", folder, ("predictions.jsonl",))
    run(dataset, tmp_path / "cut5")
    same(tmp_path / "whole", tmp_path / "cut5")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"options": {"weights": "w1"}}, r"model\.weights_hash was \"w0\", is \"w1\""),
        ({"model": "Pupil"}, r"model\.spec was"),
        ({"limit": 5}, r"subset was not given, is"),
        (
            {"model": "Pupil", "teacher_forced": True, "protocols": ["union"]},
            r"teacher_forced was false, is true",
        ),
    ],
)
def test_what_changed_is_refused_and_named(
    dataset: Path, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    run(dataset, tmp_path / "run", predict_only=True)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(StoreError, match=said):
        run(dataset, tmp_path / "run", **change)
    assert {
        path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()
    } == before


def test_a_config_that_json_writes_otherwise_is_the_same(
    dataset: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        assert run(dataset, tmp_path / "run", "Tuned", predict_only=True).samples == 48


def test_a_changed_dataset_is_refused(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "run", predict_only=True)
    other = write_dataset(tmp_path / "other", questions=("who is it?",))
    with pytest.raises(StoreError, match="dataset was"):
        run(other, tmp_path / "run")


def test_predictions_changed_by_hand_are_refused(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "run", predict_only=True)
    path = tmp_path / "run" / "predictions.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    with pytest.raises(
        StoreError, match=r"line 4 is for sample 'p2-1'; expected 'p2-0'"
    ):
        run(dataset, tmp_path / "run")
    path.write_bytes(b"".join(lines) + lines[0])
    with pytest.raises(StoreError, match="expected no more lines"):
        run(dataset, tmp_path / "run")
    path.write_bytes(b"".join([*lines[:3], b"{oops\n", *lines[4:]]))
    with pytest.raises(StoreError, match="line 4"):
        run(dataset, tmp_path / "run")


def test_folders_of_others_are_refused(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"not a run \(mine\.txt\)"):
        run(dataset, tmp_path / "notes")
    run(dataset, tmp_path / "run", predict_only=True)
    path = tmp_path / "run" / "predictions.jsonl"
    opened = Dataset.open(dataset)
    write_run(
        tmp_path / "scored", result_to_run(compute_scores(path, opened, ["union"]))
    )
    with pytest.raises(StoreError, match="maskwise score"):
        run(dataset, tmp_path / "scored")
    with pytest.raises(StoreError, match="is a file"):
        run(dataset, path)


def test_a_second_process_is_refused(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with (
        locked(tmp_path / "run", "taken"),
        pytest.raises(StoreError, match="another process"),
    ):
        run(dataset, tmp_path / "run")
    assert run(dataset, tmp_path / "run").samples == 48


# -- samples that fail -------------------------------------------------------------------------------------------------

WORDS = ("what is it?", "raise", "memory", "unsure", "few", "text", "exit", "half")


def test_failing_samples_are_recorded_and_the_run_goes_on(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dataset", 36, questions=WORDS, bad=7)
    done = run(dataset, tmp_path / "run", "Moody")
    questions = {
        sample.id: sample.question.split()[0] for sample in Dataset.open(dataset)
    }
    reasons = {
        "raise": "ValueError: what is this?",
        "memory": "out of memory",
        "unsure": "not sure",
    }
    reasons |= {"few": "the model returned 0 predictions for 1 question"}
    reasons |= {
        "text": "the model returned a value of type str; expected a Prediction or masks: "
        "expected an array of bools or numbers, got str"
    }
    reasons |= {"exit": "SystemExit: 0", "half": "ValueError: half a character: ?"}
    for reply in replies(tmp_path / "run"):
        if reply.sample.startswith("p7-"):
            assert reply.error is not None
            assert "cannot be read" in reply.error
        else:
            expected = reasons.get(questions[reply.sample])
            assert reply.error == expected, reply.sample
    assert (
        done.failed
        == sum(reply.error is not None for reply in replies(tmp_path / "run"))
        > 36
    )
    assert done.run is not None
    assert done.run["strict"].counts.failed == done.failed
    assert str(done.failed) in run_to_html(load_run(tmp_path / "run"))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            StoreError("sample 'p5-1': a mask is damaged"),
            "sample 'p5-1': a mask is damaged",
        ),
        (pa.ArrowInvalid("not UTF-8"), "ArrowInvalid: not UTF-8"),
        (MemoryError(), "out of memory"),
    ],
)
def test_a_damaged_sample_fails_alone(
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    reason: str,
) -> None:
    read = Dataset.__getitem__

    def sometimes(self: Dataset, row: int) -> Any:
        if self.samples.id[row] == "p5-1":
            raise error
        return read(self, row)

    monkeypatch.setattr(Dataset, "__getitem__", sometimes)
    run(dataset, tmp_path / "run", predict_only=True)
    assert [
        (reply.sample, reply.error)
        for reply in replies(tmp_path / "run")
        if reply.error
    ] == [("p5-1", reason)]


def test_failed_samples_are_asked_again_when_wanted(tmp_path: Path) -> None:
    dataset = write_dataset(
        tmp_path / "dataset", 30, questions=("fine", "fine", "raise")
    )
    mended = tmp_path / "mended"
    calls = tmp_path / "calls"
    options = {"mended": str(mended), "calls": str(calls)}
    mended.touch()
    run(dataset, tmp_path / "right", "Moody", options=options)
    mended.unlink()
    failed = run(dataset, tmp_path / "run", "Moody", options=options).failed
    assert failed == 20
    calls.unlink()
    run(dataset, tmp_path / "run", "Moody", options=options)
    assert not calls.exists(), "nobody asked for another try"
    again = run(
        dataset,
        tmp_path / "run",
        "Moody",
        options=options,
        retry_failed=True,
    )
    assert again.failed == 20
    mended.touch()
    calls.unlink()
    mends = run(
        dataset,
        tmp_path / "run",
        "Moody",
        options=options,
        retry_failed=True,
    )
    assert mends.failed == 0
    asked = [
        question
        for call in calls.read_text().splitlines()
        for question in call.split("|")
    ]
    assert len(asked) == 20
    assert all(question.startswith("raise") for question in asked)
    same(tmp_path / "right", tmp_path / "run")
    assert not (tmp_path / "run" / RETRY).exists()
    assert len(record(tmp_path / "run")["evaluation"]["attempts"]) == 3


def test_a_retry_cut_short_is_finished_or_left(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dataset", 30, questions=("fine", "raise"))
    mended = tmp_path / "mended"
    options = {"mended": str(mended)}
    mended.touch()
    run(dataset, tmp_path / "right", "Moody", options=options)
    mended.unlink()
    run(dataset, tmp_path / "run", "Moody", options=options)
    mended.touch()

    with pytest.raises(KeyboardInterrupt):
        run(
            dataset,
            tmp_path / "run",
            "Moody",
            options=options,
            retry_failed=True,
            on_progress=stop_the_retry,
        )
    before = (tmp_path / "run" / "predictions.jsonl").read_bytes()
    with pytest.warns(UserWarning, match="unfinished retry"):
        assert run(dataset, tmp_path / "run", "Moody", options=options).failed > 0
    assert (tmp_path / "run" / "predictions.jsonl").read_bytes() == before
    kept = (tmp_path / "run" / RETRY).read_bytes()
    assert (
        run(
            dataset, tmp_path / "run", "Moody", options=options, retry_failed=True
        ).failed
        == 0
    )
    same(tmp_path / "right", tmp_path / "run")
    # Killed after the new lines were put in place, before the retry was removed.
    (tmp_path / "run" / RETRY).write_bytes(kept)
    run(dataset, tmp_path / "run", "Moody", options=options, retry_failed=True)
    same(tmp_path / "right", tmp_path / "run")
    assert not (tmp_path / "run" / RETRY).exists()


def stop_the_retry(progress: Progress) -> None:
    """Of 60 samples, of which fewer are asked again."""
    if progress.total < 60 and progress.done > 4:
        raise KeyboardInterrupt


class UntilItHangs(queue.SimpleQueue[Any]):
    """Is waited for until a model hangs, however long the others take."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        while True:
            try:
                return super().get(timeout=0.01)
            except queue.Empty:
                if Moody.hangs.is_set():
                    Moody.hangs.clear()
                    raise


def test_a_retry_cut_short_is_kept_though_it_failed_as_before(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dataset", 30, questions=("fine", "raise"))
    options = {"mended": str(tmp_path / "mended"), "calls": str(tmp_path / "calls")}
    run(dataset, tmp_path / "run", "Moody", options=options)

    with pytest.raises(KeyboardInterrupt):
        run(
            dataset,
            tmp_path / "run",
            "Moody",
            options=options,
            retry_failed=True,
            on_progress=stop_the_retry,
        )
    kept = (tmp_path / "run" / RETRY).read_bytes()
    (tmp_path / "calls").unlink()
    (tmp_path / "mended").touch()
    failed = run(
        dataset, tmp_path / "run", "Moody", options=options, retry_failed=True
    ).failed
    assert failed == kept.count(b"\n"), (
        "those that failed again before the stop are not asked a third time"
    )
    assert not (tmp_path / "run" / RETRY).exists()


def test_a_question_that_hangs_fails_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = SimpleNamespace(SimpleQueue=UntilItHangs, Empty=queue.Empty)
    monkeypatch.setattr("maskwise.harness.worker.queue", waited)
    dataset = write_dataset(
        tmp_path / "dataset",
        5,
        questions=("fine", "hang", "fine", "fine", "fine", "fine"),
    )
    Moody.hang.clear()
    Moody.hangs.clear()
    try:
        run(
            dataset,
            tmp_path / "run",
            "Moody",
            timeout=1000,
            predict_only=True,
        )
    finally:
        Moody.hang.set()
    errors = {reply.sample: reply.error for reply in replies(tmp_path / "run")}
    assert errors.pop("p1-0") == "no prediction within 1000 s"
    assert set(errors.values()) == {None}


def test_a_fresh_model_with_other_weights_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = SimpleNamespace(SimpleQueue=UntilItHangs, Empty=queue.Empty)
    monkeypatch.setattr("maskwise.harness.worker.queue", waited)
    dataset = write_dataset(tmp_path / "dataset", 5, questions=("fine", "hang"))
    Moody.hang.clear()
    Moody.hangs.clear()
    try:
        with pytest.raises(
            ModelGoneError, match="has other weights now than when it was first opened"
        ):
            run(
                dataset,
                tmp_path / "run",
                "Renewed",
                timeout=1000,
                predict_only=True,
            )
    finally:
        Moody.hang.set()


def test_a_model_that_only_hangs_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwise.harness.worker.MAX_HUNG", 2)
    dataset = write_dataset(tmp_path / "dataset", 9, questions=("hang",))
    Moody.hang.clear()
    try:
        with pytest.raises(
            ModelGoneError, match=r"3 calls .* hang.*repeat the command to continue"
        ):
            run(
                dataset,
                tmp_path / "run",
                "Moody",
                timeout=0.05,
                predict_only=True,
            )
    finally:
        Moody.hang.set()


def test_a_model_may_keep_time_by_itself(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="all 48 questions failed"):
        run(
            dataset,
            tmp_path / "run",
            "Timed",
            timeout=7.5,
            predict_only=True,
            keep_going=True,
        )
    assert {reply.error for reply in replies(tmp_path / "run")} == {
        "gave up after 7.5 s"
    }


def test_a_model_that_is_gone_stops_the_run(tmp_path: Path) -> None:
    dataset = write_dataset(
        tmp_path / "dataset", 12, questions=("fine", "fine", "fine", "fine", "gone")
    )
    options = {"mended": str(tmp_path / "mended")}
    with pytest.raises(
        ModelGoneError, match=r"the server left\. 3 of 24 predictions are kept"
    ):
        run(dataset, tmp_path / "run", "Moody", options=options)
    (tmp_path / "mended").touch()
    assert run(dataset, tmp_path / "run", "Moody", options=options).failed == 0


# -- stopping, and disks that refuse -----------------------------------------------------------------------------------


def stop_after(count: int) -> Callable[[Progress], None]:
    def watch(progress: Progress) -> None:
        if progress.done >= count:
            raise KeyboardInterrupt

    return watch


def test_a_run_stopped_by_hand_continues(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(dataset, tmp_path / "run", on_progress=stop_after(20))
    assert record(tmp_path / "run")["state"] == "predicting"
    with pytest.raises(StoreError, match="predicting, not scored"):
        load_run(tmp_path / "run")
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith("loading")
    ]
    run(dataset, tmp_path / "run")
    same(tmp_path / "whole", tmp_path / "run")
    first, second = record(tmp_path / "run")["evaluation"]["attempts"]
    assert (first["done_before"], second["done_before"]) == (0, 21)


def test_a_folder_that_cannot_be_made_is_said_plainly(
    dataset: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        StoreError, match=r"file/run cannot be written: .*Not a directory"
    ):
        run(dataset, tmp_path / "file" / "run")


def test_a_folder_that_became_read_only_loses_nothing(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(dataset, tmp_path / "run", on_progress=stop_after(20))
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}

    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", _read_only(tmp_path / "run", open))
        with pytest.raises(StoreError, match="Read-only file system"):
            run(dataset, tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(
            "os.open", _read_only(tmp_path / "run" / "predictions.jsonl", os.open)
        )
        with pytest.raises(StoreError, match="Read-only file system"):
            run(dataset, tmp_path / "run")
    assert (tmp_path / "run" / "predictions.jsonl").read_bytes() == before[
        "predictions.jsonl"
    ]
    run(dataset, tmp_path / "run")
    run(dataset, tmp_path / "whole")
    same(tmp_path / "whole", tmp_path / "run")


def _read_only(place: Path, opening: Callable[..., Any]) -> Callable[..., Any]:
    def opened(path: Any, mode: Any = "r", *args: Any, **more: Any) -> Any:
        if (
            isinstance(path, Path)
            and path.is_relative_to(place)
            and mode not in ("r", "rb")
        ):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opening(path, mode, *args, **more)

    return opened


FULL_DISK = """
    import resource, sys
    from pathlib import Path
    from maskwise.errors import StoreError
    from tests.harness.test_evaluate import run
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
    try:
        run(Path(sys.argv[1]), Path(sys.argv[2]))
    except StoreError as error:
        print(error)
        sys.exit(2)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")
@pytest.mark.parametrize("lost", ["predictions", "scores"])
def test_a_full_disk_loses_nothing(dataset: Path, tmp_path: Path, lost: str) -> None:
    """Files may only grow so far: the predictions do not fit, or they do and the scores do not."""
    run(dataset, tmp_path / "whole")
    whole = (tmp_path / "whole" / "predictions.jsonl").read_bytes()
    room = 3 * len(whole) // 4 if lost == "predictions" else len(whole)
    command = [
        sys.executable,
        "-c",
        textwrap.dedent(FULL_DISK),
        dataset,
        tmp_path / "run",
        room,
    ]
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stdout
    kept = (tmp_path / "run" / "predictions.jsonl").read_bytes()
    assert kept.endswith(b"\n")
    assert whole.startswith(kept)
    assert (kept == whole) == (lost == "scores")
    run(dataset, tmp_path / "run")
    same(tmp_path / "whole", tmp_path / "run")


# -- in memory ---------------------------------------------------------------------------------------------------------


def test_without_a_folder_nothing_is_written_and_the_scores_are_equal(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run(dataset, tmp_path / "run")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    memory = evaluate(Painter(), Dataset.open(dataset), protocols=PROTOCOLS)
    assert not list((tmp_path / "empty").iterdir())
    assert folder.run is not None
    assert memory.scores == folder.run.scores
    assert (
        memory.rows("strict").value.tolist() == folder.run.rows("strict").value.tolist()
    )
    assert list(memory.predictions or ()) == replies(tmp_path / "run")
    assert memory.model_name == "painter"
    write_run(tmp_path / "kept", memory)
    assert load_run(tmp_path / "kept").scores == memory.scores
    assert (tmp_path / "kept" / "predictions.jsonl").read_bytes() == (
        tmp_path / "run" / "predictions.jsonl"
    ).read_bytes()


def test_records_score_as_their_file_does(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "run", predict_only=True)
    opened = Dataset.open(dataset)
    path = tmp_path / "run" / "predictions.jsonl"
    from_file = result_to_run(compute_scores(path, opened, PROTOCOLS))
    records = [*replies(tmp_path / "run")[::-1], Prediction(sample="unknown")]
    from_records = result_to_run(compute_scores(records, opened, PROTOCOLS))
    assert from_records.scores.protocols == from_file.scores.protocols
    assert from_records.scores.predictions.unknown == 1
    with pytest.raises(ProtocolError, match="contains no predictions"):
        compute_scores([], opened)
    with pytest.raises(MaskwiseError, match="two predictions"):
        compute_scores(records + records[:1], opened)
    with pytest.raises(MaskwiseError, match="contain a str"):
        compute_scores(["text"], opened)  # type: ignore[list-item]


def test_a_view_is_evaluated_and_not_mixed_with_the_whole(
    dataset: Path, tmp_path: Path
) -> None:
    whole = Dataset.open(dataset)
    part = whole[6:18]
    evaluated = evaluate(Painter(), part, tmp_path / "run")
    assert evaluated.summary is not None
    assert evaluated.summary.samples == 12
    assert load_run(tmp_path / "run").ids == part.samples.id
    with pytest.raises(StoreError, match="samples was"):
        evaluate(Painter(), whole, tmp_path / "run")


def test_a_model_that_is_passed_in_stays_open(dataset: Path) -> None:
    class Closing(Painter):
        closed = False

        def close(self) -> None:
            self.closed = True

    model = Closing()
    evaluate(model, dataset, limit=2, protocols=["union"])
    assert not model.closed


def test_ray_needs_a_folder_and_names(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(MaskwiseError, match="needs a run folder"):
        evaluate(Painter(), dataset, tmp_path / "run", engine="ray")


# -- being told --------------------------------------------------------------------------------------------------------


def test_teacher_forcing_is_asked_for_and_marked(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "free", "Pupil")
    assert not any(reply.forced for reply in replies(tmp_path / "free"))
    run(
        dataset,
        tmp_path / "run",
        "Pupil",
        teacher_forced=True,
        protocols=["lisa", "union"],
    )
    assert all(reply.forced for reply in replies(tmp_path / "run"))
    assert record(tmp_path / "run")["evaluation"]["inputs"]["teacher_forced"]
    assert "Teacher-forced" in run_to_html(load_run(tmp_path / "run"))
    assert "Teacher-forced" not in run_to_html(load_run(tmp_path / "free"))


def test_failed_replies_of_a_forced_run_are_marked_too(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dataset", bad=7)
    run(dataset, tmp_path / "run", "Pupil", teacher_forced=True, protocols=["union"])
    assert [reply.sample for reply in replies(tmp_path / "run") if reply.error] == [
        "p7-0",
        "p7-1",
    ]
    assert all(reply.forced for reply in replies(tmp_path / "run"))


def test_forced_predictions_scored_elsewhere_keep_the_mark(
    dataset: Path, tmp_path: Path
) -> None:
    run(dataset, tmp_path / "run", "Pupil", teacher_forced=True, protocols=["union"])
    opened = Dataset.open(dataset)
    path = tmp_path / "run" / "predictions.jsonl"
    write_run(
        tmp_path / "scored", result_to_run(compute_scores(path, opened, ["union"]))
    )
    assert load_run(tmp_path / "scored").teacher_forced
    assert "Teacher-forced" in run_to_html(load_run(tmp_path / "scored"))


def test_teacher_forcing_is_impossible_under_strict(
    dataset: Path, tmp_path: Path
) -> None:
    with pytest.raises(ProtocolError, match="strict does not score teacher-forced"):
        run(
            dataset,
            tmp_path / "run",
            "Pupil",
            teacher_forced=True,
            protocols=["lisa", "strict"],
        )
    assert not (tmp_path / "run").exists()
    done = run(dataset, tmp_path / "run", "Pupil", teacher_forced=True, protocols=None)
    assert done.run is not None
    assert "strict" not in done.run.scores.protocols
    assert "strict" in done.run.scores.skipped


def test_a_model_that_cannot_be_forced_is_refused(
    dataset: Path, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match="predict_teacher_forced"):
        run(dataset, tmp_path / "run", teacher_forced=True, protocols=["union"])


def test_a_model_that_knows_the_truth_is_marked(dataset: Path, tmp_path: Path) -> None:
    evaluated = evaluate("oracle", dataset, tmp_path / "run", protocols=["union"])
    assert evaluated["union"].metrics["giou"].value == 1.0
    assert record(tmp_path / "run")["evaluation"]["inputs"]["model"][
        "uses_ground_truth"
    ]
    assert "given the ground truth" in run_to_html(load_run(tmp_path / "run"))


def test_unknown_engines_and_protocols_are_refused(
    dataset: Path, tmp_path: Path
) -> None:
    with pytest.raises(UnknownNameError, match="local"):
        run(dataset, tmp_path / "run", engine="dask")
    with pytest.raises(UnknownNameError, match="strict"):
        run(dataset, tmp_path / "run", protocols=["strickt"])
    assert not (tmp_path / "run").exists()
