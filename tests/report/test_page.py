"""The page of a run: well formed, offline, safe, small, and true to scores.json."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from maskwise.report.gallery import MAX_BYTES
from maskwise.report.report_page import run_to_html
from maskwise.report.report_text import run_to_markdown, run_to_summary
from maskwise.runs import Run, load_run
from tests.report.pages import Page
from tests.report.runs import HOSTILE

LIMIT = 10_000_000


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def scores_of(run: Run) -> dict[str, Any]:
    return json.loads((run.folder / "scores.json").read_text())["protocols"]


def check_offline(source: str) -> None:
    """Nothing is asked of a network: addresses are fragments or data, and the policy allows no others."""
    page = Page(source)
    for element in page.elements:
        for name in ("href", "src", "xlink:href", "srcset", "action", "poster", "data"):
            assert element.attributes.get(name, "#").startswith(("#", "data:")), element
        assert not any(name.startswith("on") for name in element.attributes), element
    assert all(
        address.startswith("#") for address in re.findall(r"url\((.*?)\)", source)
    )
    assert "@import" not in source
    [policy] = [
        element.attributes["content"]
        for element in page.find("meta")
        if element.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy


def test_the_page_is_well_formed_and_offline(run: Run) -> None:
    check_offline(run_to_html(run))


def test_hostile_text_stays_text(hostile_run: Run) -> None:
    source = run_to_html(hostile_run)
    check_offline(source)
    page = Page(source)
    assert len(page.find("script")) == 1
    assert "alert" not in page.find("script")[0].text
    assert not page.find("img")
    assert "49" not in page.find("h1")[0].text
    assert page.find("h1")[0].text == "toy " + HOSTILE
    questions = [
        title.text for title in page.find("h3") if title.text.startswith("question")
    ]
    assert questions
    assert all(question.endswith(HOSTILE) for question in questions)
    assert any(HOSTILE in answer.text for answer in page.find("p", "answer"))
    slices = [
        json.loads(card.attributes["data-slices"]) for card in page.find("article")
    ]
    assert all(
        any(name.startswith("kind </script>") for name in card) for card in slices
    )


def test_only_its_own_script_may_run(run: Run) -> None:
    page = Page(run_to_html(run))
    policy = next(
        element.attributes["content"]
        for element in page.find("meta")
        if "content" in element.attributes
    )
    assert re.search(r"script-src 'sha256-[\w+/=]{44}';", policy)
    assert "unsafe-inline" not in policy.split("script-src")[1]


def test_headline_figures_equal_the_scores(run: Run, page: Page) -> None:
    metrics = scores_of(run)["strict"]["metrics"]
    shown = [element.text for element in page.find("span", "big")]
    names = [
        name
        for name in ("giou", "ciou", "boundary_iou", "f1")
        if metrics[name]["value"] is not None
    ]
    assert shown[: len(names)] == [percent(metrics[name]["value"]) for name in names]
    intervals = [element.text for element in page.find("span", "interval")]
    assert (
        intervals[0]
        == f"{percent(metrics['giou']['low'])} to {percent(metrics['giou']['high'])}"
    )


def test_every_protocol_is_shown_with_its_rule(run: Run, page: Page) -> None:
    [listed] = page.find("ul", "protocols")
    for name, result in scores_of(run).items():
        rule = result["rule"][0].upper() + result["rule"][1:]
        assert (
            f"{name} {'recommended ' if name == 'strict' else ''}{rule}." in listed.text
        )
        for metric in ("giou", "ciou"):
            assert percent(result["metrics"][metric]["value"]) in listed.text


def test_slices_and_counts_equal_the_scores(run: Run, page: Page) -> None:
    for name, result in scores_of(run).items():
        [view] = [
            element
            for element in page.find("div", "view")
            if element.attributes["data-protocol"] == name
        ]
        counts = result["counts"]
        assert f"{counts['scored']} scored" in view.text
        zero = f"{counts['failed'] + counts['missing']} counted as zero"
        assert (
            f"{zero} {counts['failed']} failed, {counts['missing']} without a prediction"
            in view.text
        )
        assert f"{counts['excluded']} left out" in view.text
        assert all(reason in view.text for reason in counts["reasons"])
        for group in result["slices"]["kind"]:
            value = group["metrics"]["giou"]["value"]
            assert (
                f"{group['name']} {group['samples']} questions gIoU {percent(value)}"
                in view.text
            )


def test_confusion_and_calibration_equal_the_scores(run: Run, page: Page) -> None:
    strict = scores_of(run)["strict"]
    [table] = page.find("table", "confusion")
    for row in strict["confusion"]["counts"]:
        for count in row:
            if sum(row):
                assert f"{percent(count / sum(row))} {count}" in table.text
    bins = strict["calibration"]
    total = sum(item["count"] for item in bins)
    error = (
        sum(item["count"] * abs(item["score"] - item["precision"]) for item in bins)
        / total
    )
    assert f"{percent(error)} points over {total} masks" in page.find("main")[0].text


def test_the_run_is_described(run: Run, page: Page) -> None:
    [facts] = page.find("section", "facts")
    for text in (
        run.info.dataset.sha256,
        run.info.predictions.sha256,
        run.info.predictions.path,
        "clustered by image",
    ):
        assert text in facts.text


def test_gallery_filters_and_layers(page: Page) -> None:
    layers = [
        box.attributes["value"]
        for box in page.find("input")
        if box.attributes.get("name") == "layer"
    ]
    assert layers == ["visible", "hidden", "amodal"]
    kinds = [
        box.attributes["value"]
        for box in page.find("input")
        if box.attributes.get("name") == "kind"
    ]
    assert kinds == ["", "worst", "best", "typical", "not scored"]
    assert {"mask_type", "kind"} <= {
        select.attributes["data-slice"] for select in page.find("select")
    }
    cards = page.find("article")
    assert (
        0
        < len([card for card in cards if card.attributes["data-kind"] == "worst"])
        <= 12
    )
    notes = [note.text for note in page.find("p", "note")]
    assert "Failed: out of memory" in notes
    assert "No prediction." in notes


def test_controls_and_images_are_labelled(page: Page) -> None:
    assert page.find("html")[0].attributes["lang"] == "en"
    for drawing in page.find("svg"):
        attributes = drawing.attributes
        assert attributes.get("aria-hidden") == "true" or attributes.get(
            "aria-label"
        ), attributes
    for heading in ("headline1", "protocols", "details", "samples", "facts"):
        assert any(
            element.attributes.get("id") == heading for element in page.find("h2")
        )
    ids = [
        element.attributes["id"]
        for element in page.elements
        if "id" in element.attributes
    ]
    assert len(ids) == len(set(ids))


@pytest.fixture
def swollen(run: Run, tmp_path: Path) -> Run:
    """A run with more protocols, slicings, groups, reasons and options than there should be, all with long names."""
    scores = json.loads((run.folder / "scores.json").read_text())
    [strict] = [scores["protocols"]["strict"]]
    group = strict["slices"]["kind"][0]
    strict["slices"] = {
        f"{HOSTILE * 5}{slicing}": [
            group | {"name": f"{HOSTILE * 5}{item}"} for item in range(100)
        ]
        for slicing in range(60)
    }
    strict["counts"]["reasons"] = {
        f"{HOSTILE * 20}{item}": item + 1 for item in range(5000)
    }
    scores["protocols"] = {"strict": strict} | dict.fromkeys(
        ("a", "b", "c", "d", "e", "f", "g", "h"), strict
    )
    facts = json.loads((run.folder / "run.json").read_text())
    for side in ("dataset", "predictions"):
        facts[side] = {
            key: HOSTILE * 999 if isinstance(text, str) else text
            for key, text in facts[side].items()
        }
    (tmp_path / "run.json").write_text(json.dumps(facts))
    scores["skipped"] = {"mmr": HOSTILE * 999}
    for name in ("scores.arrow", "metrics.arrow"):
        (tmp_path / name).write_bytes((run.folder / name).read_bytes())
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    return load_run(tmp_path)


def test_the_page_stays_small_whatever_the_run(swollen: Run) -> None:
    source = run_to_html(swollen, samples=0)
    Page(source)
    assert len(source.encode()) + MAX_BYTES < LIMIT
    assert len(run_to_markdown(swollen).encode()) < 200_000


def test_undefined_figures_are_not_zeros(run: Run, tmp_path: Path) -> None:
    scores = json.loads((run.folder / "scores.json").read_text())
    for result in scores["protocols"].values():
        for figure in result["metrics"].values():
            figure |= {"value": None, "low": None, "high": None}
        result |= {"calibration": [], "slices": {}}
    for name in ("run.json", "scores.arrow", "metrics.arrow"):
        (tmp_path / name).write_bytes((run.folder / name).read_bytes())
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    page = Page(run_to_html(load_run(tmp_path)))
    assert not page.find("span", "big")
    assert "gIoU –" in page.find("ul", "protocols")[0].text
    assert "0.0" not in page.find("ul", "protocols")[0].text


def test_markdown_holds_the_figures(run: Run) -> None:
    text = run_to_markdown(run)
    metrics = scores_of(run)["lisa"]["metrics"]["giou"]
    cell = f"{percent(metrics['value'])} ({percent(metrics['low'])} to {percent(metrics['high'])})"
    assert re.search(rf"^\| lisa \| {re.escape(cell)} \|", text, re.M)
    assert "## Requested mask type" in text


def test_markdown_escapes(hostile_run: Run) -> None:
    text = run_to_markdown(hostile_run)
    assert "<img" not in text.replace("\\<", "")
    assert "\\<img src=x" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in lines)


def test_json_holds_the_figures(run: Run) -> None:
    summary = run_to_summary(run)
    assert summary["dataset"] == "toy"
    for name, result in scores_of(run).items():
        for metric, figure in result["metrics"].items():
            assert (
                summary["protocols"][name]["metrics"][metric]["value"]
                == figure["value"]
            )
        assert (
            summary["protocols"][name]["counts"]["failed"] == result["counts"]["failed"]
        )


def test_the_risk_of_the_surest_answers_is_drawn(run: Run, page: Page) -> None:
    points = run["strict"].risk_coverage
    coverages = [coverage for _, coverage, _ in points]
    assert coverages == sorted(coverages)
    # Two of 24 questions failed or are missing: they are never covered.
    assert coverages[-1] == pytest.approx(22 / 24)
    confidences = [confidence for confidence, _, _ in points]
    assert confidences == sorted(confidences, reverse=True)
    headings = [heading.text for heading in page.find("h2")]
    assert "Risk and coverage" in headings
    assert page.find("polyline")
