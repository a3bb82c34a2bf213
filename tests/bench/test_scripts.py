"""Every measurement runs, with small sizes. No figure is checked: timing never decides a test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared import shared

ROOT = Path(__file__).parents[2]


def run_script(*arguments: str, folder: Path) -> str:
    """The output of a script of bench/, run from another folder with one thread."""
    environment = os.environ | {
        "MASKWISE_BENCH": "quick",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": search_path(),
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def search_path() -> str:
    """The repository, before what the tests themselves were given."""
    given = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join([str(ROOT), *given.split(os.pathsep)])


def test_every_section_of_make_bench_runs(tmp_path: Path) -> None:
    pytest.importorskip("rlemasklib", reason="the extra `bench` is not installed")
    page = run_script(str(ROOT / "bench/run.py"), "--quick", folder=tmp_path)
    for title in (
        "Intersection and union of pairs of masks",
        "Polygon to run lengths",
        "Dense plane to run lengths",
        "Boundary IoU",
        "stored masks until the kernel can score them",
        "Boolean-matrix Parquet",
        "with intervals and slices",
        "One protocol (lisa)",
        "A streaming metric",
        "in parts of",
        "split over two processes",
        "A first question about an image",
        "What the harness adds",
        "Questions by the grammar",
        "A training step of `vlm`",
        "Starting",
    ):
        assert title in page


def test_figures_of_the_bundled_model(tmp_path: Path) -> None:
    arguments = ["--scenes", "4", "--models", "tiny", "visible-copy", "--out", "runs"]
    table = run_script("-m", "bench.figures", *arguments, folder=tmp_path)
    assert "| tiny |" in table
    assert "| visible-copy |" in table


def test_fine_tuning_in_the_manner_of_r2sm(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    sizes = ["--scenes", "4", "--held-out", "10", "--steps", "1", "--world", "1"]
    table = run_script("-m", "bench.finetuning", *sizes, folder=tmp_path)
    assert "| tiny, fine-tuned |" in table


def test_level_and_power_of_paired_tests(tmp_path: Path) -> None:
    table = run_script("-m", "bench.significance", "--pairs", "4", folder=tmp_path)
    assert "| images of B | before | after | pairs tested |" in table
    assert "sizes vary widely, B better" in table


def test_coverage_of_intervals(tmp_path: Path) -> None:
    table = run_script("-m", "bench.coverage", "--repeats", "8", folder=tmp_path)
    assert "p < 0.05" in table


def test_throughput_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    arguments = ["--scenes", "6", "--rounds", "1", "--workers", "1"]
    arguments += ["--model", "bench.scale:Busy"]
    table = run_script("-m", "bench.scale", *arguments, folder=tmp_path)
    assert "busy" in table or "Busy" in table


def test_figures_of_the_model_for_photographs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = shared("data", "tiny_coco")
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(shared("weights")))
    annotations = next(source.rglob("instances_val*.json"))
    reading = ["-m", "maskwise", "read", "coco", str(annotations), "--out", "coco"]
    run_script(*reading, folder=tmp_path)
    arguments = ["--coco", "coco", "--limit", "1", "--parts", "coco"]
    table = run_script("-m", "bench.photo", *arguments, folder=tmp_path)
    assert "whole image" in table


@pytest.mark.parametrize(
    "name", ["domain", "nano", "photo", "photo_examples", "readability", "scale"]
)
def test_scripts_explain_themselves(name: str, tmp_path: Path) -> None:
    assert "usage" in run_script("-m", f"bench.{name}", "--help", folder=tmp_path)


def test_density_of_one_file(tmp_path: Path) -> None:
    file = ROOT / "src/maskwise/errors.py"
    assert "code lines" in run_script(
        "-m", "bench.readability", str(file), folder=tmp_path
    )


def test_the_language_of_questions_is_compared(tmp_path: Path) -> None:
    script = str(ROOT / "bench/question_language.py")
    table = run_script(script, folder=tmp_path)
    for recipe in ("mmr", "r2sm", "amodal-reason-seg"):
        assert f"| {recipe} on world-test |" in table
