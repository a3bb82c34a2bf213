"""The workflow of GitHub runs what CONTRIBUTING.md says, on files that exist."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return content["jobs"]


def commands(job: dict[str, Any]) -> list[str]:
    """What the steps of a job run, once per value of `target`."""
    targets = job.get("strategy", {}).get("matrix", {}).get("target", [""])
    runs = [step["run"] for step in job["steps"] if "run" in step]
    return [
        run.replace("${{ matrix.target }}", target)
        for run in runs
        for target in targets
    ]


def test_it_runs_the_same_targets_as_the_script_of_continuous_integration(
    jobs: dict[str, Any],
) -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    expected = set(re.findall(r"^(?:exec )?(make [a-z-]+)", script, re.M))
    run = {command for job in jobs.values() for command in commands(job)}
    assert expected <= run


def test_contributing_names_the_targets_it_runs(jobs: dict[str, Any]) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for job in jobs.values():
        for command in commands(job):
            if command.startswith("make "):
                assert command in text, command


def test_every_pinned_version_is_audited(jobs: dict[str, Any]) -> None:
    """`pip_audit --disable-pip` takes exact versions only."""
    (audit,) = (run for run in commands(jobs["audit"]) if "pip_audit" in run)
    requirements = ROOT / audit.split("--requirement ")[1]
    lines = requirements.read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line.strip() and not line.startswith("#")]
    assert pins
    assert all(re.match(r"[\w.\[\]-]+==[^=]+$", pin) for pin in pins)


def test_the_core_is_tested_on_other_systems(jobs: dict[str, Any]) -> None:
    systems = {
        variant["os"] for variant in jobs["core"]["strategy"]["matrix"]["include"]
    }
    assert systems == {"macos-latest", "windows-latest"}
    (suite,) = (
        command
        for command in commands(jobs["core"])
        if "pytest " in command and "-m pytest" in command
    )
    missing = [
        path for path in re.findall(r"\btests/\S+", suite) if not (ROOT / path).exists()
    ]
    assert not missing


def test_every_job_can_run(jobs: dict[str, Any]) -> None:
    for name, job in jobs.items():
        assert job["runs-on"], name
        needed = job.get("needs", [])
        assert set([needed] if isinstance(needed, str) else needed) <= set(jobs), name
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), (name, step)
