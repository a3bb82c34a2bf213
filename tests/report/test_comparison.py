"""Comparing runs: no difference where there is none, the one there is, and refusals that say why."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from maskwise.errors import ProtocolError, UnknownNameError
from maskwise.report.comparison import compare_runs, pair_runs
from maskwise.report.comparison_page import comparison_to_html, describe_difference
from maskwise.report.leaderboard import make_leaderboard
from maskwise.runs import Run, load_run
from tests.report.pages import Page
from tests.report.runs import make_dataset, make_predictions, make_run
from tests.report.test_page import check_offline


def test_a_run_equals_itself(toy: Path) -> None:
    found = compare_runs(pair_runs(load_run(toy / "near"), load_run(toy / "near")))
    for name, change in found.metrics.items():
        if change.difference is not None:
            assert change.difference == 0.0, name
            assert (change.low, change.high) == (None, None), name
            assert change.p in (1.0, None), name
    for groups in found.slices.values():
        assert all(group.metrics["giou"].p_adjusted in (1.0, None) for group in groups)
    assert describe_difference(found.metrics["giou"], found.level).startswith(
        "Both runs have the same gIoU"
    )


def test_a_better_run_is_found(toy: Path) -> None:
    far = load_run(toy / "far")
    near = load_run(toy / "near")
    found = compare_runs(pair_runs(far, near))
    giou = found.metrics["giou"]
    expected = [
        run.scores.protocols["strict"].metrics["giou"].value for run in (far, near)
    ]
    assert [giou.a, giou.b] == pytest.approx(expected)
    assert giou.difference == pytest.approx(giou.b - giou.a)
    assert 0 < giou.low <= giou.difference <= giou.high
    assert giou.p < 0.01
    assert describe_difference(giou, found.level).startswith("B is better by ")
    back = compare_runs(pair_runs(near, far)).metrics["giou"]
    assert back.difference == -giou.difference
    sentence = describe_difference(back, found.level)
    assert sentence.startswith("A is better by ")
    assert sentence == describe_difference(giou, found.level).replace("B is", "A is")


def empty_worst(run: Run, predictions: Path, folder: Path, *, images: int) -> Run:
    """The same predictions without the masks of the images with the lowest gIoU."""
    rows = run.rows("mmr")
    values = np.bincount(run.clusters, rows.numerator)
    weights = np.bincount(run.clusters, rows.weight)
    hardest = np.argsort(values / np.maximum(weights, 1e-9))[:images]
    emptied = {
        sample for sample, image in zip(run.ids, run.clusters) if image in hardest
    }
    lines = [json.loads(line) for line in predictions.read_text().splitlines()]
    for line in lines:
        if line["sample"] in emptied:
            line["regions"] = []
            line["answer"] = None
    folder.mkdir()
    path = folder / "predictions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    data = Path(run.info.dataset.path)
    return make_run(folder / "run", data, path, protocols=["mmr", "strict"])


def test_a_run_gains_nothing_by_leaving_out_its_hardest_images(tmp_path: Path) -> None:
    """`mmr` skips an image without masks: emptying the worst ones raises gIoU, but not in a comparison."""
    data = make_dataset(tmp_path / "data", images=40)
    predictions = make_predictions(tmp_path / "p.jsonl", data, shift=4)
    whole = make_run(tmp_path / "whole", data, predictions, protocols=["mmr", "strict"])
    part = empty_worst(whole, predictions, tmp_path / "part", images=12)
    assert part["mmr"]["giou"] > whole["mmr"]["giou"] + 0.02
    compared = compare_runs(pair_runs(whole, part, "mmr"))
    assert compared.metrics["giou"].difference == 0.0
    assert compared.scored_b < compared.scored_a
    assert compared.compared == compared.scored_b
    assert f"{compared.scored_a} of 80 questions count for A" in compared.notice
    page = comparison_to_html(pair_runs(whole, part, "mmr"), compared, samples=0)
    assert "that count for both" in page
    board = make_leaderboard([part, whole])
    (dataset,) = board.datasets
    ranking = {table.protocol: table.rows for table in dataset.tables}["mmr"]
    assert [row.run for row in ranking] == ["whole", "run"]
    assert ranking[1].left_out == compared.scored_a - compared.scored_b
    assert "leaves out" in ranking[1].tags[0]
    assert compare_runs(pair_runs(whole, part, "strict")).notice is None


def test_a_comparison_is_a_data_frame(toy: Path) -> None:
    compared = compare_runs(pair_runs(load_run(toy / "far"), load_run(toy / "near")))
    frame = compared.to_pandas()
    overall = frame[frame["slice"] == ""].set_index("metric")
    assert overall.loc["giou", "difference"] == compared.metrics["giou"].difference
    assert bool(overall.loc["giou", "significant"])
    assert {"mask_type", "targets"} <= set(frame["slice"])


def test_slices_compare_their_own_samples(toy: Path) -> None:
    pair = pair_runs(load_run(toy / "far"), load_run(toy / "near"))
    found = compare_runs(pair)
    groups = pair.a.scores.protocols["strict"].slices["mask_type"]
    assert [group.name for group in found.slices["mask_type"]] == [
        group.name for group in groups
    ]
    for change, group in zip(found.slices["mask_type"], groups):
        assert change.samples == group.samples
        assert change.metrics["giou"].a == pytest.approx(group.metrics["giou"].value)
        assert change.metrics["ciou"].a == pytest.approx(group.metrics["ciou"].value)


def test_all_differences_but_the_headline_are_adjusted_together(toy: Path) -> None:
    found = compare_runs(pair_runs(load_run(toy / "far"), load_run(toy / "near")))
    changes = [change for name, change in found.metrics.items() if name != "giou"]
    changes += [
        change
        for groups in found.slices.values()
        for group in groups
        for change in group.metrics.values()
    ]
    tested = [change for change in changes if change.p is not None]
    assert found.family == len(tested)
    assert found.metrics["giou"].p_adjusted is None
    ranked = sorted(tested, key=lambda change: change.p)
    assert ranked[-1].p_adjusted == pytest.approx(ranked[-1].p)
    assert all(
        one.p <= one.p_adjusted <= other.p_adjusted
        for one, other in itertools.pairwise(ranked)
    )


def test_other_datasets_are_refused(toy: Path, tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data", images=13)
    other = make_run(
        tmp_path / "run",
        data,
        make_predictions(tmp_path / "p.jsonl", data),
        protocols=["strict"],
    )
    with pytest.raises(ProtocolError, match="different datasets cannot be compared"):
        pair_runs(load_run(toy / "near"), other)


def test_other_questions_of_one_dataset_are_refused(toy: Path) -> None:
    near = load_run(toy / "near")
    part = load_run(toy / "near")
    part.ids = part.ids[:-1]
    with pytest.raises(
        ProtocolError,
        match="not the same ones: evaluate both with the same --limit and --seed",
    ):
        pair_runs(near, part)


def changed(run: Path, copy: Path, change: dict) -> Run:
    shutil.copytree(run, copy)
    scores = json.loads((copy / "scores.json").read_text())
    scores["protocols"]["strict"] |= change
    (copy / "scores.json").write_text(json.dumps(scores))
    return load_run(copy)


def test_other_options_are_refused(toy: Path, tmp_path: Path) -> None:
    other = changed(
        toy / "near", tmp_path / "run", {"options": {"mask_type": "lenient"}}
    )
    with pytest.raises(
        ProtocolError,
        match=r"mask_type=exact.*mask_type=lenient.*score both with the same",
    ):
        pair_runs(load_run(toy / "near"), other)


def test_unshared_protocols_are_refused(toy: Path, tmp_path: Path) -> None:
    near = load_run(toy / "near")
    runs = [
        make_run(tmp_path / name, toy / "data", toy / "near.jsonl", protocols=[name])
        for name in ("lisa", "union")
    ]
    with pytest.raises(ProtocolError, match="share no protocol"):
        pair_runs(*runs)
    assert pair_runs(near, runs[0]).protocol == "lisa"
    with pytest.raises(UnknownNameError, match="known: lisa"):
        pair_runs(near, runs[0], "strict")


def test_the_page_shows_where_they_disagree(toy: Path) -> None:
    pair = pair_runs(load_run(toy / "far"), load_run(toy / "near"))
    source = comparison_to_html(pair, compare_runs(pair), samples=4)
    check_offline(source)
    page = Page(source)
    cards = page.find("article")
    assert [card.attributes["data-kind"] for card in cards] == ["B is better"] * 4
    assert [caption.text for caption in page.find("figcaption")[:3]] == [
        "Ground truth",
        "A: far",
        "B: near",
    ]
    assert "B is better by" in page.find("p", "verdict")[0].text


def test_hostile_text_stays_text(hostile_run: Run) -> None:
    pair = pair_runs(hostile_run, hostile_run)
    source = comparison_to_html(pair, compare_runs(pair))
    check_offline(source)
    page = Page(source)
    assert len(page.find("script")) == 1
    assert not page.find("img")
