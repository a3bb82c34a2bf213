"""What a reader has to know before the metrics is said by the run itself."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import maskwise as mw
from maskwise.runs import Run, load_run


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated") / "run"
    mw.evaluate("oracle", "world", folder, limit=3, seed=4, protocols="strict")
    return folder


def changed(folder: Path, out: Path, file: str, *keys: str, value: Any) -> Run:
    """A copy of a run in which one value of a JSON file is another."""
    shutil.copytree(folder, out)
    content = json.loads((out / file).read_text())
    place = content
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    (out / file).write_text(json.dumps(content))
    return load_run(out)


def test_an_oracle_and_a_subset_are_announced(evaluated: Path) -> None:
    run = load_run(evaluated)
    assert run.uses_ground_truth
    assert run.subset is not None
    assert (run.subset.limit, run.subset.seed) == (3, 4)
    assert run.notices == [
        "This model is given the ground truth: its metrics test the protocols, not it.",
        "A subset of the dataset: 3 images drawn with seed 4.",
    ]


def test_a_plain_run_has_no_notices_but_its_failures(run: Run) -> None:
    assert run.notices == ["1 of 24 questions failed; the first: out of memory."]
    assert run.subset is None
    assert not run.uses_ground_truth
    assert not run.teacher_forced
    assert run.model_name == "far.jsonl", "the predictions stand for the model"


def test_teacher_forcing_is_announced(evaluated: Path, tmp_path: Path) -> None:
    keys = ("evaluation", "inputs", "teacher_forced")
    run = changed(evaluated, tmp_path / "run", "run.json", *keys, value=True)
    assert "Teacher-forced: the true answer was in the prompt." in run.notices


@pytest.mark.parametrize(("outside", "announced"), [(16, False), (17, True)])
def test_images_outside_the_domain_are_announced_if_they_are_most(
    evaluated: Path, tmp_path: Path, outside: int, announced: bool
) -> None:
    check = {"checked": 32, "outside": outside, "warning": "this is a photograph"}
    run = changed(
        evaluated, tmp_path / "run", "run.json", "evaluation", "domain", value=check
    )
    assert (run.domain_notice is not None) == announced
    if announced:
        assert run.domain_notice == (
            "17 of 32 checked images are outside the model's domain: this is a photograph."
        )
        assert run.domain_notice in run.notices


def test_a_run_in_which_nothing_was_scored_says_why(
    evaluated: Path, tmp_path: Path
) -> None:
    counts = {
        "samples": 15,
        "scored": 0,
        "failed": 15,
        "missing": 0,
        "excluded": 0,
        "reasons": {"mask size differs from the image": 15},
    }
    keys = ("protocols", "strict", "counts")
    changed(evaluated, tmp_path / "counts", "scores.json", *keys, value=counts)
    predictions = {
        "read": 15,
        "matched": 15,
        "unknown": 0,
        "failed": 15,
        "first_error": "mask size differs from the image",
    }
    run = changed(
        tmp_path / "counts",
        tmp_path / "run",
        "scores.json",
        "predictions",
        value=predictions,
    )
    assert run.failure_notice == (
        "No prediction could be scored: mask size differs from the image."
    )


def test_a_run_under_no_protocol_has_nothing_to_show(
    evaluated: Path, tmp_path: Path
) -> None:
    run = changed(evaluated, tmp_path / "run", "scores.json", "protocols", value={})
    assert list(run) == []
    with pytest.raises(mw.StoreError, match="scored under no protocol"):
        run.main_protocol()


def test_undefined_metrics_are_none_and_shown_as_a_dash(
    evaluated: Path, tmp_path: Path
) -> None:
    keys = ("protocols", "strict", "metrics", "ciou", "value")
    run = changed(evaluated, tmp_path / "run", "scores.json", *keys, value=None)
    assert run["strict"]["ciou"] is None
    assert "<td>-</td>" in run._repr_html_()
