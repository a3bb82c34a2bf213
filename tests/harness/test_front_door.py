"""The public functions, which the command line calls too: evaluate, score, load_run, compare, read_dataset."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import maskwise as mw
from maskwise.cli.main import app
from maskwise.harness import resume
from maskwise.masks import Masks
from maskwise.predictions import FORMATS


@pytest.fixture(scope="module")
def data() -> mw.Dataset:
    return mw.load_dataset("world")[:60]


@pytest.fixture(scope="module")
def run(data: mw.Dataset) -> mw.Run:
    return mw.evaluate("oracle", data, protocols=["strict", "lisa"])


@pytest.fixture(scope="module")
def noisy(data: mw.Dataset) -> mw.Run:
    return mw.evaluate(mw.load_model("oracle", noise=2), data, protocols=["strict"])


def truth(sample: mw.Sample) -> mw.Prediction:
    regions = [
        mw.PredictedRegion(visible=region.visible, amodal=region.amodal)
        for region in sample.targets
    ]
    return mw.Prediction(
        regions=regions, mask_type=sample.mask_type, no_target=not regions
    )


def test_metrics_behave_like_floats(run: mw.Run, noisy: mw.Run) -> None:
    giou = noisy["strict"]["giou"]
    assert isinstance(giou, mw.Metric)
    assert giou.interval is not None
    assert giou.interval[0] < giou < giou.interval[1]
    assert run["strict"]["giou"] == 1.0
    assert (
        repr(mw.Metric(0.74, (0.687, 0.789)))
        == "Metric(0.740, interval=(0.687, 0.789))"
    )
    assert repr(mw.Metric(2.0, unit="count")) == "Metric(2.000)"
    assert f"{mw.Metric(0.74):.1f}" == "0.7"
    copied = pickle.loads(pickle.dumps(giou))
    assert (copied, copied.interval, copied.unit) == (giou, giou.interval, giou.unit)


def test_a_run_is_short_to_look_at(run: mw.Run) -> None:
    assert list(run) == ["strict", "lisa"]
    assert len(repr(run)) < 200
    assert len(repr(run["strict"])) < 300
    assert "strict" in run._repr_html_()
    assert "giou" in list(run["strict"])


def test_unknown_protocols_and_metrics_are_named(run: mw.Run) -> None:
    with pytest.raises(mw.UnknownNameError, match="strict"):
        run["strickt"]
    with pytest.raises(mw.UnknownNameError, match="giou"):
        run["strict"]["mIoU"]
    with pytest.raises(mw.StoreError, match="indexed by the name"):
        run[0]  # type: ignore[index]


def test_data_frames(run: mw.Run, data: mw.Dataset) -> None:
    pytest.importorskip("pandas")
    frame = run.to_pandas()
    assert set(frame["protocol"]) == {"strict", "lisa"}
    assert {"metric", "value", "low", "high", "unit"} <= set(frame.columns)
    assert len(run.to_pandas(samples=True)) == 2 * len(data)


def test_without_pandas_the_error_says_what_to_install(
    run: mw.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(mw.MissingDependencyError, match="pip install pandas") as caught:
        run.to_pandas()
    assert isinstance(caught.value, ImportError)


def test_a_run_in_memory_writes_its_report(run: mw.Run, tmp_path: Path) -> None:
    page = run.report(tmp_path / "new" / "report.html", samples=2)
    assert "<svg" in page.read_text(encoding="utf-8")
    assert "gIoU" in run.report(tmp_path / "report.md").read_text(encoding="utf-8")
    with pytest.raises(mw.StoreError, match=r"ends in \.html"):
        run.report(tmp_path / "report.docx")


def test_a_folder_continues_and_loads(data: mw.Dataset, tmp_path: Path) -> None:
    first = mw.evaluate("oracle", data, out=tmp_path / "run", protocols=["strict"])
    again = mw.evaluate("oracle", data, tmp_path / "run", protocols="strict")
    assert (
        first["strict"]["giou"]
        == again["strict"]["giou"]
        == mw.load_run(tmp_path / "run")["strict"]["giou"]
    )
    assert (tmp_path / "run" / "run.json").exists()


def test_the_model_of_a_run_is_recorded_by_the_name_it_was_loaded_by(
    data: mw.Dataset,
) -> None:
    loaded = mw.load_model("oracle", noise=1)
    run = mw.evaluate(loaded, data, protocols=["strict"])
    assert run.info.evaluation is not None
    assert run.info.evaluation.inputs.model.spec == "oracle"
    assert run.info.evaluation.inputs.model.options == {"noise": 1}


def test_scoring_records_in_any_order_and_by_position(data: mw.Dataset) -> None:
    by_position = [truth(sample) for sample in data]
    named = [
        mw.Prediction(
            sample=sample.id,
            regions=one.regions,
            mask_type=one.mask_type,
            no_target=one.no_target,
        )
        for sample, one in zip(data, by_position)
    ]
    for predictions in (by_position, named[::-1], {one.sample: one for one in named}):
        assert (
            mw.score(predictions, data, protocols=["strict"])["strict"]["giou"] == 1.0
        )


def test_scoring_arrays_and_masks(data: mw.Dataset) -> None:
    visible = data.filter(
        lambda sample: sample.mask_type == "visible" and len(sample.targets) > 0
    )
    batches = [
        Masks.from_masks([region.visible for region in sample.targets])
        for sample in visible
    ]
    arrays = [masks.to_dense() for masks in batches]
    for predictions in (batches, arrays, dict(zip(visible.samples.id, arrays))):
        assert (
            mw.score(predictions, visible, protocols=["strict"])["strict"]["giou"]
            == 1.0
        )
    unions: list[Any] = [array.any(0).astype(np.uint8) for array in arrays]
    assert mw.score(unions, visible, protocols=["union"])["union"][
        "giou"
    ] == pytest.approx(1.0)


def test_scoring_writes_a_folder(data: mw.Dataset, tmp_path: Path) -> None:
    run = mw.score(
        [truth(sample) for sample in data], data, tmp_path / "run", protocols=["strict"]
    )
    assert run.folder == tmp_path / "run"
    again = mw.score(tmp_path / "run" / "predictions.jsonl", data, protocols=["strict"])
    assert again["strict"]["giou"] == run["strict"]["giou"] == 1.0


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        (3, "expected a path, a list of predictions or a dict"),
        (mw.Prediction(), "expected a path, a list"),
        ([mw.Prediction()], "1 predictions for 60 samples"),
        (["cup"] * 60, "expected a Prediction, masks or None"),
        ([], "contains no predictions"),
        ("nowhere.jsonl", "nowhere.jsonl"),
    ],
)
def test_other_predictions_are_refused_with_a_sentence(
    data: mw.Dataset, predictions: Any, message: str
) -> None:
    with pytest.raises(mw.MaskwiseError, match=message):
        mw.score(predictions, data)


def test_other_arguments_are_refused_with_a_sentence(data: mw.Dataset) -> None:
    with pytest.raises(mw.StoreError, match="expected the name or folder of a dataset"):
        mw.load_dataset(3)  # type: ignore[arg-type]
    with pytest.raises(mw.StoreError, match="neither a dataset folder nor"):
        mw.load_dataset("worlds")
    with pytest.raises(mw.UnknownNameError, match="strict"):
        mw.evaluate("oracle", data, protocols=["strickt"])
    with pytest.raises(mw.ProtocolError, match="mask_type"):
        mw.score([], data, mask_type="both")  # type: ignore[arg-type]
    with pytest.raises(mw.StoreError, match="expected a run or its folder"):
        mw.load_run(None)  # type: ignore[arg-type]


def test_comparing_runs(run: mw.Run, noisy: mw.Run) -> None:
    found = mw.compare(run, noisy)
    change = found.metrics["giou"]
    assert change.difference is not None
    assert change.difference < 0
    assert len(repr(found)) < 300
    assert "gIoU" in found._repr_html_()


def test_lists_describe_what_is_known_by_name() -> None:
    assert "tiny" in mw.list_models()
    assert "mmr" in mw.list_benchmarks()
    assert "cocoa" in mw.list_formats()
    assert "strict" in mw.list_protocols()


def test_masks_of_another_size_are_warned_about() -> None:
    data = mw.load_dataset("world")[:12]
    with pytest.warns(
        UserWarning,
        match="No prediction could be scored: mask size differs from the image",
    ):
        run = mw.score([np.ones((1, 10, 10), bool)] * 12, data, protocols=["strict"])
    assert run["strict"]["giou"] == 0
    assert any("mask size" in notice for notice in run.notices)


# -- the report, and what it costs -------------------------------------------------------------------------------------


def test_evaluating_and_scoring_to_a_folder_leave_a_report(
    data: mw.Dataset, tmp_path: Path
) -> None:
    run = mw.evaluate("oracle", data, tmp_path / "evaluated", protocols="strict")
    page = (tmp_path / "evaluated" / "report.html").read_text(encoding="utf-8")
    assert "gIoU" in page
    assert "<svg" in page, "the gallery has samples"
    assert run.summary is not None
    assert (run.summary.samples, run.summary.failed) == (len(data), 0)
    predictions = tmp_path / "evaluated" / "predictions.jsonl"
    scored = mw.score(predictions, data, tmp_path / "scored", protocols="strict")
    assert scored.summary is None
    assert "<svg" in (tmp_path / "scored" / "report.html").read_text(encoding="utf-8")


def test_the_command_line_calls_the_same_functions(tmp_path: Path) -> None:
    ours = tmp_path / "python"
    mw.evaluate("oracle", "world", ours, options={"noise": 2}, limit=4)
    theirs = tmp_path / "command"
    arguments = ["--model", "oracle", "--model-option", "noise=2", "--limit", "4"]
    done = CliRunner().invoke(app, ["eval", "world", *arguments, "--out", str(theirs)])
    assert done.exit_code == 0, done.output
    assert {path.name for path in ours.iterdir()} == {
        path.name for path in theirs.iterdir()
    }
    for name in ("predictions.jsonl", "scores.json", "scores.arrow", "metrics.arrow"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name


class Counter:
    """Counts the calls of a function."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.calls += 1
        return self.function(*arguments, **options)


