"""`maskwise read`, `card` and `ls` as a user meets them."""

import json
from pathlib import Path

import pytest

from maskwise.store import Dataset
from tests.cli.commands import fail, run
from tests.formats import layouts


def test_read_writes_a_dataset_and_says_what_it_kept(tmp_path: Path) -> None:
    path = layouts.mmr(tmp_path / "in")
    records = json.loads(path.read_text())
    layouts.write_json(path, [*records, "nonsense"])
    words = " ".join(
        run("read", "mmr", tmp_path / "in", "--out", tmp_path / "out").output.split()
    )
    assert "1 images, 2 regions, 2 questions, 3 targets" in words
    assert "1 fields of another type" in words
    assert "published: 8,194 questions (found 2;" in words
    assert len(Dataset.open(tmp_path / "out")) == 2


def test_read_prints_json(tmp_path: Path) -> None:
    layouts.coco(tmp_path / "in")
    result = run(
        "read", "coco", tmp_path / "in", "--out", tmp_path / "out", "--json", "--embed"
    )
    assert json.loads(result.stdout)["kept"] == {
        "images": 2,
        "regions": 2,
        "questions": 0,
        "targets": 0,
    }


def test_read_says_what_is_missing_in_one_breath(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = fail(
        capsys, monkeypatch, "read", "mmr", tmp_path, "--out", tmp_path / "out"
    )
    assert "maskwise: " in error
    assert "MMR_{split}.json" in error
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()
    error = fail(
        capsys, monkeypatch, "read", "mmmr", tmp_path, "--out", tmp_path / "out"
    )
    assert "unknown benchmark or format 'mmmr'; known: ade20k" in error


def test_strict_stops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts.write_json(layouts.mmr(tmp_path / "in"), ["nonsense"])
    error = fail(
        capsys,
        monkeypatch,
        "read",
        "mmr",
        tmp_path / "in",
        "--out",
        tmp_path / "out",
        "--strict",
    )
    assert "MMR_val.json, [0]: fields of another type" in error


def test_card_prints_labels_of_risks() -> None:
    words = " ".join(run("card", "r2sm").output.split())
    assert "Evasion attack (robustness)" in words
    assert "Evasion attack (`atlas-evasion-attack`): not tested." in words
    assert "layout on disk" in words
    assert "corrections" in words


def test_card_as_json_keeps_ids() -> None:
    card = json.loads(run("card", "r2sm", "--json").stdout)
    assert card["card"]["targeted_risks"]["atlas_risks"][0] == "atlas-output-bias"
    assert card["protocol"] == "r2sm"
    assert "card" not in json.loads(run("card", "cocoa", "--json").stdout)


def test_card_of_every_name() -> None:
    listed = json.loads(run("ls", "--json").stdout)
    for name in [*listed["benchmarks"], *listed["formats"]]:
        assert run("card", name).output


def test_ls_lists_all_or_one_kind() -> None:
    listed = json.loads(run("ls", "--json").stdout)
    kinds = "benchmarks formats protocols models recipes filters judges probes trainers trackers writers"
    assert list(listed) == [*kinds.split(), "downloads"]
    assert {"mmr", "r2sm", "amodalreasonseg"} <= set(listed["benchmarks"])
    assert {"cocoa", "ade20k"} <= set(listed["formats"])
    assert {"strict", "lisa"} <= set(listed["protocols"])
    only = run("ls", "formats").output
    assert "cocoa_cls" in only
    assert "benchmarks" not in only


def test_options_of_a_reader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts.reasonseg(tmp_path / "in")
    arguments = (
        "read",
        "reasonseg",
        tmp_path / "in",
        "--split",
        "val",
        "--out",
        tmp_path / "out",
    )
    run(*arguments, "--option", "drawing=4.8")
    assert "4.8, 4.11; default 4.11" in " ".join(
        run("card", "reasonseg").output.split()
    )
    error = fail(capsys, monkeypatch, *arguments, "--option", "draw=4.8")
    assert "reasonseg has no option 'draw'; known options: drawing" in error
    error = fail(capsys, monkeypatch, *arguments, "--option", "drawing=5")
    assert "known values: 4.8, 4.11" in error
    error = fail(capsys, monkeypatch, *arguments, "--option", "drawing")
    assert "'drawing' is not NAME=VALUE" in error


def test_questions_without_target_are_counted(tmp_path: Path) -> None:
    layouts.reasonseg(tmp_path / "in")
    for path in (tmp_path / "in").rglob("*.json"):
        content = json.loads(path.read_text())
        if isinstance(content, dict):
            layouts.write_json(path, content | {"shapes": []})
    output = run(
        "read",
        "reasonseg",
        tmp_path / "in",
        "--split",
        "val",
        "--out",
        tmp_path / "out",
    ).output
    assert "1 of 1 questions have no target" in output


def test_write_writes_a_folder_that_is_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        "48 images, 240 questions"
        in run("write", "coco", "world", "--out", tmp_path / "out").output
    )
    words = run("read", "coco", tmp_path / "out", "--out", tmp_path / "again").output
    assert "48 images, 1,157 regions, 240 questions" in words
    error = fail(
        capsys, monkeypatch, "write", "cocoa", "world", "--out", tmp_path / "other"
    )
    assert (
        "unknown format to write 'cocoa'; known: coco, fiftyone, gcg_json, huggingface, labelstudio"
        in error
    )
