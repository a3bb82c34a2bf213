"""The samples of a run as a table, filtered, the worst first, and drawn."""

import io
import sys
from pathlib import Path

import pytest
from PIL import Image

import maskwise as mw

COLUMNS = [
    "sample",
    "image",
    "question",
    "mask_type",
    "predicted_type",
    "targets",
    "regions",
    "no_target",
    "status",
    "failure",
    "strict",
    "lisa",
]


@pytest.fixture(scope="module")
def data() -> mw.Dataset:
    return mw.load_dataset("world")[:60]


@pytest.fixture(scope="module")
def run(data: mw.Dataset) -> mw.Run:
    """An oracle with noise of which one prediction failed and one is missing."""
    noisy = mw.evaluate("oracle", data, options={"noise": 4}, protocols="strict")
    assert noisy.predictions is not None
    predictions = list(noisy.predictions)[1:]
    predictions[4] = mw.Prediction(sample=predictions[4].sample, error="out of memory")
    with pytest.warns(UserWarning, match="1 of 60 questions failed"):
        return mw.score(predictions, data, protocols=["strict", "lisa"])


def test_the_table_has_a_row_per_question(run: mw.Run, data: mw.Dataset) -> None:
    pytest.importorskip("pandas")
    frame = run.samples()
    assert list(frame.columns[: len(COLUMNS)]) == COLUMNS
    assert {"occlusion", "category", "size"} <= set(frame.columns), "slices"
    assert list(frame["sample"]) == [sample.id for sample in data]
    assert list(frame["question"]) == [sample.question for sample in data]
    assert list(frame["targets"]) == [len(sample.targets) for sample in data]
    assert frame["strict"].fillna(0).mean() == pytest.approx(run["strict"]["giou"])
    failed = frame[frame["status"] == "failed"]
    assert list(failed["failure"]) == ["out of memory"]
    assert (frame["status"] == "missing").sum() == 1


def test_a_table_without_pandas_says_what_to_install(
    run: mw.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(mw.MissingDependencyError, match="pandas"):
        run.samples()
    assert len(run.worst(3)) == 3, "the rest needs no pandas"


def test_the_worst_come_first(run: mw.Run) -> None:
    worst = run.worst(60)
    scores = [item.scores["strict"] or 0.0 for item in worst]
    assert scores == sorted(scores)
    zeros = [item for item in worst if not item.scores["strict"]]
    assert any(item.prediction is None for item in zeros), "the missing one"
    assert [item.sample.id for item in run.worst(5)] == [
        item.sample.id for item in worst[:5]
    ]
    assert run.worst(3, protocol="lisa").protocol == "lisa"


def test_samples_are_filtered_by_columns_and_functions(run: mw.Run) -> None:
    failed = run.filter(status="failed")
    assert [item.prediction for item in failed] == [
        mw.Prediction(sample=failed[0].sample.id, error="out of memory")
    ]
    amodal = run.filter(mask_type="amodal")
    assert {item.sample.mask_type for item in amodal} == {"amodal"}
    both = run.filter(mask_type=["amodal", "visible"])
    assert len(both) == len(amodal) + len(run.filter(mask_type="visible"))
    bad = amodal.filter(lambda row: (row["strict"] or 0) < 0.7)
    assert 0 < len(bad) < len(amodal)
    assert [item.sample.id for item in bad.worst(1)] == [
        item.sample.id for item in amodal.worst(1)
    ]
    assert len(run.filter(targets=0, no_target=False, regions=[1, 2])) == 0


def test_unknown_columns_and_protocols_are_named(run: mw.Run) -> None:
    with pytest.raises(mw.UnknownNameError, match="mask_type"):
        run.filter(masktype="amodal")
    with pytest.raises(mw.UnknownNameError, match="known: lisa, strict"):
        run.worst(3, protocol="mmr")


def test_samples_are_drawn_beside_their_prediction(run: mw.Run) -> None:
    (item,) = run.worst(1)
    image = item.sample.image
    plot = item.plot()
    assert plot.width >= 2 * image.width
    sheet = run.worst(4).plot(columns=2)
    assert sheet.width > 2 * plot.width
    shown = Image.open(io.BytesIO(item._repr_png_()))
    assert shown.size == plot.size


def test_notebooks_show_the_images(run: mw.Run) -> None:
    html = run.worst(2)._repr_html_()
    assert html.count("<img ") == 2
    assert "RunSamples(2 of 60 samples" in html
    assert repr(run.worst(1)[0]).startswith("RunSample('")


def test_a_run_of_a_folder_finds_its_data(tmp_path: Path) -> None:
    mw.evaluate("oracle", "world", tmp_path / "run", limit=3, protocols="strict")
    loaded = mw.load_run(tmp_path / "run")
    assert len(loaded.worst(2)) == 2
    assert loaded.worst(2).plot().width > 100
