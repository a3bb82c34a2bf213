"""`maskwise info, validate, stats, show` as a user meets them."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from typer.testing import CliRunner

import maskwise
import maskwise as mw
from maskwise.cli.main import app
from maskwise.images import image_size
from maskwise.masks import Mask, kernel_name
from maskwise.schema import Answer, ImageInfo, Phrase, Region, Sample
from maskwise.store import DatasetWriter

RUN = CliRunner()


def run(*arguments: object) -> Any:
    return RUN.invoke(app, [str(argument) for argument in arguments])


def mask(area: int) -> Mask:
    plane = np.zeros((20, 30), bool)
    plane.flat[:area] = True
    return Mask.from_dense(plane)


CUP = Region(id="cup", name="cup", visible=mask(60), amodal=mask(80))
HANDLE = Region(id="handle", name="handle", visible=mask(10), part_of="cup")
GHOST = Region(id="ghost", name="ghost", visible=Mask.empty(20, 30), amodal=mask(5))
SPILL = Region(id="spill", name="cup", visible=mask(9), amodal=mask(5))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (30, 20), "navy").save(tmp_path / "photos" / "a.png")
    embedded = (tmp_path / "photos" / "a.png").read_bytes()
    with DatasetWriter(
        tmp_path / "data", name="cups & co", image_root=tmp_path / "photos"
    ) as writer:
        writer.add_image(
            ImageInfo(id="p0", width=30, height=20, path="a.png"), [CUP, HANDLE, GHOST]
        )
        writer.add_image(ImageInfo(id="p1", width=30, height=20), [CUP], embedded)
        answer = Answer(
            text="The cup.", phrases=(Phrase(start=4, stop=7, regions=(0,)),)
        )
        writer.add_sample(
            Sample(
                id="q0",
                image_id="p0",
                question="To drink?",
                mask_type="amodal",
                targets=(CUP, HANDLE),
                answer=answer,
                tags={"split": "val"},
            )
        )
        writer.add_sample(
            Sample(id="7", image_id="p1", question="A dog?", ignore=mask(3))
        )
        writer.add_sample(
            Sample(
                id="q2",
                image_id="p0",
                question="Behind?",
                targets=(GHOST,),
                mask_type="both",
            )
        )
    return tmp_path / "data"


# -- info --------------------------------------------------------------------------------------------------------------


def test_info_names_version_and_kernel() -> None:
    result = run("info")
    assert result.exit_code == 0
    assert maskwise.__version__ in result.stdout
    facts = json.loads(run("info", "--json").stdout)
    assert facts["version"] == maskwise.__version__
    assert facts["kernel"] == kernel_name()
    assert facts["threads"] >= 1
    assert set(facts["bundled"]) == {"models", "datasets"}


def test_the_fallback_kernel_is_said() -> None:
    environment = os.environ | {"MASKWISE_KERNEL": "numpy"}
    command = [sys.executable, "-m", "maskwise.cli.main", "info"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )
    assert "numpy" in done.stdout


def test_version() -> None:
    assert run("--version").stdout == f"maskwise {maskwise.__version__}\n"


def test_errors_are_one_line_without_a_traceback(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "maskwise.cli.main",
        "stats",
        str(tmp_path / "absent"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (
        done.stderr
        == f"maskwise: {tmp_path / 'absent'} is neither a dataset folder nor one of: world\n"
    )
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["info", "validate", "stats", "show"])
def test_every_help_has_an_example(command: str) -> None:
    assert f"Example: maskwise {command}" in run(command, "--help").stdout


# -- stats -------------------------------------------------------------------------------------------------------------


def test_stats_count_everything(folder: Path) -> None:
    facts = json.loads(run("stats", folder, "--json").stdout)
    assert facts["name"] == "cups & co"
    assert facts["counts"] == {
        "images": 2,
        "images with questions": 2,
        "images embedded": 1,
        "questions": 3,
        "answers": 1,
        "regions": 4,
        "regions asked for": 3,
        "parts": 1,
        "crowds": 0,
        "visible masks": 4,
        "amodal masks": 3,
        "overlap masks": 0,
        "ignore masks": 1,
    }
    assert facts["targets_per_question"] == {"0": 1, "1": 1, "2": 1}
    assert facts["mask_types"] == {"visible": 1, "amodal": 1, "both": 1}
    assert {band: n for band, n in facts["occlusion"].items() if n} == {
        "10 % to 25 %": 2,
        "fully hidden": 1,
    }
    assert facts["region_sizes"]["small (under 1024 pixels)"] == 4
    assert facts["image_sizes"] == {
        "smallest": "30 x 20",
        "median": "30 x 20",
        "largest": "30 x 20",
    }
    assert facts["categories"] == {"cup": 2, "handle": 1, "ghost": 1}
    assert facts["tags"] == {"split": {"(none)": 2, "val": 1}}


def test_stats_read_well(folder: Path) -> None:
    text = run("stats", folder).stdout
    assert "cups & co" in text
    assert "targets per question" in text
    assert "tag split" in text


def test_stats_of_nothing(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "none", name="[bold]none"):
        pass
    result = run("stats", tmp_path / "none")
    assert result.exit_code == 0
    assert "[bold]none" in result.stdout
    assert run("validate", tmp_path / "none").exit_code == 0


# -- validate ----------------------------------------------------------------------------------------------------------


def rewrite(folder: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change a table behind the writer's back, sums and all."""
    path = folder / f"{name}.arrow"
    table = change(pa.ipc.open_file(pa.py_buffer(path.read_bytes())).read_all())
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    manifest = json.loads((folder / "manifest.json").read_text())
    data = path.read_bytes()
    manifest["files"][path.name] = {
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


def replace(name: str, values: list) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(name)
        field = table.schema.field(name)
        return table.set_column(place, field, pa.array(values, field.type))

    return change


def findings(folder: Path) -> list[tuple[str, str, str]]:
    result = run("validate", folder, "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == (1 if found["errors"] else 0)
    assert found["valid"] == (found["errors"] == 0)
    return [
        (finding["level"], finding["kind"], finding["where"])
        for finding in found["findings"]
    ]


def test_a_good_dataset_is_valid(folder: Path) -> None:
    assert findings(folder) == []
    result = run("validate", folder)
    assert result.exit_code == 0
    assert result.stdout.endswith("valid, 0 errors, 0 warnings\n")


def test_visible_outside_amodal_is_a_warning(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "spill", name="spill") as writer:
        writer.add_image(ImageInfo(id="p", width=30, height=20), [CUP, SPILL])
    assert findings(tmp_path / "spill") == [
        ("warning", "visible outside amodal", "p/spill")
    ]
    result = run("validate", tmp_path / "spill")
    assert result.exit_code == 0
    assert "p/spill: 4 of 9 visible pixels lie outside the amodal mask" in result.stdout
    assert "valid, 0 errors, 1 warnings" in result.stdout


def test_a_changed_file_is_an_error(folder: Path) -> None:
    path = folder / "samples.arrow"
    path.write_bytes(path.read_bytes().replace(b"To drink?", b"To think?"))
    assert findings(folder) == [("error", "changed file", str(folder))]


def test_a_folder_that_does_not_open_is_an_error(folder: Path) -> None:
    (folder / "regions.arrow").unlink()
    assert findings(folder) == [("error", "cannot be opened", str(folder))]


def test_malformed_masks_are_all_named(folder: Path) -> None:
    good = {"size": [20, 30], "counts": CUP.visible.counts.encode()}
    bad = {"size": [20, 30], "counts": b"000"}
    rewrite(
        folder,
        "regions",
        replace("visible", [good, bad, good, {"size": [2, 2], "counts": b"4"}]),
    )
    found = findings(folder)
    assert ("error", "malformed mask", "p0/handle") in found
    assert ("error", "mask size", "p1/cup") in found
    assert not any(where == "p0/cup" for _, _, where in found)


def test_missing_masks_are_named(folder: Path) -> None:
    rewrite(folder, "regions", replace("visible", [None] * 4))
    assert findings(folder) == [("error", "no mask", "p0/handle")]


def test_duplicate_ids_are_named(folder: Path) -> None:
    rewrite(folder, "samples", replace("id", ["q0", "q0", "q2"]))
    rewrite(folder, "regions", replace("id", ["cup", "cup", "ghost", "cup"]))
    assert findings(folder) == [
        ("error", "duplicate id", "q0"),
        ("error", "duplicate id", "p0/cup"),
    ]


def test_parts_across_images_and_in_circles_are_named(folder: Path) -> None:
    rewrite(folder, "regions", replace("part_of", [1, 0, None, 2]))
    assert findings(folder) == [
        ("error", "part", "p1/cup"),
        ("error", "part", "p0/cup"),
        ("error", "part", "p0/handle"),
    ]


def test_targets_of_another_image_are_named(folder: Path) -> None:
    rewrite(folder, "samples", replace("targets", [[0, 1], [2], [2]]))
    assert findings(folder) == [("error", "target", "7")]


def test_references_past_the_tables_are_errors(folder: Path) -> None:
    rewrite(folder, "samples", replace("targets", [[0, 1], [], [99]]))
    assert {kind for _, kind, _ in findings(folder)} == {"damaged table"}


@pytest.mark.parametrize(
    "phrase",
    [
        {"start": 4, "stop": 9, "regions": [0]},
        {"start": 4, "stop": 4, "regions": [0]},
        {"start": -1, "stop": 4, "regions": [0]},
        {"start": 4, "stop": 7, "regions": [0, 2]},
        {"start": 4, "stop": 7, "regions": [-1]},
    ],
)
def test_phrases_outside_their_answer_are_named(folder: Path, phrase: dict) -> None:
    rewrite(folder, "samples", replace("phrases", [[phrase], [], []]))
    assert findings(folder) == [("error", "phrase", "q0")]


def test_missing_damaged_and_resized_images_are_named(folder: Path) -> None:
    photo = folder.parent / "photos" / "a.png"
    Image.new("RGB", (20, 30)).save(photo)
    assert findings(folder) == [("error", "image", "p0")]
    photo.write_bytes(b"not an image")
    assert findings(folder) == [("error", "image", "p0")]
    photo.unlink()
    assert findings(folder) == [("error", "image", "p0")]
    assert run("validate", folder, "--no-images").exit_code == 0
    assert run("validate", folder, "--images", folder.parent).exit_code == 1


def test_images_without_a_root_are_a_warning(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "data", name="data") as writer:
        writer.add_image(ImageInfo(id="p", width=30, height=20, path="a.png"))
    assert findings(tmp_path / "data") == [
        ("warning", "images", str(tmp_path / "data"))
    ]


def test_long_lists_are_cut_in_print_only(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "data", name="data") as writer:
        for number in range(15):
            writer.add_image(ImageInfo(id=f"p{number}", width=30, height=20), [SPILL])
    assert "and 5 more (--json lists all)" in run("validate", tmp_path / "data").stdout
    assert len(findings(tmp_path / "data")) == 15


# -- show --------------------------------------------------------------------------------------------------------------


def test_show_draws_by_id_or_number(folder: Path, tmp_path: Path) -> None:
    result = run("show", folder, "q0", "--out", tmp_path / "a.png")
    assert result.exit_code == 0
    assert result.stdout.rstrip().endswith("q0")
    assert max(image_size(tmp_path / "a.png")) >= 640
    assert run("show", folder, "0", "--out", tmp_path / "b.png").exit_code == 0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    # A sample whose id looks like a number is found by id first.
    assert "A dog?" not in run("show", folder, "7", "--out", tmp_path / "c.png").stdout
    assert (
        run("show", folder, "7", "--out", tmp_path / "c.png")
        .stdout.rstrip()
        .endswith(": 7")
    )


def test_what_comes_with_the_package_is_known_by_name(tmp_path: Path) -> None:
    assert "240" in run("stats", "world").stdout
    assert run("show", "world", "0", "--out", tmp_path / "a.png").exit_code == 0


def test_show_draws_the_first_sample_where_none_is_named(
    folder: Path, tmp_path: Path
) -> None:
    assert run("show", folder, "--out", tmp_path / "none.png").exit_code == 0
    assert run("show", folder, 0, "--out", tmp_path / "first.png").exit_code == 0
    drawn = (tmp_path / "none.png").read_bytes()
    assert drawn == (tmp_path / "first.png").read_bytes()


def test_show_draws_a_image_and_all_its_regions_where_there_is_no_question(
    tmp_path: Path,
) -> None:
    region = Region(
        id="r", name="block", visible=Mask.from_dense(np.ones((8, 8), bool))
    )
    Image.new("RGB", (8, 8), "navy").save(tmp_path / "p7.png")
    with DatasetWriter(tmp_path / "d", name="silent") as writer:
        writer.add_image(
            ImageInfo(id="p7", width=8, height=8),
            (region,),
            (tmp_path / "p7.png").read_bytes(),
        )
    result = run("show", tmp_path / "d", "0", "--out", tmp_path / "a.png")
    assert "give an image's id, such as 'p7'" in " ".join(
        f"{result.exception} {result.output}".split()
    )
    assert run("show", tmp_path / "d", "p7", "--out", tmp_path / "a.png").exit_code == 0
    assert max(image_size(tmp_path / "a.png")) >= 640
    assert (
        run(
            "show", tmp_path / "d", "p7", "--plain", "--out", tmp_path / "b.png"
        ).exit_code
        == 0
    )
    assert image_size(tmp_path / "b.png") == (8, 8)


def test_show_draws_every_region_when_asked(folder: Path, tmp_path: Path) -> None:
    for name, more in [
        ("targets", []),
        ("all", ["--all-regions"]),
        ("seen", ["--mask-type", "visible"]),
    ]:
        assert (
            run(
                "show", folder, "q0", "--out", tmp_path / f"{name}.png", *more
            ).exit_code
            == 0
        )
    assert (
        len(
            {
                (tmp_path / f"{name}.png").read_bytes()
                for name in ("targets", "all", "seen")
            }
        )
        == 3
    )


def test_show_selects_regions_leaves_labels_out_and_draws_ignored_pixels(
    folder: Path, tmp_path: Path
) -> None:
    options = {
        "all": ["--all-regions"],
        "without names": ["--all-regions", "--no-labels"],
        "two": ["--regions", "cup, ghost"],
        "one": ["--regions", "cup"],
    }
    for name, more in options.items():
        assert (
            run(
                "show", folder, "q0", "--out", tmp_path / f"{name}.png", *more
            ).exit_code
            == 0
        )
    assert len({(tmp_path / f"{name}.png").read_bytes() for name in options}) == len(
        options
    )
    result = run(
        "show", folder, "q0", "--regions", "cup,mug", "--out", tmp_path / "x.png"
    )
    assert "unknown region of image 'p0' 'mug'; known: cup, ghost, handle" in str(
        result.exception
    )


def test_show_draws_ignored_pixels(tmp_path: Path) -> None:
    Image.new("RGB", (30, 20), "navy").save(tmp_path / "a.png")
    with DatasetWriter(tmp_path / "d", name="ignored") as writer:
        writer.add_image(
            ImageInfo(id="p", width=30, height=20),
            [CUP],
            (tmp_path / "a.png").read_bytes(),
        )
        for id, ignore in (("with", mask(200) - mask(100)), ("without", None)):
            writer.add_sample(
                Sample(id=id, image_id="p", question="?", targets=(CUP,), ignore=ignore)
            )
    for id in ("with", "without"):
        assert (
            run("show", tmp_path / "d", id, "--out", tmp_path / f"{id}.png").exit_code
            == 0
        )
    assert (tmp_path / "with.png").read_bytes() != (
        tmp_path / "without.png"
    ).read_bytes()


def test_validate_counts_questions_without_target(tmp_path: Path) -> None:
    Image.new("RGB", (30, 20), "navy").save(tmp_path / "a.png")
    with DatasetWriter(tmp_path / "d", name="none") as writer:
        writer.add_image(
            ImageInfo(id="p", width=30, height=20),
            [CUP],
            (tmp_path / "a.png").read_bytes(),
        )
        writer.add_sample(Sample(id="1", image_id="p", question="?", targets=(CUP,)))
        writer.add_sample(Sample(id="2", image_id="p", question="?"))
    assert "1 of 2 questions have no target" in run("validate", tmp_path / "d").stdout
    assert (
        json.loads(run("validate", tmp_path / "d", "--json").stdout)["no_target"] == 1
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "no sample with id 'nobody', and it is not a number from 0 to 2"),
        (["3"], "no sample with id '3'"),
        (["q0", "--mask-type", "hidden"], "is not one of"),
        (["q0", "--out", "/no/such/folder/x.png"], "cannot write"),
        (["q0", "--out", "x.unheard"], "cannot write"),
    ],
)
def test_show_says_what_is_wrong(
    folder: Path, arguments: list[str], message: str
) -> None:
    result = run("show", folder, *arguments)
    assert result.exit_code != 0
    assert message in " ".join(f"{result.exception} {result.output}".split())


