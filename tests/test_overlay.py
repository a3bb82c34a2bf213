"""Overlays distinguish visible, hidden and amodal pixels, and stay legible at any size."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from maskwise.errors import ImageError
from maskwise.masks import Mask, Masks
from maskwise.report.overlay import PALETTE, draw_overlay
from maskwise.schema import Answer, Phrase, PredictedRegion, Region
from tests.shared import shared

GREY = Image.new("RGB", (640, 480), (128, 128, 128))


def rectangle(
    top: int, left: int, bottom: int, right: int, size: tuple[int, int] = (480, 640)
) -> Mask:
    plane = np.zeros(size, bool)
    plane[top:bottom, left:right] = True
    return Mask.from_dense(plane)


VISIBLE = rectangle(100, 100, 300, 300)
AMODAL = rectangle(100, 100, 300, 500)
HALF_HIDDEN = Region(id="a", name="", visible=VISIBLE, amodal=AMODAL)


def pixels(image: Image.Image) -> np.ndarray:
    return np.asarray(image).astype(int)


def tint(area: np.ndarray) -> float:
    """Mean difference between the largest and the smallest channel: 0 for grey."""
    return float((area.max(-1) - area.min(-1)).mean())


def test_visible_part_is_filled_hidden_part_is_striped_background_is_grey() -> None:
    drawn = pixels(draw_overlay(GREY, [HALF_HIDDEN]))
    seen = drawn[150:250, 150:250]
    hidden = drawn[150:250, 350:450]
    rest = drawn[350:450, 100:500]
    assert tint(rest) == 0
    assert tint(seen) > 50
    assert seen.std((0, 1)).max() == 0
    stripes = (np.abs(hidden - PALETTE[0]).max(-1) < 20).mean()
    assert 0.3 < stripes < 0.6
    assert 0.3 < (hidden.min(-1) > 100).mean() < 0.7


def test_mask_type_visible_does_not_draw_the_hidden_part() -> None:
    drawn = pixels(draw_overlay(GREY, [HALF_HIDDEN], mask_type="visible"))
    assert tint(drawn[150:250, 150:250]) > 50
    assert (drawn[150:250, 350:450] == drawn[400, 400]).all()


def colored_share(line: np.ndarray) -> float:
    return float((np.abs(line - PALETTE[0]).max(-1) < 10).mean())


def test_outline_is_solid_around_the_visible_mask_and_dashed_around_the_amodal_mask() -> (
    None
):
    drawn = pixels(draw_overlay(GREY, [HALF_HIDDEN]))
    assert colored_share(drawn[100, 105:295]) == 1
    assert 0.3 < colored_share(drawn[100, 320:490]) < 0.7
    amodal = pixels(draw_overlay(GREY, [HALF_HIDDEN], mask_type="amodal"))
    assert colored_share(amodal[100, 105:495]) == 1
    assert colored_share(amodal[110:290, 299]) < 0.6


def test_regions_have_different_colors() -> None:
    regions = [
        Region(
            id=str(row),
            name="",
            visible=rectangle(10 + 60 * row, 50, 50 + 60 * row, 600),
        )
        for row in range(7)
    ]
    drawn = pixels(draw_overlay(GREY, regions))
    middles = {tuple(drawn[30 + 60 * row, 300]) for row in range(7)}
    assert len(middles) == 7


def test_front_region_is_painted_over_the_back_region() -> None:
    front = Region(id="f", name="", visible=rectangle(100, 100, 200, 200), order=1)
    back = Region(id="b", name="", visible=rectangle(100, 100, 400, 400), order=2)
    for regions in ([front, back], [back, front]):
        drawn = pixels(draw_overlay(GREY, regions))
        index = regions.index(front)
        assert (
            np.abs(drawn[150, 150] - PALETTE[index]).max()
            < np.abs(drawn[150, 150] - PALETTE[1 - index]).max()
        )


@pytest.mark.parametrize("corner", [(0, 0), (0, 600), (440, 0), (440, 600)])
def test_labels_stay_inside_the_image(corner: tuple[int, int]) -> None:
    mask = rectangle(*corner, corner[0] + 40, corner[1] + 40)
    plain = pixels(draw_overlay(GREY, [Region(id="a", name="", visible=mask)]))
    named = pixels(
        draw_overlay(
            GREY, [Region(id="a", name="a rather long name here", visible=mask)]
        )
    )
    changed = (plain != named).any(-1)
    rows, columns = np.nonzero(changed)
    assert len(rows) > 1000
    assert rows.max() < 480
    assert columns.max() - columns.min() > 150


def test_labels_do_not_cover_each_other() -> None:
    regions = [
        Region(id=str(row), name="same place", visible=VISIBLE) for row in range(4)
    ]
    drawn = pixels(draw_overlay(GREY, regions))
    for color in PALETTE[:4]:
        blended = np.abs(drawn - np.array(color)).max(-1) < 25
        assert blended.sum() > 500


def test_small_images_are_enlarged_and_large_ones_reduced() -> None:
    small = draw_overlay(Image.new("RGB", (160, 120)), [])
    assert small.size == (640, 480)
    assert draw_overlay(Image.new("RGB", (1, 1)), []).size == (640, 640)
    assert draw_overlay(GREY, []).size == (640, 480)
    assert draw_overlay(Image.new("RGB", (5000, 2500)), []).size == (2048, 1024)


def test_enlarged_mask_keeps_its_position() -> None:
    region = Region(id="a", name="", visible=rectangle(30, 40, 90, 80, (120, 160)))
    drawn = pixels(draw_overlay(Image.new("RGB", (160, 120), (90, 90, 90)), [region]))
    assert tint(drawn[120:360, 160:320]) > 40
    assert tint(drawn[:110, :]) == tint(drawn[:480, 330:]) == 0


def test_question_answer_and_legend_are_written_below_the_image() -> None:
    answer = Answer(
        text="The left block.", phrases=(Phrase(start=4, stop=14, regions=(0,)),)
    )
    region = Region(id="a", name="", visible=VISIBLE)
    drawn = draw_overlay(
        GREY, [region], question="Which block is on the left? " * 8, answer=answer
    )
    assert drawn.width == 640
    assert drawn.height > 480 + 5 * 17
    below = pixels(drawn)[480:]
    assert (np.abs(below - PALETTE[0]).max(-1) < 5).sum() > 100
    plain = draw_overlay(
        GREY,
        [region],
        question="Which block is on the left? " * 8,
        answer=Answer(text=answer.text),
    )
    assert tint(pixels(plain)[480:]) == 0


def test_narrow_images_get_a_caption() -> None:
    thin = Image.new("RGB", (20, 700))
    region = Region(
        id="a", name="something long", visible=rectangle(0, 0, 700, 20, (700, 20))
    )
    drawn = draw_overlay(thin, [region], question="What is this?")
    assert drawn.width >= 300
    assert drawn.height > 700


def test_unknown_and_empty_masks_are_drawn() -> None:
    regions = [
        Region(id="a", name="nowhere", visible=Mask.empty(480, 640)),
        Region(id="b", name="behind", visible=Mask.empty(480, 640), amodal=AMODAL),
        Region(id="c", name="whole", amodal=VISIBLE),
        PredictedRegion(amodal=AMODAL),
        PredictedRegion(visible=VISIBLE, name="木\n"),
    ]
    for mask_type in ("visible", "amodal", "both"):
        drawn = pixels(draw_overlay(GREY, regions, mask_type=mask_type))
        assert tint(drawn[150:250, 150:250]) > 10
    assert np.array_equal(pixels(draw_overlay(GREY, [])), pixels(GREY))


def test_masks_of_another_size_raise() -> None:
    with pytest.raises(
        ImageError, match=r"\(480, 640\) does not fit an image of 64 x 48"
    ):
        draw_overlay(Image.new("RGB", (64, 48)), [HALF_HIDDEN])


def test_input_image_is_not_changed() -> None:
    before = GREY.copy()
    draw_overlay(GREY, [HALF_HIDDEN], question="?")
    assert before == GREY


def test_labels_can_be_switched_off() -> None:
    named = Region(id="a", name="cup", visible=VISIBLE)
    unnamed = Region(id="a", name="", visible=VISIBLE)
    assert draw_overlay(GREY, [named], labels=False) == draw_overlay(GREY, [unnamed])
    assert draw_overlay(GREY, [named]) != draw_overlay(GREY, [unnamed])


def test_ignored_pixels_are_hatched_and_named_in_the_legend() -> None:
    plain = draw_overlay(GREY, [])
    hatched = draw_overlay(GREY, [], ignore=VISIBLE)
    assert plain.size == (640, 480)
    assert hatched.height > 480
    changed = (pixels(plain) != pixels(hatched)[:480]).any(-1)
    assert np.array_equal(changed, VISIBLE.to_dense())
    with pytest.raises(ImageError, match="does not fit"):
        draw_overlay(GREY, [], ignore=Mask.empty(10, 10))


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.lists(st.tuples(st.text(max_size=40), st.integers(0, 2**32 - 1)), max_size=4),
    st.sampled_from(["visible", "amodal", "both"]),
)
def test_random_small_scenes_are_drawn(
    height: int, width: int, names: list, mask_type: str
) -> None:
    def scribble(random: np.random.Generator) -> Mask:
        bits = random.random(height * width) < 0.3
        return Mask.from_dense(bits.reshape(height, width))

    randoms = [np.random.default_rng(seed) for _, seed in names]
    regions = [
        Region(
            id=str(number), name=name, visible=scribble(random), amodal=scribble(random)
        )
        for number, ((name, _), random) in enumerate(zip(names, randoms))
    ]
    drawn = draw_overlay(
        Image.new("RGB", (width, height)), regions, mask_type=mask_type
    )
    assert max(drawn.size) >= 640


@pytest.mark.parametrize("number", range(1, 6))
def test_cocoa_scenes_are_drawn(number: int) -> None:
    image = Image.open(shared("data", "cocoa", f"{number}.jpg"))
    record = json.loads(shared("data", "cocoa", f"{number}.json").read_text())
    size = (image.height, image.width)
    regions = []
    for row, found in enumerate(record["regions"]):
        amodal = Masks.from_polygons([[found["segmentation"]]], [size])[0]
        visible = (
            Mask(size, found["visible_mask"]["counts"])
            if "visible_mask" in found
            else amodal
        )
        regions.append(
            Region(
                id=str(row),
                name=found["name"],
                visible=visible,
                amodal=amodal,
                order=found["order"],
            )
        )
    drawn = draw_overlay(image, regions)
    assert drawn.width == image.width
    hidden = Masks.from_masks([region.amodal for region in regions]) - Masks.from_masks(
        [region.visible for region in regions]
    )
    assert hidden.area().sum() > 0
    assert tint(pixels(drawn)[: image.height]) > tint(pixels(image.convert("RGB")))
