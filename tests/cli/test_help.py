"""The list of commands and the help of each: grouped, short, and shown at once."""

import re
import subprocess
import sys

import pytest

import maskwise
from docs.generate.commands import all_commands
from maskwise.cli.commands import SUMMARIES, list_commands
from maskwise.cli.world import QUESTIONS, SIZE
from maskwise.world import QUESTIONS as WORLD_QUESTIONS
from maskwise.world import SIZE as WORLD_SIZE
from tests.cli.commands import run

HEAVY = ("numpy", "pyarrow", "PIL", "scipy", "onnxruntime", "jinja2", "torch", "ray")
"""What makes a program start slowly."""


def loaded_modules(*arguments: str) -> set[str]:
    """The modules that a program with these arguments has loaded when it ends."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from maskwise.__main__ import main\n"
        f"sys.argv = ['maskwise', *{list(arguments)!r}]\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_the_help_has_the_groups_in_order_and_every_command_in_its_group() -> None:
    lines = run("--help").stdout.splitlines()
    groups: dict[str, list[str]] = {}
    group = ""
    for line in lines:
        heading = re.match(r"╭─ (.*?) ─", line)
        if heading:
            group = heading[1]
            groups[group] = []
        row = re.match(r"│ ([a-z-]+) ", line)
        if row:
            groups[group].append(row[1])
    del groups["Options"]
    assert list(groups) == [
        "Evaluate",
        "Data",
        "Build and review",
        "Train",
        "Ask and serve",
        "Other tools",
    ]
    assert groups == {name: list(commands) for name, commands in SUMMARIES.items()}
    assert groups["Evaluate"][:2] == ["eval", "score"]


def test_no_command_is_listed_twice() -> None:
    names = [command.name for command in list_commands()]
    assert len(names) == len(set(names))


def test_maskwise_alone_prints_the_help() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "maskwise"], capture_output=True, text=True, check=False
    )
    assert "Evaluate a model on a dataset" in done.stdout + done.stderr


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_both_help_flags_work_in_a_command(flag: str) -> None:
    assert "Example: maskwise validate" in run("validate", flag).stdout


@pytest.mark.parametrize("name", list(all_commands()))
def test_flags_show_no_type(name: str) -> None:
    help = run(*name.split(), "--help").stdout
    assert "<bool>" not in help
    assert "--help" in help


def test_the_list_of_commands_shows_no_types_behind_flags() -> None:
    assert "<bool>" not in run("--help").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("--help",),
        ("ls",),
        ("eval", "--help"),
        ("score", "--help"),
        ("build", "--help"),
        ("build", "mmr", "--help"),
        ("review", "start", "--help"),
        ("train", "--help"),
        ("show", "--help"),
    ],
    ids=" ".join,
)
def test_answers_load_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert not set(HEAVY) & loaded_modules(*arguments)


def test_the_version_is_answered_without_rich_and_without_commands() -> None:
    modules = loaded_modules("--version")
    assert "rich" not in modules
    assert "maskwise.cli.evaluate" not in modules
    assert run("--version").stdout == f"maskwise {maskwise.__version__}\n"


def test_a_command_loads_only_its_own_module() -> None:
    modules = loaded_modules("validate", "--help")
    assert "maskwise.cli.datasets" in modules
    assert "maskwise.cli.build" not in modules


def test_defaults_that_the_help_shows_are_those_of_the_world() -> None:
    assert (SIZE, QUESTIONS) == (WORLD_SIZE, WORLD_QUESTIONS)


def test_build_lists_recipes() -> None:
    help = run("build", "--help").stdout
    for recipe in ("amodal-reason-seg", "r2sm", "mmr", "occlude"):
        assert recipe in help
    assert "RECIPE DATASET" in help