def test_show_draws_ground_truth_and_prediction_side_by_side(tmp_path: Path) -> None:
    run = tmp_path / "run"
    mw.evaluate("oracle", "world", run, limit=2, protocols="strict")
    id = mw.load_run(run).ids[0]
    arguments = ["show", "world", id, "--out", str(tmp_path / "truth.png")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    for place in (run, run / "predictions.jsonl"):
        arguments = ["show", "world", id, "--predictions", str(place)]
        pair = tmp_path / "pair.png"
        done = CliRunner().invoke(app, [*arguments, "--out", str(pair)])
        assert done.exit_code == 0, done.output
        single = image_size(tmp_path / "truth.png")
        assert image_size(pair)[0] > 2 * single[0]


def test_show_draws_what_score_has_read(tmp_path: Path) -> None:
    dataset = mw.load_dataset("world")
    whole = np.ones((dataset[0].image.height, dataset[0].image.width), bool)
    np.savez(tmp_path / "predictions.npz", **{dataset[0].id: whole})
    folder = tmp_path / "run"
    mw.score(tmp_path / "predictions.npz", "world", folder, protocols="strict")
    arguments = ["show", "world", "0", "--predictions", str(folder)]
    pair = tmp_path / "pair.png"
    done = CliRunner().invoke(app, [*arguments, "--out", str(pair)])
    assert done.exit_code == 0, done.output
    assert image_size(pair)[0] > 2 * dataset[0].image.width
    arguments = ["show", "world", "1", "--predictions", str(folder)]
    done = CliRunner().invoke(app, arguments)
    assert "contains no prediction" in str(done.exception)


def test_predictions_are_shown_for_samples_only(tmp_path: Path) -> None:
    run = tmp_path / "run"
    mw.evaluate("oracle", "world", run, limit=1, protocols="strict")
    dataset = mw.load_dataset("world")
    image = dataset.images.id[0]
    arguments = ["show", "world", image, "--predictions", str(run)]
    done = CliRunner().invoke(app, arguments)
    assert "needs the id or number of a sample" in str(done.exception)
    arguments = ["show", "world", "0", "--predictions", str(run), "--plain"]
    done = CliRunner().invoke(app, arguments)
    assert "omit --plain" in str(done.exception)
