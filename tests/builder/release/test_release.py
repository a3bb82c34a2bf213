"""A release: the same bytes every time, loaded by `datasets` and mlcroissant, read and evaluated like any dataset."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from msgspec.structs import replace
from PIL import Image
from pycocotools import mask as coco_mask

import maskwise as mw
from maskwise.builder.release.measured import count_visible_outside
from maskwise.builder.release.release import SplitOptions, plan_release, write_release
from maskwise.datasets import find_dataset
from maskwise.errors import MaskwiseError, ReleaseError, StoreError, UnknownNameError
from maskwise.formats import convert_annotations, find_format
from maskwise.formats.release_folder import read_release
from maskwise.schema import Region
from maskwise.store import Dataset, DatasetWriter
from tests.builder.release.made import (
    SIZE,
    encode,
    make_card,
    make_dataset,
    rectangle,
)
from tests.cli.commands import fail, run

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:ConjunctiveGraph is deprecated:DeprecationWarning"
    ),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
]
"""Warnings of libraries that mlcroissant uses."""


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MASKWISE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "data"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return make_dataset(tmp_path / "cups", about={"source": "a program"})


@pytest.fixture
def release(dataset: Dataset, tmp_path: Path) -> Path:
    return make_release(dataset, tmp_path / "cups-1.0.0")


def make_release(
    dataset: Dataset,
    out: Path,
    *,
    version: str = "1.0.0",
    with_images: bool = True,
    **options: Any,
) -> Path:
    plan = plan_release(dataset, SplitOptions(), with_images=with_images)
    write_release(plan, out, make_card(), version=version, **options)
    return out


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_same_dataset_gives_the_same_bytes(
    dataset: Dataset, release: Path, tmp_path: Path
) -> None:
    again = make_release(dataset, tmp_path / "again")
    assert files(again) == files(release)


def test_checksums_cover_every_other_file(release: Path) -> None:
    listed = {
        line.split("  ")[1]
        for line in (release / "SHA256SUMS").read_text().splitlines()
    }
    assert listed == set(files(release)) - {"SHA256SUMS"}
    if shutil.which("sha256sum"):
        subprocess.run(
            ["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=release, check=True
        )


def test_an_existing_folder_is_not_replaced(dataset: Dataset, release: Path) -> None:
    with pytest.raises(StoreError, match="exists already"):
        make_release(dataset, release)


def test_blank_fields_leave_nothing_behind(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"benchmark_details\.name"):
        write_release(plan_release(dataset), tmp_path / "out", {}, version="1.0.0")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("version", ["", "one", "../1", "1 0"])
def test_invalid_versions_are_refused(
    dataset: Dataset, tmp_path: Path, version: str
) -> None:
    with pytest.raises(ReleaseError, match=r"a version looks like 1\.0\.0"):
        make_release(dataset, tmp_path / "out", version=version)


def test_a_dataset_without_questions_is_refused(dataset: Dataset) -> None:
    with pytest.raises(ReleaseError, match="no questions"):
        plan_release(dataset[:0])


# -- other programs


def test_datasets_loads_images_masks_and_questions(
    dataset: Dataset,
    release: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    datasets = pytest.importorskip("datasets")
    loaded = datasets.load_dataset(str(release), cache_dir=str(tmp_path / "cache"))
    warnings = [
        record.message for record in caplog.records if record.levelname == "WARNING"
    ]
    assert warnings == [], "`datasets` understands the whole card"
    assert {name: len(split) for name, split in loaded.items()} == {
        name: split.images for name, split in read_release(release).splits.items()
    }
    header = yaml.safe_load((release / "README.md").read_text().split("---\n")[1])
    assert (
        datasets.Features._from_yaml_list(header["dataset_info"]["features"])
        == loaded["train"].features
    )
    for row in loaded["train"]:
        assert row["image"].size == (SIZE[1], SIZE[0])
        image = dataset.image(row["id"])
        assert (row["license"], row["attribution"]) == (
            image.license,
            image.attribution,
        )
        cup = dataset.regions_of(row["id"])[0]
        assert cup.amodal is not None
        assert (
            coco_mask.decode(row["regions"][0]["amodal"]) == cup.amodal.to_dense()
        ).all()
        assert row["regions"][1]["amodal"] is None
        sample = dataset.sample(row["samples"][0]["id"])
        assert row["samples"][0]["question"] == sample.question
        assert row["samples"][0]["targets"] == ["cup"]


def test_mlcroissant_validates_and_reads_records(
    dataset: Dataset, release: Path, tmp_path: Path
) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    loaded = mlcroissant.Dataset(str(release / "croissant.json"))
    assert not loaded.metadata.ctx.issues.errors
    assert loaded.metadata.version == "1.0.0"
    splits = read_release(release).splits
    assert [record_set.id for record_set in loaded.metadata.record_sets] == list(splits)
    records = list(loaded.records("test"))
    assert len(records) == splits["test"].images
    for record in records:
        id = record["test/id"].decode()
        assert isinstance(record["test/image"], Image.Image)
        assert (
            np.asarray(record["test/image"]) == np.asarray(dataset.open_image(id))
        ).all()
        cup, handle = record["test/regions"]
        visible = dataset.regions_of(id)[0].visible
        assert visible is not None
        assert cup["test/regions/visible_counts"].decode() == visible.counts
        assert handle["test/regions/part_of"] == b"cup"
        (sample,) = record["test/samples"]
        assert (
            sample["test/samples/question"].decode()
            == f"the cup {id.removeprefix('image')}"
        )


def test_complete_croissant_metadata_has_no_warnings(
    dataset: Dataset, tmp_path: Path
) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    card = make_card(
        citation="Cups, 2026",
        homepage="https://example.org",
        date_published="2026-01-02",
    )
    write_release(plan_release(dataset), tmp_path / "out", card, version="1.0.0")
    loaded = mlcroissant.Dataset(str(tmp_path / "out" / "croissant.json"))
    assert not loaded.metadata.ctx.issues.warnings


# -- read again


def test_a_release_reads_back_without_loss(
    dataset: Dataset, release: Path, tmp_path: Path
) -> None:
    convert_annotations(
        find_format("release"), release, tmp_path / "again", strict=True
    )
    again = mw.load_dataset(tmp_path / "again")
    assert again.name == "Cups 1.0.0"
    assert set(again.images.id) == set(dataset.images.id)
    for id in dataset.images.id:
        assert again.regions_of(id) == dataset.regions_of(id)
        assert again.image(id) == dataset.image(id)
        assert again.open_image(id).tobytes() == dataset.open_image(id).tobytes()
    for sample in dataset:
        found = again.sample(sample.id)
        assert found.tags.pop("split") in read_release(release).splits
        assert found == sample


def test_commands_take_a_release_like_a_dataset(release: Path, tmp_path: Path) -> None:
    assert "valid, 0 errors" in run("validate", release).output
    run(
        "eval",
        release / "test",
        "--model",
        "oracle",
        "--out",
        tmp_path / "run",
        "--protocol",
        "strict",
    )
    assert float(mw.load_run(tmp_path / "run")["strict"]["giou"]) == 1.0
    test = mw.load_dataset(release / "test")
    assert {sample.tags["split"] for sample in test} == {"test"}
    assert len(test) == read_release(release).splits["test"].questions


def test_a_release_is_converted_once(release: Path, data_folder: Path) -> None:
    first = find_dataset(release)
    before = (first / "manifest.json").stat().st_mtime_ns
    assert find_dataset(release) == first
    assert (first / "manifest.json").stat().st_mtime_ns == before
    assert first.is_relative_to(data_folder)


def test_unknown_splits_are_named(release: Path) -> None:
    with pytest.raises(UnknownNameError, match="known: test, train, val"):
        find_dataset(release / "tests")


def test_a_changed_data_file_is_refused(release: Path) -> None:
    path = next((release / "data").glob("test-*"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(StoreError, match="changed after it was written"):
        find_dataset(release)


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 9},
        {"files": {}},
        {"files": {"data/../../x": {"bytes": 1, "sha256": ""}}},
    ],
)
def test_damaged_manifests_are_refused(release: Path, change: dict[str, Any]) -> None:
    path = release / "release.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(MaskwiseError):
        find_dataset(release)


def test_images_may_be_referenced(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for number in range(30):
        (tmp_path / "photos" / f"{number}.png").write_bytes(encode(number))
    dataset = make_dataset(
        tmp_path / "cups", embed=False, image_root=tmp_path / "photos"
    )
    release = make_release(dataset, tmp_path / "out", with_images=False)
    assert read_release(release).images == "referenced"
    embedded = make_release(dataset, tmp_path / "embedded")
    assert read_release(release).splits == read_release(embedded).splits
    again = mw.load_dataset(release, images=tmp_path / "photos")
    assert (
        again.open_image("image3").tobytes() == dataset.open_image("image3").tobytes()
    )
    assert (again.image("image3").license, again.image("image3").path) == (
        "CC BY 4.0",
        "3.png",
    )
    run("validate", release, "--images", tmp_path / "photos")


def test_referenced_images_in_datasets_and_croissant(
    dataset: Dataset, tmp_path: Path
) -> None:
    datasets = pytest.importorskip("datasets")
    mlcroissant = pytest.importorskip("mlcroissant")
    release = make_release(dataset, tmp_path / "out", with_images=False)
    loaded = datasets.load_dataset(str(release), cache_dir=str(tmp_path / "cache"))
    assert loaded["train"][0]["image"] is None
    records = mlcroissant.Dataset(str(release / "croissant.json")).records("test")
    assert "test/image" not in next(iter(records))


def test_large_splits_are_several_files(dataset: Dataset, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    mlcroissant = pytest.importorskip("mlcroissant")
    release = make_release(dataset, tmp_path / "out", shard_bytes=5 * len(encode(0)))
    splits = read_release(release).splits
    shards = sorted((release / "data").glob("train-*"))
    assert len(shards) == -(-splits["train"].images // 5)
    assert shards[0].name == f"train-00000-of-{len(shards):05d}.parquet"
    loaded = datasets.load_dataset(str(release), cache_dir=str(tmp_path / "cache"))
    assert len(loaded["train"]) == splits["train"].images
    records = list(
        mlcroissant.Dataset(str(release / "croissant.json")).records("train")
    )
    assert len(records) == splits["train"].images
    assert len(mw.load_dataset(release)) == len(dataset)


# -- the command


@pytest.fixture
def card_file(tmp_path: Path) -> Path:
    path = tmp_path / "card.yaml"
    path.write_text(yaml.safe_dump(make_card()))
    return path


def test_the_command_releases(
    dataset: Dataset, card_file: Path, tmp_path: Path
) -> None:
    arguments = (
        "release",
        dataset.path,
        "--version",
        "1.0.0",
        "--card",
        card_file,
        "--out",
        tmp_path / "out",
    )
    output = run(*arguments, "--json").output
    assert json.loads(output)["manifest"]["counts"]["images"] == 30
    assert read_release(tmp_path / "out").split_rule.endswith(
        "(train 0.8, val 0.1, test 0.1; seed 0)"
    )


def test_licenses_that_restrict_use_are_a_warning(
    card_file: Path, tmp_path: Path
) -> None:
    made = make_dataset(tmp_path / "made", 20)
    with DatasetWriter(tmp_path / "photos", name="photos") as writer:
        for row, sample in enumerate(made):
            license = (
                "CC BY 4.0; Attribution-NonCommercial License"
                if row < 3
                else "Attribution License"
            )
            info = replace(made.image(row), license=license)
            writer.add_image(info, made.regions_of(row), encode(row))
            writer.add_sample(sample)
    arguments = (
        "release",
        tmp_path / "photos",
        "--version",
        "1.0.0",
        "--card",
        card_file,
        "--out",
    )
    assert "3 of 20 images" in run(*arguments, tmp_path / "embedded").stderr
    assert (
        "warning" not in run(*arguments, tmp_path / "referenced", "--no-images").stderr
    )
    statistics = (tmp_path / "embedded" / "card.yaml").read_text()
    expected = "CC BY 4.0 (3), Attribution-NonCommercial License (3), Attribution License (17); an image made"
    assert expected in " ".join(statistics.split())


@pytest.mark.parametrize(
    ("terms", "warned"),
    [
        ("research terms of MIT CSAIL", True),
        ("CC BY-NC 4.0", True),
        ("CC BY 4.0 (the cup group)", False),
    ],
)
def test_other_terms_of_the_source_are_a_warning(
    terms: str, warned: bool, card_file: Path, tmp_path: Path
) -> None:
    made = make_dataset(tmp_path / "made", 20, about={"license": terms})
    arguments = (
        "release",
        made.path,
        "--version",
        "1.0.0",
        "--card",
        card_file,
        "--out",
    )
    errors = " ".join(run(*arguments, tmp_path / "embedded").stderr.split())
    assert (f"a source with other terms ({terms})" in errors) == warned
    assert (
        "warning" not in run(*arguments, tmp_path / "referenced", "--no-images").stderr
    )


def test_the_command_writes_a_template(dataset: Dataset, tmp_path: Path) -> None:
    run("release", dataset.path, "--card-template", tmp_path / "new.yaml")
    assert "release:" in (tmp_path / "new.yaml").read_text()


def test_the_command_lists_blank_fields(
    dataset: Dataset,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = fail(
        capsys,
        monkeypatch,
        "release",
        dataset.path,
        "--version",
        "1.0.0",
        "--out",
        tmp_path / "out",
    )
    assert "benchmark_details.name" in output
    assert "release.creators" in output


def test_the_command_needs_a_version(
    dataset: Dataset,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "--version and --out" in fail(capsys, monkeypatch, "release", dataset.path)


def test_a_release_of_the_bundled_benchmark_is_evaluated_with_the_bundled_model(
    card_file: Path, tmp_path: Path
) -> None:
    arguments = (
        "--version",
        "1.0.0",
        "--card",
        card_file,
        "--out",
        tmp_path / "out",
        "--resplit",
    )
    run("release", "world", *arguments, "--splits", "train=0.5,test=0.5")
    run(
        "eval",
        tmp_path / "out" / "test",
        "--model",
        "tiny",
        "--limit",
        4,
        "--out",
        tmp_path / "run",
    )
    assert float(mw.load_run(tmp_path / "run")["strict"]["giou"]) > 0.4


def test_from_annotations_to_a_released_and_evaluated_benchmark(
    card_file: Path, tmp_path: Path
) -> None:
    run("build", "r2sm", "world", "--limit", 12, "--out", tmp_path / "built")
    arguments = (
        "--version",
        "1.0.0",
        "--card",
        card_file,
        "--splits",
        "train=0.5,test=0.5",
    )
    run("release", tmp_path / "built", *arguments, "--out", tmp_path / "released")
    assert "valid, 0 errors" in run("validate", tmp_path / "released").output
    run(
        "eval",
        tmp_path / "released" / "test",
        "--model",
        "tiny",
        "--out",
        tmp_path / "run",
    )
    evaluated = mw.load_run(tmp_path / "run")["strict"]
    assert float(evaluated["giou"]) > 0.2
    assert read_release(tmp_path / "released").about["recipe"] == "r2sm"


def test_lineage_fills_the_card_and_a_file_with_a_line_per_sample(
    tmp_path: Path,
) -> None:
    """A dataset that a model wrote, a verifier checked and people reviewed."""
    about = {
        "recipe": "mmr",
        "writer": "openai",
        "writer_model": "gpt-5-mini",
        "prompt_sha256": "ab" * 32,
        "prices_as_of": "2026-11-05",
        "filters": "min_area=0.0005",
        "verifier": "anthropic/claude-sonnet-5",
        "verified": "20 agree, 10 disagree",
        "reviewed": "28 accepted, 2 rejected",
        "review_agreement": "9 of 10 samples reviewed twice have equal verdicts",
    }
    dataset = make_dataset(tmp_path / "data", about=about)
    first = dataset.samples.id[0]
    line = {"sample": first, "writer": "openai", "verified": "agree"}
    (tmp_path / "data" / "provenance.jsonl").write_text(json.dumps(line) + "\n")
    card = make_card()
    card["data"]["annotation"] = ""
    card["methodology"]["validation"] = "tbd"
    write_release(plan_release(dataset), tmp_path / "out", card, version="1.0.0")
    written = yaml.safe_load((tmp_path / "out" / "card.yaml").read_text())
    annotation = written["data"]["annotation"]
    assert "written by gpt-5-mini (openai; recipe mmr, prompt abababab" in annotation
    assert "min_area=0.0005" in annotation
    validation = written["methodology"]["validation"]
    for part in ("claude-sonnet-5", "20 agree", "28 accepted", "9 of 10 samples"):
        assert part in validation
    lines = (tmp_path / "out" / "provenance.jsonl").read_text().splitlines()
    assert len(lines) == len(dataset)
    assert json.loads(lines[0]) == line
    assert "provenance.jsonl" in (tmp_path / "out" / "SHA256SUMS").read_text()


def test_what_the_card_file_says_wins_over_the_lineage(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data", about={"writer": "grammar"})
    write_release(plan_release(dataset), tmp_path / "out", make_card(), version="1")
    written = yaml.safe_load((tmp_path / "out" / "card.yaml").read_text())
    assert written["data"]["annotation"] == make_card()["data"]["annotation"]


def test_visible_pixels_outside_the_amodal_mask_are_counted_on_the_card(
    tmp_path: Path,
) -> None:
    def region(number: int) -> Region:
        visible = rectangle(1, 1, 4 + (number < 3), 4)
        return Region(
            id="cup", name="cup", visible=visible, amodal=rectangle(1, 1, 4, 4)
        )

    dataset = make_dataset(tmp_path / "data", images=10, region=region)
    assert count_visible_outside(dataset) == 3
    statistics = plan_release(dataset).facts.statistics
    assert "regions with visible pixels outside the amodal mask: 3" in statistics
    right = plan_release(make_dataset(tmp_path / "right")).facts.statistics
    assert not any("outside the amodal mask" in line for line in right)
