"""`maskwise probe`, and cards and releases that carry its results."""

import json
from pathlib import Path

import pytest
import yaml

from tests.builder.release.made import make_card
from tests.cli.commands import fail, run


@pytest.fixture(scope="module")
def probed(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("probed") / "probes"
    names = ("--probe", "poor-model-accuracy", "--probe", "demographic")
    run("probe", scenes, "--model", "oracle", *names, "--out", folder)
    return folder


def test_findings_are_printed_and_written(scenes: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    option = "poor-model-accuracy.require=giou=0.9"
    said = run(
        "probe",
        scenes,
        "--model",
        "oracle",
        "--probe",
        "poor-model-accuracy",
        "--option",
        option,
        "--out",
        folder,
    ).stdout
    assert "Poor model accuracy" in said
    assert "no finding" in said
    assert {"probes.json", "probes.html", "base"} <= {
        path.name for path in folder.iterdir()
    }


def test_json_is_the_file(scenes: Path, tmp_path: Path) -> None:
    arguments = ("--probe", "data-bias", "--quick", "--json", "--out", tmp_path / "out")
    said = run("probe", scenes, *arguments).stdout
    assert json.loads(said) == json.loads((tmp_path / "out/probes.json").read_text())


def test_the_list_tells_what_probes_cannot_see() -> None:
    said = run("probe", "ls").stdout
    assert max(map(len, said.splitlines())) <= 80
    listed = json.loads(run("probe", "ls", "--json").stdout)
    assert listed["output-bias"]["risks"] == ["atlas-output-bias"]
    words = " ".join(said.split())
    for name, probe in listed.items():
        assert name in words
        assert f"cannot see: {probe['blind_spots']}" in words


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--probe", "output-bais"), "output-bias"),
        (("--probe", "output-bias"), "need a model"),
        (("--probe", "data-bias", "--option", "others"), "PROBE.NAME=VALUE"),
        (("--probe", "data-bias", "--option", "data-bias.other=x"), "others"),
        (("--probe", "data-bias", "--option", "output-bias.x=1"), "data-bias"),
    ],
)
def test_mistakes_are_explained(
    scenes: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    assert said in fail(capsys, monkeypatch, "probe", scenes, *arguments)


def test_a_card_is_tested_only_by_a_run(scenes: Path, probed: Path) -> None:
    before = json.loads(run("card", scenes, "--json").stdout)
    assert before["risk_tests"] == []
    after = json.loads(run("card", scenes, "--probes", probed, "--json").stdout)
    by_probe = {test["probe"]: test for test in after["risk_tests"]}
    assert by_probe["poor-model-accuracy"]["severity"] in ("none", "unmeasured")
    assert by_probe["demographic"]["severity"] == "unmeasured"
    assert by_probe["demographic"]["command"].startswith("maskwise")
    said = " ".join(run("card", scenes, "--probes", probed).stdout.split())
    assert (
        "not measured. Not measured: nothing in the dataset says who is shown" in said
    )


def test_a_card_does_not_borrow_the_tests_of_another_dataset(
    probed: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("r2sm", "world"):
        said = fail(capsys, monkeypatch, "card", name, "--probes", probed)
        assert "probed" in said


def test_named_risks_without_a_run_are_not_tested() -> None:
    said = " ".join(run("card", "r2sm").stdout.split())
    assert "Output bias (`atlas-output-bias`): not tested." in said
    assert "--probe output-bias" in said
    said = " ".join(run("card", "amodalreasonseg").stdout.split())
    assert "risk categories accuracy, fairness, safety" in said
    assert "Safety (`safety`): not tested." in said
    assert "Safety is named by the published card" in said


def test_a_release_carries_what_probes_found(
    scenes: Path, probed: Path, tmp_path: Path
) -> None:
    card = make_card()
    card["targeted_risks"]["atlas_risks"] = [
        "atlas-poor-model-accuracy",
        "atlas-output-bias",
    ]
    path = tmp_path / "card.yaml"
    path.write_text(yaml.safe_dump(card), encoding="utf-8")
    out = tmp_path / "release"
    options = ("--version", "1.0.0", "--card", path, "--out", out)
    run("release", scenes, *options, "--probes", probed)
    tests = yaml.safe_load((out / "card.yaml").read_text())["targeted_risks"]["tests"]
    assert [test["probe"] for test in tests] == ["poor-model-accuracy", "demographic"]
    text = (out / "BENCHMARK_CARD.md").read_text(encoding="utf-8")
    assert "probe `demographic`: not measured" in text
    assert "Output bias (`atlas-output-bias`): not tested" in text
