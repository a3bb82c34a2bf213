"""The recipe `occlude` on shapes whose masks are known by hand, and on photographs."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from maskwise.builder.category_facts import (
    SETTINGS,
    find_category,
    load_category_facts,
)
from maskwise.builder.composite import match_light, paste, place, soft_edge
from maskwise.builder.cutouts import AnnotatedObjects, Cutout, CutoutSource
from maskwise.builder.occlude import OccludeOptions, occlude
from maskwise.engines import EngineOptions
from maskwise.errors import RecordError, StoreError
from maskwise.masks import Mask
from maskwise.schema import ImageInfo, Region, Sample
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
            box = Region(id=f"box{number}", name="box", visible=mask)
            writer.add_image(info, [box], file.getvalue())
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
    # One pixel in the band around it is enough: what touches it may hide a part of it.
    corner = [
        region("a", rectangle(30, 30, 40, 40)),
        region("b", rectangle(72, 68, 40, 40)),
    ]
    assert not AnnotatedObjects(corner).is_complete(0)


def test_an_object_may_touch_what_stands_behind_it() -> None:
    person = Region(id="a", name="person", visible=standing(60, 30, 20, 60))
    behind = Region(id="b", name="car", visible=rectangle(82, 40, 60, 40))
    in_front = Region(id="b", name="car", visible=rectangle(82, 70, 60, 40))
    for other, whole in ((behind, True), (in_front, False)):
        objects = AnnotatedObjects([person, other])
        assert objects.is_complete(0) == whole
        assert objects.is_complete(0, lenient=True) == whole


def test_what_is_held_may_touch_a_cutout_but_hides_a_part_of_a_target() -> None:
    person = Region(id="a", name="person", visible=standing(60, 30, 20, 60))
    ball = Region(id="b", name="sports ball", visible=rectangle(80, 50, 6, 6))
    objects = AnnotatedObjects([person, ball])
    assert not objects.is_complete(0)
    assert objects.is_complete(0, lenient=True)


def test_whoever_rides_does_not_stand_behind() -> None:
    """The base line of a rider is higher too, but the legs hide a part of the horse."""
    horse = Region(id="a", name="horse", visible=standing(40, 40, 48, 48))
    rider = Region(id="b", name="person", visible=rectangle(56, 20, 16, 30))
    assert AnnotatedObjects([horse]).is_complete(0)
    assert not AnnotatedObjects([horse, rider]).is_complete(0, lenient=True)


def test_an_outline_that_is_cut_off_is_not_complete() -> None:
    """Nobody annotated the desk, but a standing person is not as wide at the feet as at the shoulders."""
    standing_person = Region(id="a", name="person", visible=standing(60, 30, 20, 60))
    assert AnnotatedObjects([standing_person]).is_complete(0)
    cut_off = Region(id="a", name="person", visible=rectangle(60, 30, 20, 60))
    assert not AnnotatedObjects([cut_off]).is_complete(0)
    head = Region(id="a", name="person", visible=rectangle(60, 30, 20, 20))
    assert not AnnotatedObjects([head]).is_complete(0)


def test_what_hangs_or_is_held_is_neither_target_nor_cutout() -> None:
    lamp = Region(id="a", name="traffic light", visible=rectangle(60, 30, 20, 50))
    assert not AnnotatedObjects([lamp]).is_complete(0)


def standing(x: int, y: int, width: int, height: int) -> Mask:
    """A body on two feet, with a narrow head."""
    body = rectangle(x, y + height // 4, width, height // 2)
    head = rectangle(x + width // 3, y, width // 3, height // 4)
    leg = width // 4
    left = rectangle(x + leg // 2, y + height // 2, leg, height - height // 2)
    right = rectangle(x + 5 * leg // 2, y + height // 2, leg, height - height // 2)
    return body | head | left | right


def test_an_animal_without_visible_feet_is_not_complete() -> None:
    """Grass or water that nobody annotated hides them; a bottle that stands behind something is cut off at a slant."""
    on_its_feet = standing(40, 40, 48, 48)
    in_grass = on_its_feet - rectangle(0, 74, WIDTH, HEIGHT - 74)
    for mask, complete in ((on_its_feet, True), (in_grass, False)):
        dog = Region(id="a", name="dog", visible=mask)
        assert AnnotatedObjects([dog]).is_complete(0) == complete
    rows, columns = np.indices((HEIGHT, WIDTH))
    slanted = rows + columns >= 142
    bottle = rectangle(60, 30, 20, 60)
    for mask, complete in ((bottle, True), (bottle - Mask.from_dense(slanted), False)):
        table_thing = Region(id="a", name="bottle", visible=mask)
        assert AnnotatedObjects([table_thing]).is_complete(0) == complete


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
    photos = {cutout.image.id for cutout in drawn if cutout and cutout.image}
    assert photos == {f"image{number}" for number in range(1, 6)}


def place_person(
    directory: Path, *, other: str = "person", ground: int = 120
) -> Dataset:
    """A photo of a person, and one of another object, whose ground may have another color."""
    legs = rectangle(46, 90, 12, 14) | rectangle(70, 90, 12, 14)
    wide = rectangle(40, 70, 48, 24) | rectangle(56, 56, 16, 16) | legs
    shapes = [
        ("person", standing(60, 20, 24, 60), 120),
        (other, standing(60, 20, 24, 60) if other == "person" else wide, ground),
    ]
    with DatasetWriter(directory, name="street") as writer:
        for number, (name, mask, shade) in enumerate(shapes):
            pixels = np.full((HEIGHT, WIDTH, 3), shade, np.uint8)
            pixels[mask.to_dense()] = (200, 40, 40)
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, "PNG")
            info = ImageInfo(id=f"photo{number}", width=WIDTH, height=HEIGHT)
            writer.add_image(
                info, [Region(id="a", name=name, visible=mask)], file.getvalue()
            )
    return Dataset.open(directory)


def made_pairs(dataset: Dataset, out: Path) -> list[tuple[Sample, Region]]:
    """The samples of the composites, each with its occluder."""
    occlude(dataset, out, OccludeOptions(min_area=0.001))
    made = Dataset.open(out)
    return [
        (sample, made.regions_of(sample.image_id)[0])
        for sample in made
        if sample.tags["variant"] == "composite"
    ]


def test_an_occluder_has_the_size_that_its_category_has_beside_the_target(
    tmp_path: Path,
) -> None:
    """A dog of 0.6 m in front of a person of 1.7 m, whatever its size in its own photo; a little nearer."""
    dataset = place_person(tmp_path / "in", other="dog")
    for sample, occluder in made_pairs(dataset, tmp_path / "out"):
        (target,) = sample.targets
        if target.name != "person":
            continue
        assert target.amodal is not None
        assert occluder.visible is not None
        height = occluder.visible.box[3]
        ratio = height / target.amodal.box[3]
        # The edge of a cut-out is narrower by one pixel on each side.
        assert 0.6 / 1.7 * 1.03 - 0.05 <= ratio <= 0.6 / 1.7 * 1.25 + 0.05
        lower_edge = sum(occluder.visible.box[1::2])
        assert lower_edge >= sum(target.amodal.box[1::2]) - 1


def test_other_scenes_and_other_grounds_give_no_composite(tmp_path: Path) -> None:
    for name, options in (
        ("scene", {"other": "toilet"}),
        ("support", {"other": "cup"}),
        ("ground", {"ground": 10}),
    ):
        dataset = place_person(tmp_path / name, **options)  # type: ignore[arg-type]
        with pytest.raises(StoreError, match="no occluder fits"):
            occlude(dataset, tmp_path / f"{name}_out", OccludeOptions(min_area=0.001))


def test_objects_of_another_dataset_are_pasted(tmp_path: Path) -> None:
    shapes = write_shapes(tmp_path / "shapes")
    others = write_shapes(tmp_path / "others", images=3)
    occlude(shapes, tmp_path / "out", cutouts=others)
    made = Dataset.open(tmp_path / "out")
    assert made.manifest.about["recipe_cutouts"] == "shapes"
    run(
        *("build", "occlude", tmp_path / "shapes", "--cutouts", tmp_path / "others"),
        *("--out", tmp_path / "again"),
    )
    assert Dataset.open(tmp_path / "again").images.id == made.images.id


def test_a_convex_thing_with_a_notch_is_not_complete() -> None:
    """A candle stands in the bowl, which nobody annotated."""
    bowl = rectangle(30, 40, 80, 40)
    notched = bowl - rectangle(60, 40, 20, 25)
    for mask, complete in ((bowl, True), (notched, False)):
        table_thing = Region(id="a", name="bowl", visible=mask)
        assert AnnotatedObjects([table_thing]).is_complete(0) == complete


def test_nothing_is_pasted_from_the_same_photo_in_another_dataset(
    tmp_path: Path,
) -> None:
    shapes = write_shapes(tmp_path / "shapes", images=1)
    copies = write_shapes(tmp_path / "copies", images=1)
    with pytest.raises(StoreError, match="no composite could be made"):
        occlude(
            shapes,
            tmp_path / "out",
            OccludeOptions(any_context=True),
            cutouts=copies,
        )


def test_targets_are_pasted_into_images_of_another_dataset(tmp_path: Path) -> None:
    people = place_person(tmp_path / "people", other="dog")
    with DatasetWriter(tmp_path / "street", name="street") as writer:
        mask = standing(30, 20, 24, 60)
        file = io.BytesIO()
        Image.fromarray(np.full((HEIGHT, 300, 3), 120, np.uint8)).save(file, "PNG")
        dense = np.zeros((HEIGHT, 300), np.bool_)
        dense[:, :WIDTH] = mask.to_dense()
        passer = Region(id="1", name="person", visible=Mask.from_dense(dense))
        info = ImageInfo(id="road", width=300, height=HEIGHT, license="CC")
        writer.add_image(info, [passer], file.getvalue())
    options = OccludeOptions(min_area=0.001)
    street = Dataset.open(tmp_path / "street")
    occlude(people, tmp_path / "out", options, background=street)
    original, composite = Dataset.open(tmp_path / "out")
    assert original.image_id == "road#0-original"
    (before,) = original.targets
    (after,) = composite.targets
    assert before.visible == before.amodal == after.amodal
    assert after.occluded is not None
    assert after.occluded.area > 0
    # The object that was there is still whole behind it.
    assert before.visible is not None
    assert before.visible.areas_with(Mask.from_dense(dense))[0] == 0


def test_a_damaged_image_is_counted_and_does_not_end_the_build(tmp_path: Path) -> None:
    shapes = write_shapes(tmp_path / "plain")
    with DatasetWriter(tmp_path / "shapes", name="shapes") as writer:
        for row in range(len(shapes.images)):
            data = shapes.images.table["data"][row].as_py()
            if row == 2:
                data = data[: len(data) // 2]
            writer.add_image(shapes.image(row), shapes.regions_of(row), data)
    counts = occlude(Dataset.open(tmp_path / "shapes"), tmp_path / "out")
    assert counts["unreadable"] == 1
    assert counts["pairs"] >= 3


def test_the_table_of_sizes_is_complete() -> None:
    """Every category of COCO is in the table, with a size or with the reason why it is not used."""
    file = shared("data", "coco128") / "instances_train2017.json"
    names = [entry["name"] for entry in json.loads(file.read_text())["categories"]]
    assert [name for name in names if find_category(name) is None] == []
    for facts in load_category_facts().values():
        assert facts.scenes <= set(SETTINGS)


def test_a_category_is_found_by_a_synonym_and_without_what_stands_in_brackets() -> None:
    car = find_category("car")
    assert find_category("car, auto, automobile") == car
    assert find_category("Car_(automobile)") == car
    assert find_category("toy car") is None


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
        "--any-context",
        "--json",
    )
    counts = json.loads(done.stdout)
    assert counts["images"] == 20
    assert counts["pairs"] >= 1
    run("validate", tmp_path / "out")
