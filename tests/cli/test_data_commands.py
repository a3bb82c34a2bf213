"""`maskwise world`, `write`, `get`, `info`, `ls` and `card`: what is printed, as text and as JSON."""

import json
from pathlib import Path

import pytest

from maskwise.registry import REGISTRIES
from tests.cli.commands import fail, run


def test_world_counts_what_it_wrote(tmp_path: Path) -> None:
    arguments = ("world", "--scenes", 2, "--questions", 3, "--size", 64)
    said = run(*arguments, "--out", tmp_path / "text").stdout
    assert said.startswith(f"{tmp_path / 'text'}: ")
    assert "2 images" in said
    content = json.loads(run(*arguments, "--out", tmp_path / "json", "--json").stdout)
    assert content["dataset"] == str(tmp_path / "json")
    assert content["counts"]["images"] == 2


def test_world_refuses_to_replace_a_dataset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("world", "--scenes", 1, "--size", 64, "--out", tmp_path / "data")
    run(*arguments)
    assert "--overwrite" in fail(capsys, monkeypatch, *arguments)
    run(*arguments, "--overwrite")


def test_the_same_seed_gives_the_same_scenes(tmp_path: Path) -> None:
    arguments = ("world", "--scenes", 1, "--size", 64, "--seed", 5)
    run(*arguments, "--out", tmp_path / "a")
    run(*arguments, "--out", tmp_path / "b")
    result = run("diff", tmp_path / "a", tmp_path / "b")
    assert "are equal" in " ".join(result.stdout.split())


@pytest.mark.parametrize("format", ["coco", "png", "labelstudio"])
def test_write_counts_images_and_questions(
    format: str, scenes: Path, tmp_path: Path
) -> None:
    result = run("write", format, scenes, "--out", tmp_path / "out")
    assert f"({format}): 3 images, 18 questions" in result.stdout
    assert any((tmp_path / "out").rglob("*"))


def test_write_leaves_images_out_on_request(scenes: Path, tmp_path: Path) -> None:
    run("write", "coco", scenes, "--out", tmp_path / "out", "--no-images")
    written = {path.suffix for path in (tmp_path / "out").rglob("*.*")}
    assert ".png" not in written
    assert ".json" in written


def test_get_without_a_name_lists_downloads_and_where_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(tmp_path / "w"))
    monkeypatch.setenv("MASKWISE_DATA", str(tmp_path / "d"))
    said = run("get").stdout
    assert "yolox_nano.onnx" in said
    assert f"weights are kept in {tmp_path / 'w'}" in said
    assert f"data is kept in {tmp_path / 'd'}" in said


def test_get_as_json_lists_the_same_names_as_ls() -> None:
    downloads = json.loads(run("get", "--json").stdout)
    listed = json.loads(run("ls", "downloads", "--json").stdout)["downloads"]
    assert [download["name"] for download in downloads] == list(listed)
    assert all(download["license"] for download in downloads)


def test_ls_has_a_line_for_everything_in_the_registries() -> None:
    listed = json.loads(run("ls", "--json").stdout)
    for kind, registry in REGISTRIES.items():
        assert list(listed[kind]) == registry.names()
        assert all(listed[kind].values()), kind


def test_ls_of_one_kind_prints_it_alone() -> None:
    said = run("ls", "protocols").stdout
    assert said.startswith("protocols\n")
    assert "strict" in said
    assert "models\n" not in said


def test_info_says_what_is_installed() -> None:
    facts = json.loads(run("info", "--json").stdout)
    said = run("info").stdout
    assert facts["version"] in said
    assert facts["bundled"] == {"models": ["tiny"], "datasets": ["world"]}
    assert facts["threads"] >= 1
    for extra in facts["extras"]:
        assert f"extra {extra}" in said


def test_card_prints_layout_sizes_and_options() -> None:
    said = run("card", "mmr").stdout
    for section in ("layout on disk", "published sizes", "official protocol"):
        assert section in said
    assert "mmr" in said


def test_card_of_a_format_has_no_card_of_a_benchmark() -> None:
    content = json.loads(run("card", "coco", "--json").stdout)
    assert content["name"] == "coco"
    assert "protocol" not in content
    assert "official protocol" not in run("card", "coco").stdout


def test_adapters_say_how_they_are_called() -> None:
    adapters = json.loads(run("adapters", "--json").stdout)
    said = run("adapters").stdout
    for name, fields in adapters.items():
        assert name in said
        assert {"license", "call"} <= set(fields)
