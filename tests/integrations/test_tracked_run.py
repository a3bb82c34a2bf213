"""`maskwise eval --track`: metrics, intervals and config of an evaluation in a tracker."""

from pathlib import Path

import pytest

import maskwise as mw
from maskwise.integrations.tracked_run import flatten, run_id, run_values, track_run
from tests.cli.commands import fail, run
from tests.harness.fakes import write_dataset

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def test_an_evaluation_is_written_to_tensorboard(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "data", images=3)
    run(
        *("eval", data, "--model", "oracle", "--protocol", "strict"),
        *("--out", tmp_path / "run", "--track", "tensorboard"),
    )
    events = EventAccumulator(str(tmp_path / "run" / "events" / "eval"))
    events.Reload()
    strict = mw.load_run(tmp_path / "run")["strict"]
    (giou,) = events.Scalars("strict/giou")
    assert (giou.step, giou.value) == (1, strict["giou"])
    (failed,) = events.Scalars("strict/failed")
    assert failed.value == strict.counts.failed
    (config,) = events.Tensors("config/text_summary")
    assert b'"spec": "oracle"' in config.tensor_proto.string_val[0]


def test_an_unknown_tracker_is_named_before_the_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("eval", "world", "--model", "tiny", "--out", tmp_path / "run")
    said = fail(capsys, monkeypatch, *arguments, "--track", "tensorbord")
    assert "Did you mean 'tensorboard'?" in said
    assert not (tmp_path / "run").exists()


def test_values_have_ends_of_intervals_and_no_undefined_metric(tmp_path: Path) -> None:
    data = mw.load_dataset(write_dataset(tmp_path / "data", images=12))
    in_memory = mw.evaluate("oracle", data, protocols="strict")
    values = run_values(in_memory)
    giou = in_memory["strict"].metrics["giou"]
    assert values["strict/giou_low"] == giou.low
    assert values["strict/giou_high"] == giou.high
    undefined = [
        name
        for name, value in in_memory["strict"].metrics.items()
        if value.value is None
    ]
    assert not [name for name in undefined if f"strict/{name}" in values]
    assert None not in values.values()
    with pytest.raises(mw.StoreError, match="out="):
        track_run(in_memory, ["tensorboard"])


def test_a_run_has_the_same_id_every_time(tmp_path: Path) -> None:
    assert run_id(tmp_path, "a") == run_id(tmp_path, "a")
    assert run_id(tmp_path, "a") != run_id(tmp_path, "b")


def test_nested_settings_get_names_with_dots() -> None:
    assert flatten({"a": {"b": {"c": 1}}, "d": 2}) == {"a.b.c": 1, "d": 2}
