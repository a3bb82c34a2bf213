"""maskwise inside the real tools, in an environment of their own: `make test-integrations` makes it."""

import json
import os
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
    check = "import lmms_eval, mlflow, wandb"
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
