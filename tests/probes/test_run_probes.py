"""Running probes: folders, resuming, errors, the page and the report that carry the results."""

import json
from pathlib import Path

import pytest

import maskwise as mw
from bench.probe_faults import FailsSometimes, write_squares
from maskwise.benchmarks.benchmark import RISK_PROBES
from maskwise.errors import MaskwiseError, UnknownNameError
from maskwise.probes import Probe, ProbeContext, ProbeFinding, Threshold
from maskwise.probes.context import BASE
from maskwise.registry import PROBES
from maskwise.report.probe_page import probes_to_html
from maskwise.runs import load_run
from maskwise.runs.probe_results import (
    Measure,
    PlotPoint,
    PlotSeries,
    ProbePlot,
    ProbesFile,
    ProbeTable,
    read_probes,
)
from maskwise.store import Dataset

PROBE_NAMES = ["output-bias", "data-bias", "poor-model-accuracy", "demographic"]


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_squares(tmp_path_factory.mktemp("squares") / "squares", images=24)


def make_probe(run: object, **fields: object) -> Probe:
    """A probe that does what a test wants."""
    facts = {
        "name": "mine",
        "title": "Mine",
        "risks": ("atlas-output-bias",),
        "measured": "nothing",
        "blind_spots": "everything",
        "thresholds": (Threshold("high", "always"),),
    }
    return Probe(**{**facts, **fields}, run=run)  # type: ignore[arg-type]


def ask(context: ProbeContext, *, twice: bool = False) -> ProbeFinding:
    """The shared evaluation, and one of half of the images."""
    context.evaluate("mine/half", share=0.5)
    return ProbeFinding(
        finding=f"{len(context.base.ids)} <b>questions</b>",
        severity="high",
        done="asked twice" if twice else "asked",
    )


def test_a_folder_has_results_page_and_runs(tmp_path: Path, squares: Dataset) -> None:
    results = mw.probe(
        "tiny", squares.path, tmp_path / "out", probes=PROBE_NAMES, progress=False
    )
    assert [result.name for result in results.results] == PROBE_NAMES
    assert read_probes(tmp_path / "out") == results
    page = (tmp_path / "out" / "probes.html").read_text(encoding="utf-8")
    for result in results.results:
        assert result.title in page
        assert result.name in page
    # One evaluation, and three blind ones.
    assert results.cost == 4
    assert load_run(tmp_path / "out" / BASE).probes == results
    report = (tmp_path / "out" / BASE / "report.html").read_text(encoding="utf-8")
    assert "atlas-output-bias" in report


def test_results_depend_on_the_seed_only(squares: Dataset) -> None:
    def measure() -> ProbesFile:
        return mw.probe("tiny", squares, probes="data-bias", seed=3, progress=False)

    first = measure().results[0]
    second = measure().results[0]
    assert first.measures == second.measures
    assert first.finding == second.finding


def test_what_was_asked_is_not_asked_again(tmp_path: Path, squares: Dataset) -> None:
    model = FailsSometimes()
    probes = [make_probe(ask)]
    first = mw.probe(model, squares, tmp_path / "out", probes=probes, progress=False)
    assert first.results[0].runs == ["mine/half"]
    assert first.cost == 1.5
    predictions = tmp_path / "out" / BASE / "predictions.jsonl"
    written = predictions.stat().st_mtime_ns

    def refuse(*_: object) -> None:
        raise AssertionError("asked again")

    model.predict_with_ground_truth = refuse  # type: ignore[method-assign]
    again = mw.probe(model, squares, tmp_path / "out", probes=probes, progress=False)
    assert again.results[0].finding == first.results[0].finding
    assert predictions.stat().st_mtime_ns == written


def test_probes_of_one_folder_are_collected(tmp_path: Path, squares: Dataset) -> None:
    model = FailsSometimes()
    out = tmp_path / "out"
    first = make_probe(ask, name="first")
    second = make_probe(ask, name="second")
    mw.probe(model, squares, out, probes=first, progress=False)
    both = mw.probe(model, squares, out, probes=second, progress=False)
    assert [result.name for result in both.results] == ["first", "second"]
    # Both use the same two evaluations.
    assert both.cost == 1.5
    assert read_probes(out) == both


def test_a_folder_of_other_probes_is_left_alone(
    tmp_path: Path, squares: Dataset
) -> None:
    out = tmp_path / "out"
    kept = mw.probe(
        FailsSometimes(), squares, out, probes=make_probe(ask), progress=False
    )
    for options in ({"seed": 1}, {"quick": True}, {"limit": 10}):
        with pytest.raises(MaskwiseError, match="choose another folder"):
            mw.probe(
                FailsSometimes(),
                squares,
                out,
                probes=make_probe(ask),
                progress=False,
                **options,  # type: ignore[arg-type]
            )
    assert read_probes(out) == kept


def test_what_is_done_is_kept_when_a_later_probe_is_interrupted(
    tmp_path: Path, squares: Dataset
) -> None:
    def stop(context: ProbeContext) -> ProbeFinding:
        raise KeyboardInterrupt

    probes = [make_probe(ask, name="first"), make_probe(stop, name="second")]
    with pytest.raises(KeyboardInterrupt):
        mw.probe(
            FailsSometimes(), squares, tmp_path / "out", probes=probes, progress=False
        )
    assert [result.name for result in read_probes(tmp_path / "out").results] == [
        "first"
    ]


