"""`maskwise ladder` and the section in reports: values, counts, spread, rank swaps, forms of output."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import maskwise as mw
from maskwise.errors import ProtocolError
from maskwise.harness.ladder import ladder
from maskwise.masks import Mask
from maskwise.protocols.intervals import NOT_DEFINED
from maskwise.protocols.published_rules import published_rules
from maskwise.report.ladder_page import ladder_to_html
from maskwise.report.ladder_text import ladder_to_csv, ladder_to_markdown
from maskwise.runs import load_run
from maskwise.runs.ladder import Ladder
from maskwise.schema import ImageInfo, PredictedRegion, Prediction, Region, Sample
from maskwise.store import DatasetWriter, Log
from tests.cli.commands import fail
from tests.cli.commands import run as command
from tests.report.pages import Page

SIZE = (10, 20)


def strip(first: int, last: int) -> Mask:
    """The columns from first to last, exclusive."""
    plane = np.zeros(SIZE, np.bool_)
    plane[:, first:last] = True
    return Mask.from_dense(plane)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve images: a target beside an ignored strip, and on the last one nothing. Two models: one leaves the ignored
    strip out, the other fills it but misses a part of the target.
    """
    place = tmp_path_factory.mktemp("ladder")
    target = strip(0, 10)
    ignored = strip(10, 15)
    with DatasetWriter(place / "data", name="strips") as writer:
        for number in range(12):
            image = ImageInfo(id=f"p{number}", width=20, height=10, path=None)
            writer.add_image(image)
            region = Region(id=f"r{number}", name="strip", visible=target)
            is_empty = number == 11
            sample = Sample(
                id=f"s{number}",
                image_id=f"p{number}",
                question="?",
                targets=() if is_empty else (region,),
                ignore=None if is_empty else ignored,
            )
            writer.add_sample(sample)
    drawn = {"narrow": strip(0, 10), "wide": strip(0, 15) - strip(0, 1)}
    for name, mask in drawn.items():
        with Log(place / f"{name}.jsonl", Prediction) as log:
            for number in range(12):
                regions = (PredictedRegion(visible=mask),) if number < 11 else ()
                prediction = Prediction(
                    sample=f"s{number}", regions=regions, no_target=not regions
                )
                log.append(prediction)
    return place


@pytest.fixture(scope="module")
def both(folder: Path) -> Ladder:
    return mw.ladder([folder / "narrow.jsonl", folder / "wide.jsonl"], folder / "data")


def giou(result: Ladder, run: int, rule: str) -> float | None:
    return result.runs[run].values[rule].metrics["giou"].value


def test_values_are_those_worked_by_hand(both: Ladder) -> None:
    # The narrow mask is the target: 1 where ignored pixels are dropped or background, 10 / 15 where they are target.
    assert giou(both, 0, "lisa") == pytest.approx(1, abs=1e-6)
    assert giou(both, 0, "lens") == pytest.approx(1, abs=1e-6)
    assert giou(both, 0, "visionreasoner") == pytest.approx(11 * 10 / 15 / 12)
    assert giou(both, 0, "star") == pytest.approx((11 * 10 / 15 + 1) / 12)
    assert giou(both, 0, "segzero_multi") == pytest.approx(10 / 15)
    # The wide one has 9 of 10 columns of target and all 5 ignored ones.
    assert giou(both, 1, "xsam") == pytest.approx(9 / 10)
    assert giou(both, 1, "unipixel") == pytest.approx((11 * 9 / 15 + 1) / 12)
    assert giou(both, 1, "star") == pytest.approx((11 * 14 / 15 + 1) / 12)


def test_counts_say_which_questions_a_rule_leaves_out(both: Ladder) -> None:
    counts = both.runs[0].values["xsam"].counts
    assert counts.excluded == 1
    [reason] = counts.reasons
    assert "no target pixel" in reason
    counts = both.runs[0].values["segzero_multi"].counts
    assert "two empty masks" in next(iter(counts.reasons))
    assert both.runs[0].values["star"].counts.excluded == 0


def test_dataset_and_rules_are_described(both: Ladder) -> None:
    assert both.dataset.ignored == 11
    assert both.dataset.empty_truth == 1
    assert both.dataset.divides_rules
    shown = [rule.name for rule in both.rules]
    assert set(shown) | set(both.not_applicable) == set(published_rules())
    assert both.not_applicable["r2sm"] == "the dataset has no amodal masks"
    lisa = both.rules[0]
    assert "[code read]" in lisa.comparable_with[0]


