"""Runs side by side: the order of the questions, slices, the size of the page, and refusals."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from maskwise.errors import ProtocolError, UnknownNameError
from maskwise.report import gallery as gallery_module
from maskwise.report.run_data import RunPaths, load_run_data
from maskwise.report.run_gallery import gallery_to_html, measure_disagreement
from maskwise.runs import Run, load_run
from tests.report.pages import Page
from tests.report.runs import make_dataset, make_predictions, make_run
from tests.report.test_commands import run as run_command
from tests.report.test_page import check_offline


@pytest.fixture(scope="module")
def three(toy: Path) -> list[Run]:
    return [load_run(toy / name) for name in ("near", "far", "near")]


def shown(source: str) -> list[str]:
    """The ids of the questions of a page, in order."""
    return [item.text for item in Page(source).find("span", "id")]


def test_disagreement_is_one_minus_the_mean_iou_of_pairs(three: list[Run]) -> None:
    """Two equal runs and another: two of three pairs differ."""
    data = [load_run_data(run, RunPaths()) for run in three]
    values = measure_disagreement(data)
    two = measure_disagreement(data[:2])
    np.testing.assert_allclose(values, two * 2 / 3)
    assert measure_disagreement([data[0], data[2]]).max() == 0
    # Nobody drew anything where there is no target.
    assert values[three[0].ids.index("s0-1")] == 0


def test_questions_come_by_disagreement(three: list[Run]) -> None:
    source = gallery_to_html(three, samples=10)
    check_offline(source)
    data = [load_run_data(run, RunPaths()) for run in three]
    values = dict(zip(three[0].ids, measure_disagreement(data), strict=True))
    ranked = [values[id] for id in shown(source)]
    assert len(ranked) == 10
    assert ranked == sorted(values.values(), reverse=True)[:10]
    captions = [item.text for item in Page(source).find("figcaption")][:4]
    assert captions == ["Ground truth", "near", "far", "near #2"]


def test_slices_choose_before_ranking(three: list[Run]) -> None:
    source = gallery_to_html(three, slices={"mask_type": "amodal"})
    assert shown(source)
    assert all(id.endswith("-1") for id in shown(source))
    with pytest.raises(UnknownNameError, match="unknown slice"):
        gallery_to_html(three, slices={"colour": "red"})
    with pytest.raises(UnknownNameError, match="unknown value of mask_type"):
        gallery_to_html(three, slices={"mask_type": "modal"})


def test_a_page_that_would_be_too_large_leaves_questions_out(
    three: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery_module, "MAX_BYTES", 60_000)
    source = gallery_to_html(three)
    left_out = re.search(r"(\d+) more samples were left out", source)
    assert left_out is not None
    assert len(shown(source)) + int(left_out[1]) == len(three[0].ids)


def test_runs_that_cannot_be_compared_are_refused(
    three: list[Run], tmp_path: Path
) -> None:
    with pytest.raises(ProtocolError, match="two to 12 runs, not 1"):
        gallery_to_html(three[:1])
    data = make_dataset(tmp_path / "data", images=3)
    path = make_predictions(tmp_path / "p.jsonl", data)
    other = make_run(tmp_path / "other", data, path)
    with pytest.raises(ProtocolError, match="different datasets"):
        gallery_to_html([*three, other])


def test_the_command_writes_a_page(toy: Path, hostile_run: Run, tmp_path: Path) -> None:
    out = tmp_path / "gallery.html"
    runs = (toy / "near", toy / "far")
    done = run_command("gallery", *runs, "--out", out, "--slice", "mask_type=visible")
    assert done.exit_code == 0, done.output
    assert (
        "with mask_type = visible" in Page(out.read_text()).find("p", "counts")[0].text
    )
    folder = hostile_run.folder
    assert folder is not None
    copied = shutil.copytree(folder, tmp_path / "copied")
    assert run_command("gallery", folder, copied, "--out", out).exit_code == 0
    check_offline(out.read_text(encoding="utf-8"))
    done = run_command("gallery", *runs, "--out", out, "--slice", "visible")
    assert "expected NAME=VALUE" in str(done.exception)
    done = run_command("gallery", *runs, "--out", tmp_path / "x.pdf")
    assert "expected .html" in str(done.exception)
