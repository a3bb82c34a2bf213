"""The recipe `occlude` on shapes whose masks are known by hand, and on photographs."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from maskwise.builder.composite import match_light, paste, place, soft_edge
from maskwise.builder.cutouts import AnnotatedObjects, Cutout, CutoutSource
from maskwise.builder.occlude import OccludeOptions, occlude
from maskwise.engines import EngineOptions
from maskwise.errors import RecordError, StoreError
from maskwise.masks import Mask
from maskwise.schema import ImageInfo, Region
from maskwise.store import Dataset, DatasetWriter
from tests.cli.commands import run
from tests.shared import shared

HEIGHT = 120
WIDTH = 160


def rectangle(x: int, y: int, width: int, height: int) -> Mask:
    dense = np.zeros((HEIGHT, WIDTH), np.bool_)
    dense[y : y + height, x : x + width] = True
    return Mask.from_dense(dense)


def region(id: str, mask: Mask, **more: object) -> Region:
    return Region(id=id, name=id, visible=mask, **more)  # type: ignore[arg-type]


def write_shapes(path: Path, images: int = 6) -> Dataset:
    """Images with one rectangle each, in a color of its own, far from the border."""
    with DatasetWriter(path, name="shapes") as writer:
        for number in range(images):
            mask = rectangle(30 + 4 * number, 25, 50, 60)
            pixels = np.full((HEIGHT, WIDTH, 3), 200, np.uint8)
            pixels[mask.to_dense()] = (30 * number, 90, 120)
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, "PNG")
            info = ImageInfo(id=f"image{number}", width=WIDTH, height=HEIGHT)
            writer.add_image(info, [region(f"box{number}", mask)], file.getvalue())
    return Dataset.open(path)


@pytest.fixture
def shapes(tmp_path: Path) -> Dataset:
    return write_shapes(tmp_path / "shapes")


def test_an_object_at_the_border_is_not_complete() -> None:
    assert not AnnotatedObjects([region("a", rectangle(0, 30, 50, 50))]).is_complete(0)
    assert AnnotatedObjects([region("a", rectangle(30, 30, 50, 50))]).is_complete(0)


def test_an_object_that_touches_another_along_its_edge_is_not_complete() -> None:
    beside = [
        region("a", rectangle(30, 30, 40, 40)),
        region("b", rectangle(70, 20, 40, 70)),
    ]
    assert not AnnotatedObjects(beside).is_complete(0)
    apart = [
        region("a", rectangle(30, 30, 40, 40)),
        region("b", rectangle(80, 20, 40, 70)),
    ]
    assert AnnotatedObjects(apart).is_complete(0)


def test_an_object_in_two_pieces_is_not_complete() -> None:
    pieces = rectangle(20, 30, 20, 40) | rectangle(60, 30, 20, 40)
    assert not AnnotatedObjects([region("a", pieces)]).is_complete(0)


def test_a_known_amodal_mask_decides() -> None:
    whole = rectangle(30, 30, 40, 40)
    half = rectangle(30, 30, 20, 40)
    assert not AnnotatedObjects([region("a", half, amodal=whole)]).is_complete(0)
    assert AnnotatedObjects([region("a", whole, amodal=whole)]).is_complete(0)


def test_parts_and_crowds_are_never_complete() -> None:
    mask = rectangle(30, 30, 40, 40)
    assert not AnnotatedObjects([region("a", mask, crowd=True)]).is_complete(0)
    assert not AnnotatedObjects(
        [region("whole", mask), region("a", mask, part_of="whole")]
    ).is_complete(1)


def test_a_placement_hides_the_share_that_was_asked_for() -> None:
    target = rectangle(50, 40, 50, 50).to_dense()
    cutout = Cutout("cup", np.zeros((40, 40, 3), np.uint8), np.ones((40, 40), np.bool_))
    random = np.random.default_rng(0)
    found = [place(cutout, target, (0.2, 0.4), random) for _ in range(30)]
    placements = [placement for placement in found if placement is not None]
    assert placements
    for placement in placements:
        _, covered = paste(np.zeros((*target.shape, 3), np.uint8), placement)
        assert (target & covered).sum() / target.sum() == pytest.approx(placement.rate)
        assert 0.2 <= placement.rate <= 0.4


def test_pasted_pixels_cover_what_the_mask_says() -> None:
    image = np.full((HEIGHT, WIDTH, 3), 100, np.uint8)
    cutout = Cutout(
        "cup", np.full((30, 30, 3), 100, np.uint8), np.ones((30, 30), np.bool_)
    )
    placement = place(
        cutout,
        rectangle(60, 50, 30, 30).to_dense(),
        (0.1, 0.9),
        np.random.default_rng(1),
    )
    assert placement is not None
    red = placement._replace(
        cutout=placement.cutout._replace(
            pixels=placement.cutout.pixels + np.uint8([90, 0, 0])
        )
    )
    composite, covered = paste(image, red)
    changed = (composite != image).any(2)
    assert covered.any()
    assert (covered & ~changed).sum() == 0
    assert not changed[:, : red.left - 1].any()


def test_the_edge_is_soft_and_narrower_than_the_mask() -> None:
    alpha = soft_edge(np.ones((20, 20), np.bool_))
    assert alpha[10, 10] == pytest.approx(1, abs=0.01)
    assert 0 < alpha[0, 10] < 0.5


def test_light_moves_towards_the_surroundings_within_limits() -> None:
    cutout = Cutout("cup", np.full((8, 8, 3), 200, np.uint8), np.ones((8, 8), np.bool_))
    darker = match_light(cutout, np.full((8, 8, 3), 50, np.float32))
    assert 0.75 * 200 <= darker.mean() < 200


def test_every_composite_has_exact_masks_and_an_untouched_original(
    shapes: Dataset, tmp_path: Path
) -> None:
    counts = occlude(shapes, tmp_path / "out", OccludeOptions(rates=(0.1, 0.6)))
    made = Dataset.open(tmp_path / "out")
    assert counts["pairs"] == len(made) // 2 >= 4
    samples = list(made)
    for original, composite in zip(samples[0::2], samples[1::2]):
        before = original.targets[0]
        after = composite.targets[0]
        assert original.tags["pair"] == composite.tags["pair"]
        assert before.visible == before.amodal == after.amodal
        occluder = made.regions_of(composite.image_id)[0]
        assert after.amodal is not None
        assert occluder.visible is not None
        assert after.visible == after.amodal - occluder.visible
        assert (occluder.order, after.order) == (1, 2)
        hidden = after.occluded
        assert hidden is not None
        rate = hidden.area / after.amodal.area
        assert 0.1 <= rate <= 0.6
        assert f"{rate:.2f}" == composite.tags["occlusion"]
        source = shapes.open_image(original.image_id.partition("#")[0])
        assert np.array_equal(
            np.asarray(made.open_image(original.image_id)), np.asarray(source)
        )


def test_licenses_of_both_photos_are_kept(tmp_path: Path) -> None:
    made = write_shapes(tmp_path / "plain")
    with DatasetWriter(tmp_path / "shapes", name="shapes") as writer:
        for row in range(len(made.images)):
            info = replace(made.image(row), license=f"license {row}", attribution="A")
            writer.add_image(
                info, made.regions_of(row), made.images.table["data"][row].as_py()
            )
    occlude(Dataset.open(tmp_path / "shapes"), tmp_path / "out")
    out = Dataset.open(tmp_path / "out")
    for pair in {id.rpartition("-")[0] for id in out.images.id}:
        original = out.image(f"{pair}-original")
        composite = out.image(f"{pair}-composite")
        own, pasted = str(composite.license).split("; ")
        assert original.license == own != pasted
        assert original.attribution == composite.attribution == "A"


def test_the_result_does_not_depend_on_the_number_of_workers(
    shapes: Dataset, tmp_path: Path
) -> None:
    for workers in (1, 2):
        occlude(shapes, tmp_path / str(workers), engine=EngineOptions(workers=workers))
    for name in ("images.arrow", "regions.arrow", "samples.arrow"):
        assert (tmp_path / "1" / name).read_bytes() == (
            tmp_path / "2" / name
        ).read_bytes()


def test_another_seed_gives_other_composites(shapes: Dataset, tmp_path: Path) -> None:
    for seed in (0, 1):
        occlude(shapes, tmp_path / str(seed), OccludeOptions(seed=seed))
    assert (tmp_path / "0/regions.arrow").read_bytes() != (
        tmp_path / "1/regions.arrow"
    ).read_bytes()


def test_a_dataset_without_a_complete_object_is_an_error(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "in", name="none") as writer:
        writer.add_image(
            ImageInfo(id="a", width=WIDTH, height=HEIGHT),
            [region("a", rectangle(0, 0, 50, 50))],
        )
    with pytest.raises(
        StoreError,
        match="no composite could be made from 1 images: 1 have no completely visible",
    ):
        occlude(Dataset.open(tmp_path / "in"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("rates", [(0.0, 0.5), (0.6, 0.2), (0.5, 1.0)])
def test_impossible_rates_are_refused(rates: tuple[float, float]) -> None:
    with pytest.raises(RecordError, match="expected 0 < lowest < highest < 1"):
        OccludeOptions(rates=rates)


def test_a_cutout_never_comes_from_the_same_image(shapes: Dataset) -> None:
    source = CutoutSource(shapes)
    random = np.random.default_rng(0)
    drawn = [source.draw(random, other_than=0) for _ in range(50)]
    assert {cutout.name for cutout in drawn if cutout is not None} == {
        f"box{n}" for n in range(1, 6)
    }


def test_the_command_builds_from_photographs(tmp_path: Path) -> None:
    shared("data", "coco128")
    run(
        "read",
        "coco",
        shared("data", "coco128"),
        "--split",
        "train2017",
        "--out",
        tmp_path / "coco",
    )
    done = run(
        "build",
        "occlude",
        tmp_path / "coco",
        "--out",
        tmp_path / "out",
        "--limit",
        20,
        "--json",
    )
    counts = json.loads(done.stdout)
    assert counts["images"] == 20
    assert counts["pairs"] >= 5
    run("validate", tmp_path / "out")