def test_undefined_metrics_are_not_zero(both: Ladder) -> None:
    saco = both.runs[0].values["saco"].metrics
    assert saco["giou"].value is None
    assert saco["giou"].method == NOT_DEFINED
    assert saco["cgf1"].value == pytest.approx(0.9999, abs=1e-3)
    assert both.runs[0].values["sam3i_multi_inst"].metrics["ciou"].value is None


def test_order_of_runs_swaps_between_rules(both: Ladder) -> None:
    swap = next(swap for swap in both.swaps if swap.metric == "giou")
    assert (swap.a, swap.b) == ("narrow", "wide")
    assert {"lisa", "xsam", "lens", "unipixel"} <= set(swap.a_better)
    assert {"segzero", "visionreasoner", "star"} <= set(swap.b_better)
    assert swap.differences["star"].difference == pytest.approx(11 * 4 / 15 / 12)
    assert "wide is better under" in ladder_to_markdown(both)


def test_spread_is_over_published_rules(both: Ladder) -> None:
    spread = both.runs[0].spread["giou"]
    assert spread.high == pytest.approx(1, abs=1e-6)
    # Seg-Zero, VisionReasoner and Sa2VA's scrambled truth give this, the last with an epsilon.
    assert spread.low_rule in ("visionreasoner", "segzero", "sa2va_st")
    assert spread.low == pytest.approx(11 * 10 / 15 / 12, abs=1e-6)


def test_page_has_a_plot_a_table_and_sentences_to_quote(both: Ladder) -> None:
    page = Page(ladder_to_html(both))
    dots = [item for item in page.find("circle") if item.attributes.get("class")]
    rules = len(both.rules)
    # Every rule but the two of SA-Co has gIoU; sam3i_multi_inst has no cIoU besides.
    assert len(dots) == 2 * ((rules - 2) + (rules - 3))
    html = ladder_to_html(both)
    assert "as implemented in maskwise" in html
    assert NOT_DEFINED in html


def test_csv_has_a_row_per_run_rule_and_metric(both: Ladder) -> None:
    rows = list(csv.DictReader(io.StringIO(ladder_to_csv(both))))
    star = [row for row in rows if (row["run"], row["rule"]) == ("narrow", "star")]
    assert {row["metric"] for row in star} == {"giou", "ciou"}
    assert float(star[0]["value"]) == pytest.approx((11 * 10 / 15 + 1) / 12)


def test_command_prints_and_writes(folder: Path, tmp_path: Path) -> None:
    data = folder / "data"
    page = tmp_path / "ladder.html"
    shown = command("ladder", folder / "narrow.jsonl", data, "--out", page).output
    assert "comparable with" in shown
    assert "n.d." in shown
    assert page.read_text().startswith("<!doctype html>")
    written = tmp_path / "ladder.json"
    command("ladder", folder / "narrow.jsonl", data, "--out", written)
    assert json.loads(written.read_text())["format"] == "maskwise ladder 1"
    result = command("ladder", folder / "narrow.jsonl", data, "--json").output
    assert json.loads(result)["dataset"]["samples"] == 12


def test_report_of_such_a_dataset_has_the_section_and_reruns(
    folder: Path, tmp_path: Path
) -> None:
    command(
        "score", folder / "narrow.jsonl", folder / "data", "--out", tmp_path / "run"
    )
    assert (tmp_path / "run" / "ladder.json").is_file()
    run = load_run(tmp_path / "run")
    for suffix in (".html", ".md"):
        text = run.report(tmp_path / f"report{suffix}", samples=0).read_text()
        assert "Under other published rules" in text
        assert "66.7" in text
    # A run knows its dataset, so it needs no other argument.
    shown = command("ladder", tmp_path / "run").output
    assert "segzero_multi" in shown


def test_dataset_that_no_rule_treats_differently_has_no_section(
    tmp_path: Path,
) -> None:
    with DatasetWriter(tmp_path / "data", name="plain") as writer:
        writer.add_image(ImageInfo(id="p", width=20, height=10, path=None))
        region = Region(id="r", name="strip", visible=strip(0, 5))
        writer.add_sample(Sample(id="s", image_id="p", question="?", targets=(region,)))
    run = mw.score([[strip(0, 4)]], tmp_path / "data", tmp_path / "run")
    assert run.ladder is None
    assert not (tmp_path / "run" / "ladder.json").exists()


def test_mistakes_are_explained(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = fail(capsys, monkeypatch, "ladder", folder / "narrow.jsonl")
    assert "give its dataset too" in said
    with pytest.raises(ProtocolError, match="which dataset"):
        ladder(folder / "narrow.jsonl")
    with pytest.raises(ProtocolError, match="at least one run"):
        ladder([], folder / "data")
