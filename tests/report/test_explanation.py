"""Lost points by fault: sums that are exact, hand-worked cases, and known faults that move the right bars."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.errors import MaskwiseError
from maskwise.harness.evaluate import evaluate
from maskwise.harness.oracle import Oracle
from maskwise.masks import Mask
from maskwise.protocols import find_protocol
from maskwise.report.explanation import Explanation, explain
from maskwise.report.fault_repairs import FAULTS
from maskwise.report.lost_points import (
    FAULT_NAMES,
    StrictOptions,
    order_gains,
    shapley_gains,
    split_losses,
)
from maskwise.runs import Run, load_run
from maskwise.schema import PredictedRegion, Prediction, Sample
from tests.protocols.small_cases import (
    question,
    scoring_input,
    strip,
    target,
)
from tests.protocols.strategies import FRAME, datasets, predictions_for
from tests.report.pages import Page
from tests.report.test_commands import run as run_command
from tests.report.test_page import check_offline


@given(data=st.data(), unoccluded=st.sampled_from(["either", "exact"]))
def test_parts_add_up_to_the_loss_of_every_question(data: Any, unoccluded: Any) -> None:
    samples = data.draw(datasets())
    inputs = scoring_input(samples, data.draw(predictions_for(samples)), frame=FRAME)
    mask_type = data.draw(st.sampled_from(["exact", "lenient"]))
    options = StrictOptions(mask_type, unoccluded)
    lost = split_losses(inputs, samples.__getitem__, options)
    scores = find_protocol("strict").score(
        inputs, mask_type=mask_type, unoccluded=unoccluded
    )
    terms = scores.metrics["giou"]
    expected = np.where(terms.denominator > 0, 1.0 - terms.numerator, 0.0)
    np.testing.assert_allclose(lost.loss, expected, atol=1e-12)
    np.testing.assert_allclose(lost.ordered.sum(1), lost.loss, atol=1e-9)
    np.testing.assert_allclose(lost.shapley.sum(1), lost.loss, atol=1e-9)


def parts_of(sample: Sample, *predictions: Prediction) -> dict[str, float]:
    """What each fault costs, in the order of repair; faults that cost nothing are left out."""
    inputs = scoring_input([sample], list(predictions))
    lost = split_losses(inputs, [sample].__getitem__, StrictOptions())
    costs = zip(FAULT_NAMES, lost.ordered[0].tolist(), strict=True)
    return {fault: pytest.approx(cost) for fault, cost in costs if cost}


def visible(start: int, stop: int) -> PredictedRegion:
    return PredictedRegion(visible=strip(start, stop))


def predicted(*regions: PredictedRegion, mask_type: Any = "visible") -> Prediction:
    return Prediction(sample="q", regions=regions, mask_type=mask_type)


def test_no_prediction_is_failed() -> None:
    sample = question("q", target(strip(0, 4)))
    assert parts_of(sample) == {"failed": 1.0}
    assert parts_of(sample, Prediction(sample="q", error="out of memory")) == {
        "failed": 1.0
    }


def test_nothing_drawn_is_silent() -> None:
    sample = question("q", target(strip(0, 4)))
    assert parts_of(sample, Prediction(sample="q", no_target=True)) == {"silent": 1.0}


def test_a_region_without_a_target_is_invented() -> None:
    assert parts_of(question("q"), predicted(visible(0, 4))) == {"invented": 1.0}


def test_another_object_is_the_wrong_target() -> None:
    sample = question("q", target(strip(0, 4)))
    assert parts_of(sample, predicted(visible(6, 9))) == {"wrong_target": 1.0}


def test_one_of_two_targets_is_missed() -> None:
    sample = question("q", target(strip(0, 2)), target(strip(5, 8)))
    assert parts_of(sample, predicted(visible(0, 2))) == {"missed_target": 0.5}


def test_a_copy_of_the_right_region_is_extra() -> None:
    sample = question("q", target(strip(0, 2)))
    right = visible(0, 2)
    assert parts_of(sample, predicted(right, right)) == {"extra_region": 0.5}


def test_the_right_mask_of_the_wrong_type() -> None:
    sample = question("q", target(strip(0, 2), strip(0, 8)), mask_type="amodal")
    region = PredictedRegion(visible=strip(0, 2), amodal=strip(0, 8))
    assert parts_of(sample, predicted(region)) == {"wrong_mask_type": 1.0}


def test_a_visible_mask_where_the_amodal_one_is_asked_for() -> None:
    """The type is repaired first: 2 of 8 pixels are right then, the others are hidden ones."""
    sample = question("q", target(strip(0, 2), strip(0, 8)), mask_type="amodal")
    assert parts_of(sample, predicted(visible(0, 2))) == {
        "wrong_mask_type": 0.25,
        "missing_completion": 0.75,
    }


def test_pixels_of_an_amodal_mask_by_fault() -> None:
    """Target 2-7, hidden from 5 on; predicted 1-5 and 8: pixels 1 and 2 are wrong on the visible side."""
    sample = question("q", target(strip(2, 5), strip(2, 8)), mask_type="amodal")
    amodal = strip(1, 2) | strip(3, 6) | strip(8, 9)
    region = PredictedRegion(visible=strip(1, 2) | strip(3, 5), amodal=amodal)
    parts = parts_of(sample, predicted(region, mask_type="amodal"))
    # IoU 3/8; with pixels 1 and 2 right 4/7; with 6 and 7 drawn 6/7; without 8: 1.
    assert parts == {
        "visible_boundary": 4 / 7 - 3 / 8,
        "missing_completion": 6 / 7 - 4 / 7,
        "over_completion": 1 / 7,
    }


def test_without_a_visible_mask_the_nearer_part_decides() -> None:
    sample = question("q", target(strip(2, 5), strip(2, 8)), mask_type="amodal")
    region = PredictedRegion(amodal=strip(1, 10))
    assert parts_of(sample, predicted(region, mask_type="amodal")) == {
        "visible_boundary": 6 / 8 - 6 / 9,
        "over_completion": 1 - 6 / 8,
    }


def test_hidden_pixels_in_a_visible_mask_are_over_completion() -> None:
    sample = question("q", target(strip(0, 2), strip(0, 8)))
    assert parts_of(sample, predicted(visible(0, 8))) == {"over_completion": 0.75}


def test_a_fully_hidden_target_needs_no_visible_mask() -> None:
    nothing = Mask.empty(1, 10)
    sample = question("q", target(nothing, strip(0, 4)), mask_type="both")
    region = PredictedRegion(amodal=strip(0, 2))
    assert parts_of(sample, predicted(region, mask_type="both")) == {
        "missing_completion": 0.5
    }


def test_ignored_pixels_cost_nothing() -> None:
    sample = question("q", target(strip(0, 4)), ignore=strip(4, 6))
    assert parts_of(sample, predicted(visible(0, 6))) == {}


def test_the_order_matters_and_the_mean_over_orders_shares() -> None:
    """Neither repair gains alone: the last one gets all, or each a half."""
    nothing: frozenset[str] = frozenset()
    first = frozenset({"wrong_target"})
    second = frozenset({"wrong_mask_type"})
    values = {nothing: 0.0, first: 0.0, second: 0.0, first | second: 1.0}
    assert order_gains(values) == {"wrong_target": 0.0, "wrong_mask_type": 1.0}
    assert shapley_gains(values) == {"wrong_target": 0.5, "wrong_mask_type": 0.5}


# -- an oracle with known faults on the bundled benchmark


def explain_oracle(**faults: float) -> dict[str, float]:
    """The points that each fault costs the oracle."""
    run = evaluate(Oracle(**faults), "world", protocols="strict", progress=False)
    explanation = explain(run)
    assert sum(costs(explanation).values()) == pytest.approx(
        1.0 - run["strict"]["giou"]
    )
    return {fault: cost for fault, cost in costs(explanation).items() if cost > 1e-9}


def costs(explanation: Explanation) -> dict[str, float]:
    return {name: part.points.value or 0.0 for name, part in explanation.parts.items()}


@pytest.mark.parametrize(
    ("faults", "bars"),
    [
        ({}, set()),
        ({"drop": 0.3}, {"silent", "missed_target"}),
        ({"add": 0.3}, {"invented", "extra_region"}),
        ({"flip": 0.3}, {"wrong_mask_type"}),
        (
            {"noise": 2.0},
            {"visible_boundary", "missing_completion", "over_completion"},
        ),
    ],
)
def test_known_faults_move_the_right_bars(
    faults: dict[str, float], bars: set[str]
) -> None:
    assert set(explain_oracle(**faults)) == bars


# -- the command and its pages


def test_the_parts_of_every_group_add_up(run: Run) -> None:
    explanation = run.explain()
    assert explanation.order == list(FAULTS)
    for groups in explanation.slices.values():
        for group in groups:
            assert sum(group.parts.values()) + group.giou == pytest.approx(1.0)
    assert len(explanation.parts["failed"].examples) == 2


def test_the_command_prints_and_writes(toy: Path, tmp_path: Path) -> None:
    page = tmp_path / "explain.html"
    done = run_command("explain", toy / "far", "--out", page)
    assert done.exit_code == 0, done.output
    assert "visible boundary" in done.stdout
    source = page.read_text(encoding="utf-8")
    check_offline(source)
    parsed = Page(source)
    assert len(parsed.find("rect", "lost")) == len(explain(toy / "far").costly)
    assert parsed.find("article")
    done = run_command("explain", toy / "far", "--out", tmp_path / "x.md")
    assert "| visible boundary |" in (tmp_path / "x.md").read_text()


def test_two_runs_are_told_apart(toy: Path, tmp_path: Path) -> None:
    page = tmp_path / "pair.html"
    done = run_command("explain", toy / "near", toy / "far", "--out", page, "--json")
    found = json.loads(done.stdout)
    assert found["format"] == "maskwise explanation difference 1"
    changes = [part["difference"] for part in found["parts"].values()]
    assert sum(changes) == pytest.approx(found["a"]["giou"] - found["b"]["giou"])
    check_offline(page.read_text(encoding="utf-8"))
    done = run_command("explain", toy / "near", toy / "far", "--out", tmp_path / "x.md")
    assert "B - A" in done.stdout
    assert "| visible boundary |" in (tmp_path / "x.md").read_text()
    run_command("explain", toy / "near", "--out", tmp_path / "x.json")
    assert "parts" in json.loads((tmp_path / "x.json").read_text())


def test_hostile_text_stays_text(hostile_run: Run, tmp_path: Path) -> None:
    page = tmp_path / "explain.html"
    done = run_command("explain", hostile_run.folder, "--out", page)
    assert done.exit_code == 0, done.output
    check_offline(page.read_text(encoding="utf-8"))


def test_the_report_has_the_waterfall(page: Page) -> None:
    assert page.find("ul", "waterfall")


def test_what_cannot_be_explained_says_why(toy: Path, tmp_path: Path) -> None:
    done = run_command("explain", toy / "far", "--out", tmp_path / "x.pdf")
    assert "expected .html, .md or .json" in str(done.exception)
    other = run_command(
        "score",
        toy / "far.jsonl",
        toy / "data",
        "--protocol",
        "lisa",
        "--out",
        tmp_path / "lisa",
    )
    assert other.exit_code == 0, other.output
    with pytest.raises(MaskwiseError, match="not scored under strict"):
        explain(load_run(tmp_path / "lisa"))
