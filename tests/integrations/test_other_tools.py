"""maskwise inside the real tools, in an environment of their own: `make test-integrations` makes it."""

import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

import maskwise as mw

pytestmark = pytest.mark.integrations

ROOT = Path(__file__).parent.parent.parent
PROGRAM = ROOT / ".cache" / "integrations" / "bin" / "python"


def call(
    program: str, *arguments: object, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a module of the environment; it has to end well."""
    done = subprocess.run(
        [program, "-m", *map(str, arguments)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def program() -> str:
    """The Python of the environment."""
    path = os.environ.get("MASKWISE_INTEGRATIONS", str(PROGRAM))
    check = "import lmms_eval, mlflow, trackio, wandb"
    try:
        done = subprocess.run(
            [path, "-c", check], capture_output=True, text=True, check=False
        )
    except OSError as error:
        pytest.skip(f"the environment was not made (make test-integrations): {error}")
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1]
        pytest.skip(f"the environment is not complete: {reason}")
    return path


def test_adapters_are_trained_on_weights_in_4_bits(program: str) -> None:
    tests = ROOT / "tests" / "training" / "vlm" / "test_qlora.py"
    done = call(program, "pytest", "-q", "-p", "no:cacheprovider", tests)
    assert "skipped" not in done.stdout


def test_lmms_eval_gives_the_metrics_of_score(program: str, tmp_path: Path) -> None:
    done = call(program, "maskwise", "lmms-eval", "world", "--out", tmp_path / "tasks")
    output = call(
        program,
        "lmms_eval",
        *("--include_path", done.stdout.strip()),
        *("--tasks", "maskwise_world"),
        *("--model", "dummy", "--model_args", 'response={"masks": []}'),
        *("--output_path", tmp_path / "out"),
        HF_HOME=str(tmp_path / "hf"),
        HF_HUB_OFFLINE="1",
    ).stdout
    assert "strict_giou" in output
    (path,) = (tmp_path / "out").rglob("*results.json")
    results = json.loads(path.read_text())["results"]["maskwise_world"]
    data = mw.load_dataset("world")
    nothing = [mw.Prediction(sample=sample.id, no_target=True) for sample in data]
    expected = mw.score(nothing, data, protocols="strict")["strict"]
    assert results["strict_giou,none"] == expected["giou"]
    assert results["strict_ciou,none"] == expected["ciou"]
    assert expected["giou"] > 0.1, "questions without a target are answered correctly"


READ_MLFLOW = """
import sys
from mlflow import MlflowClient
client = MlflowClient(sys.argv[1])
experiment = client.get_experiment_by_name("maskwise")
for run in client.search_runs([experiment.experiment_id]):
    print(run.info.run_name, run.info.status, run.data.params["dataset.name"], run.data.metrics["strict/giou"])
"""


@pytest.fixture(scope="module")
def tracked(program: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an evaluation that is tracked by all, offline, and was repeated."""
    folder = tmp_path_factory.mktemp("tracked")
    names = ("tensorboard", "wandb", "mlflow", "trackio")
    options = [text for name in names for text in ("--track", name)]
    for _ in range(2):
        call(
            program,
            *("maskwise", "eval", "world", "--model", "oracle", "--limit", "4"),
            *("--protocol", "strict", "--out", folder / "run", *options),
            WANDB_MODE="offline",
            TRACKIO_DIR=str(folder / "trackio"),
            HF_HUB_OFFLINE="1",
        )
    return folder


def test_mlflow_has_the_metrics(program: str, tracked: Path) -> None:
    done = subprocess.run(
        [program, "-c", READ_MLFLOW, (tracked / "run" / "mlruns").as_uri()],
        env=os.environ | {"MLFLOW_ALLOW_FILE_STORE": "true"},
        capture_output=True,
        text=True,
        check=True,
    )
    giou = float(mw.load_run(tracked / "run")["strict"]["giou"])
    assert done.stdout.split() == ["run/eval", "FINISHED", "world-test", str(giou)]


def test_wandb_has_the_metrics(tracked: Path) -> None:
    files = sorted((tracked / "run" / "wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 2, "a repeated evaluation is written again"
    assert len({path.name for path in files}) == 1, "under the same id"
    # Names and values are text in the log of Weights & Biases, which has no public reader.
    content = files[0].read_bytes()
    giou = float(mw.load_run(tracked / "run")["strict"]["giou"])
    assert b"strict/giou" in content
    assert str(giou).encode() in content
    assert b"world-test" in content, "the config"


def test_trackio_has_the_metrics(tracked: Path) -> None:
    (path,) = (tracked / "trackio").glob("maskwise*.db")
    with sqlite3.connect(path) as database:
        rows = database.execute(
            "SELECT run_name, step, metrics FROM metrics"
        ).fetchall()
    database.close()
    giou = float(mw.load_run(tracked / "run")["strict"]["giou"])
    assert {(name, step) for name, step, _ in rows} == {("run-eval", 1)}
    assert json.loads(rows[0][2])["strict/giou"] == giou


def test_training_is_tracked_offline(program: str, tmp_path: Path) -> None:
    """The norm of the gradients and the learning rate reach the tracker with the losses."""
    code = (
        "from pathlib import Path\n"
        "from maskwise.training.loop import run_training\n"
        "from maskwise.training.trackers import tracking\n"
        "from tests.training.line_run import STAGE, line_task\n"
        "with tracking(['wandb']):\n"
        f"    run_training(line_task(), STAGE.schedule(), Path({str(tmp_path)!r}))\n"
    )
    done = subprocess.run(
        [program, "-c", code],
        env=os.environ | {"WANDB_MODE": "offline"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    content = file.read_bytes()
    for name in ("loss", "learning_rate", "gradient_norm", "seconds_per_step"):
        assert name.encode() in content