def test_a_part_of_the_images_is_a_part_of_the_shared_evaluation(
    squares: Dataset,
) -> None:
    def compare(context: ProbeContext) -> ProbeFinding:
        half = context.evaluate("half", share=0.5)
        rows = context.base_rows(half)
        assert [context.base.ids[row] for row in rows] == half.ids
        own = half.metrics("strict")["giou"].value()
        assert context.base_metrics(half)["giou"].value() == own
        return ProbeFinding(finding="equal", severity="none", done="compared")

    probe = make_probe(compare)
    results = mw.probe(
        FailsSometimes(), squares, probes=probe, limit=10, seed=5, progress=False
    )
    assert results.results[0].finding == "equal"
    assert (results.samples, results.images) == (30, 10)


def test_a_probe_that_fails_says_so_and_others_go_on(squares: Dataset) -> None:
    def fail(context: ProbeContext) -> ProbeFinding:
        raise RuntimeError("out of luck")

    probes = [make_probe(fail), make_probe(ask, name="other")]
    broken, other = mw.probe(
        FailsSometimes(), squares, probes=probes, progress=False
    ).results
    assert broken.severity == "unmeasured"
    assert "RuntimeError: out of luck" in broken.finding
    assert other.severity == "high"


def test_texts_of_a_probe_are_escaped(squares: Dataset) -> None:
    results = mw.probe(
        FailsSometimes(), squares, probes=make_probe(ask), progress=False
    )
    page = probes_to_html(results, {})
    assert "<b>questions</b>" not in page
    assert "&lt;b&gt;questions" in page


def test_without_a_model_only_the_data_is_probed(squares: Dataset) -> None:
    results = mw.probe(None, squares, progress=False)
    assert {"unrepresentative-data", "data-bias"} <= {
        result.name for result in results.results
    }
    assert results.model is None
    assert results.cost == 0
    with pytest.raises(MaskwiseError, match="need a model"):
        mw.probe(None, squares, probes="output-bias", progress=False)


def test_a_single_image_proves_nothing(tmp_path: Path) -> None:
    single = write_squares(tmp_path / "single", images=1)
    options = {"unrepresentative-data": {"reference": str(tmp_path / "single")}}
    names = ["output-bias", "unrepresentative-data", "data-bias"]
    results = mw.probe(
        FailsSometimes(), single, probes=names, probe_options=options, progress=False
    )
    assert {result.severity for result in results.results} == {"unmeasured"}


def test_a_dataset_without_questions_is_refused(tmp_path: Path) -> None:
    with mw.DatasetWriter(tmp_path / "empty", name="empty") as writer:
        writer.add_image(mw.ImageInfo(id="a", width=4, height=4))
    with pytest.raises(MaskwiseError, match="no questions"):
        mw.probe(None, tmp_path / "empty")


def test_options_are_checked_before_anything_is_asked(squares: Dataset) -> None:
    def refuse(context: ProbeContext, *, words: int = 3) -> ProbeFinding:
        raise AssertionError("ran")

    probe = make_probe(refuse)
    for options in ({"word": 3}, {"words": "many"}):
        with pytest.raises(MaskwiseError, match="word"):
            mw.probe(
                FailsSometimes(), squares, probes=probe, probe_options={"mine": options}
            )
    with pytest.raises(UnknownNameError, match="yours"):
        mw.probe(FailsSometimes(), squares, probes=probe, probe_options={"yours": {}})


def test_a_table_has_rows_of_one_length() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        ProbeTable(title="t", columns=["a"], units=["text"], rows=[["x", "y"]])


def test_plots_and_values_of_every_kind_are_drawn(squares: Dataset) -> None:
    def show(context: ProbeContext) -> ProbeFinding:
        named = PlotSeries("s", [PlotPoint("a", 0.5, 0.4, 0.6), PlotPoint("b", None)])
        number = PlotSeries("t", [PlotPoint(1, 0.2), PlotPoint(5, 0.1, 0.0, 0.3)])
        same = PlotSeries("u", [PlotPoint(1, 0.2)])
        units = ["fraction", "difference", "count", "number", "p", "text"]
        return ProbeFinding(
            finding="f",
            severity="low",
            done="d",
            plots=[
                ProbePlot(title="bars", kind="bars", series=[named, named]),
                ProbePlot(title="lines", kind="lines", series=[number, same]),
                ProbePlot(title="empty", kind="lines", series=[]),
            ],
            tables=[
                ProbeTable(
                    title="t",
                    columns=units,
                    units=units,  # type: ignore[arg-type]
                    rows=[[0.5, -0.25, 1200, 1.5, 0.0001, "x"], [None] * 6],
                )
            ],
            measures=[Measure(name="m", label="m", value=None, method="why not")],
        )

    results = mw.probe(None, squares, probes=make_probe(show, needs_model=False))
    page = probes_to_html(results, {})
    for text in ("50.0", "−25.0", "1,200", "1.50", "&lt; 0.001", "why not"):
        assert text in page


def test_every_risk_that_cards_name_has_its_probes() -> None:
    probes = PROBES.load_all(Probe)
    for risk, names in RISK_PROBES.items():
        told = [name for name, probe in probes.items() if risk in probe.risks]
        assert list(names) == told


def test_names_and_lines_agree() -> None:
    for name, probe in PROBES.load_all(Probe).items():
        assert probe.name == name
        assert probe.blind_spots
        assert probe.thresholds


def test_a_folder_without_results_says_how_to_make_them(tmp_path: Path) -> None:
    with pytest.raises(MaskwiseError, match="maskwise probe DATASET"):
        read_probes(tmp_path)
    (tmp_path / "probes.json").write_text(json.dumps({"format": "other"}))
    with pytest.raises(MaskwiseError, match="other"):
        read_probes(tmp_path)
