"""docs/guides/probes.md: its commands work, its names exist, and the costs it promises hold."""

import re
import shlex
from pathlib import Path

import pytest

from bench.probe_faults import write_squares
from maskwise.registry import PROBES
from maskwise.runs.probe_results import ProbesFile, read_probes
from tests.cli.commands import run

DOCUMENT = Path(__file__).parents[2] / "docs" / "guides" / "probes.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
CONSOLE_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)

MAX_COST = {"quick": 3, "full": 30}
"""What all probes together may cost, as multiples of one evaluation."""


def run_document(folder: Path, *options: str) -> ProbesFile:
    """The results of the commands; options: further ones of `maskwise probe`."""
    write_squares(folder / "photos", images=3)
    (folder / "ours.txt").write_text("violence: Segment the weapon.\n")
    for command in "".join(CONSOLE_BLOCK.findall(TEXT)).splitlines():
        program, *arguments = shlex.split(command)
        assert program == "maskwise"
        names_probe = "--probe" in arguments
        limit = ("--limit", "2") if names_probe else options
        run(*arguments, *(limit if arguments[0] == "probe" else ()))
    return read_probes(folder / "probes" / "tiny")


def test_the_commands_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = run_document(tmp_path, "--limit", "3", "--probe", "data-bias")
    assert [result.name for result in results.results] == ["data-bias"]


@pytest.mark.full
def test_all_probes_run_and_cost_what_they_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = run_document(tmp_path)
    assert [result.name for result in quick.results] == list(PROBES.built_in)
    assert not any("probe failed" in result.finding for result in quick.results)
    assert quick.cost <= MAX_COST["quick"]
    run("probe", "world", "--model", "tiny", "--out", tmp_path / "full")
    assert read_probes(tmp_path / "full").cost <= MAX_COST["full"]


def test_every_probe_is_described() -> None:
    for name in PROBES.built_in:
        assert f"`{name}`" in TEXT