def test_predictions_are_parsed_once_per_evaluation(
    data: mw.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Counter(FORMATS["jsonl"])
    monkeypatch.setitem(FORMATS, "jsonl", reading)
    checking = Counter(resume._decode)
    monkeypatch.setattr(resume, "_decode", checking)
    mw.evaluate("oracle", data, tmp_path / "run", protocols="strict")
    assert (reading.calls, checking.calls) == (1, 0)
    mw.evaluate("oracle", data, tmp_path / "run", protocols="union")
    assert reading.calls == 2
    assert checking.calls == len(data), "a run that exists is checked line by line"


def test_a_loaded_model_predicts(data: mw.Dataset) -> None:
    sample = data[0]
    model = mw.load_model("tiny")
    questions = [sample.question, "the book"]
    predictions = model.predict(sample.image, questions)
    assert isinstance(model, mw.Predictor)
    assert predictions == model.encode(sample.image).ask(questions)
    assert model.predict(sample.image, []) == []
    assert [prediction.sample for prediction in predictions] == ["", ""]


def test_masks_in_memory_may_be_amodal_or_teacher_forced(data: mw.Dataset) -> None:
    amodal = data.filter(
        lambda sample: sample.mask_type == "amodal" and len(sample.targets) > 0
    )
    batches = [
        Masks.from_masks([region.amodal for region in sample.targets])
        for sample in amodal
    ]
    run = mw.score(batches, amodal, mask_type="amodal", protocols="strict")
    assert run["strict"]["giou"] == 1.0
    forced = mw.score(batches, amodal, mask_type="amodal", teacher_forced=True)
    assert forced.teacher_forced
    assert "strict" in forced.scores.skipped


def test_a_benchmark_is_read_by_name(tmp_path: Path) -> None:
    scenes = mw.load_dataset("world")[:6]
    mw.write_dataset(scenes, "png", tmp_path / "masks")
    summary = mw.read_dataset("png", tmp_path / "masks", tmp_path / "data")
    assert summary.kept["questions"] == 6
    assert mw.load_dataset(tmp_path / "data").samples.id == scenes.samples.id
    with pytest.raises(mw.UnknownNameError, match="mmr"):
        mw.read_dataset("mmrr", tmp_path, tmp_path / "other")


def test_runs_in_memory_are_called_by_their_model(run: mw.Run, noisy: mw.Run) -> None:
    comparison = mw.compare(run, noisy)
    assert comparison.a == f"{run.model_name} (in memory)"


def test_a_dataset_without_questions_says_how_to_write_some(tmp_path: Path) -> None:
    with mw.DatasetWriter(tmp_path / "empty", name="empty"):
        pass
    with pytest.raises(mw.StoreError, match=r"`maskwise build RECIPE .*` writes"):
        mw.evaluate("tiny", tmp_path / "empty")


def test_mask_types_that_a_model_never_states_are_not_compared(
    run: mw.Run, data: mw.Dataset
) -> None:
    """The oracle states them, arrays do not."""
    empty = [np.zeros((0, 224, 224), bool)] * len(data)
    masks = mw.score(empty, data, protocols="strict")
    assert "mask_type_accuracy" in mw.compare(run, run).metrics
    assert "mask_type_accuracy" not in mw.compare(run, masks).metrics
