"""docs/benchmarks/which_giou.md: its example runs, and its figures are those of the images where these are at hand."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import maskwise as mw
from docs.generate.tree import ROOT
from maskwise.runs.ladder import LadderRun
from maskwise.runs.schema import MetricValue
from maskwise.schema import Prediction
from tests.shared import shared

TEXT = (ROOT / "docs" / "benchmarks" / "which_giou.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```", TEXT, re.S | re.M)


def documented_rows() -> dict[str, list[str]]:
    """The table of real images: cells by rule."""
    table = TEXT.split("| rule | truth gIoU |")[1].split("\n\n")[0]
    rows = {}
    for line in table.splitlines()[2:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name.strip("`")] = cells
    return rows


def printed(metric: MetricValue) -> str:
    return "n.d." if metric.value is None else f"{100 * metric.value:.2f}"


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_prints_what_the_page_says(
    example: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, expected = example
    monkeypatch.chdir(tmp_path)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, {})
    assert output.getvalue() == expected


def test_page_has_an_example() -> None:
    assert EXAMPLES


@pytest.fixture(scope="module")
def reasonseg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reasonseg") / "data"
    mw.read_dataset("reasonseg", shared("data", "reasonseg_val"), folder)
    return folder


def ladder_of(dataset: Path, model: str) -> LadderRun:
    """The ladder of a model that needs no pixels of the images."""
    run = mw.evaluate(model, dataset, protocols="lisa")
    assert run.ladder is not None
    return run.ladder.runs[0]


def test_truth_of_lisa_has_the_documented_values_under_every_rule(
    reasonseg: Path,
) -> None:
    run = ladder_of(reasonseg, "oracle")
    for rule, cells in documented_rows().items():
        values = run.values[rule]
        counted = values.counts.samples - values.counts.excluded
        measured = [printed(values.metrics["giou"]), printed(values.metrics["ciou"])]
        assert [*measured, str(counted)] == cells[:3], rule
    lisa = run.values["lisa"].metrics
    assert lisa["giou"].value == pytest.approx(1, abs=1e-6)
    assert lisa["ciou"].value == pytest.approx(1, abs=1e-6)
    assert documented_rows().keys() == run.values.keys()


def test_whole_image_has_the_documented_values_under_every_rule(
    reasonseg: Path,
) -> None:
    run = ladder_of(reasonseg, "whole-image")
    for rule, cells in documented_rows().items():
        metrics = run.values[rule].metrics
        measured = f"{printed(metrics['giou'])} / {printed(metrics['ciou'])}"
        assert measured == cells[3], rule


def test_saliency_control_draws_what_is_salient(
    reasonseg: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(shared("weights")))
    saliency = pytest.importorskip("bench.saliency").SaliencyControl()
    sample = next(iter(mw.load_dataset(reasonseg)))
    path = shared("data", "reasonseg_val", f"{sample.image_id}.jpg")
    image = mw.open_image(path)
    first, second = saliency.predict(image, [sample.question, "anything else"])
    assert isinstance(first, Prediction)
    assert first.regions == second.regions
    [region] = first.regions
    assert region.visible is not None
    assert region.visible.size == (image.height, image.width)
