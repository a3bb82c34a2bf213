"""Augmentation: questions stay with their answers and targets, and masks with their image.

The training loader of MMR (multi_part_reason_seg_dataset.py, lines 121 to 141) permutes the questions of an image and
not their answers, so that with three questions each has the right answer with probability 1/3.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

pytest.importorskip("torch", reason="the extra `vlm` is not installed")

from maskwise.masks import Mask
from maskwise.models.vlm.batch import ImageQuestions
from maskwise.schema import Answer, Phrase, Region, Sample
from maskwise.training.vlm.augment import (
    Augmentation,
    augment,
    can_flip,
    choose_questions,
    cut,
    mirror,
    resize,
)
from maskwise.training.vlm.mirrored_text import (
    can_mirror,
    mirror_answer,
    mirror_text,
)

COLORS = [(250, 10, 10), (10, 250, 10), (10, 10, 250)]
NAMES = ["red", "green", "blue"]
EVERYTHING = Augmentation(
    flip=0.5,
    crop=0.8,
    crop_area=0.3,
    longest_side=(32, 90),
    brightness=0.1,
    contrast=0.1,
    saturation=0.1,
)


@st.composite
def items(draw: st.DrawFn) -> ImageQuestions:
    """An image with a rectangle of each color, and a question about each: name, color and mask belong together."""
    width = draw(st.integers(40, 70))
    height = draw(st.integers(40, 70))
    pixels = np.full((height, width, 3), 128, np.uint8)
    regions = []
    for number, color in enumerate(COLORS):
        left = draw(st.integers(0, width - 12))
        top = draw(st.integers(12 * number, 12 * number + 2))
        right = draw(st.integers(left + 6, min(width, left + 20)))
        plane = np.zeros((height, width), bool)
        plane[top : top + 10, left:right] = True
        pixels[plane] = color
        mask = Mask.from_dense(plane)
        regions.append(
            Region(id=NAMES[number], name=NAMES[number], visible=mask, amodal=mask)
        )
    text = "It is the {} one on the shelf."
    samples = tuple(
        Sample(
            id=name,
            image_id="1",
            question=f"Where is the {name} one?",
            targets=(region,),
            answer=Answer(
                text=text.format(name),
                phrases=(Phrase(start=6, stop=14 + len(name), regions=(0,)),),
            ),
            ignore=region.visible,
        )
        for name, region in zip(NAMES, regions)
    )
    return ImageQuestions(Image.fromarray(pixels), samples, tuple(regions))


@given(items(), st.integers(0, 2**32), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_questions_answers_and_masks_stay_together(
    item: ImageQuestions, seed: int, count: int
) -> None:
    random = np.random.default_rng(seed)
    chosen = ImageQuestions(
        item.image, choose_questions(item.samples, count, random), item.regions
    )
    changed = augment(chosen, EVERYTHING, random)
    assert changed.image is not None
    assert len(changed.samples) == count
    pixels = np.asarray(changed.image, np.int64)
    for sample in changed.samples:
        color = NAMES.index(sample.id)
        assert sample.question == f"Where is the {sample.id} one?"
        assert sample.answer is not None
        assert sample.answer.text == f"It is the {sample.id} one on the shelf."
        (target,) = sample.targets
        assert target.name == sample.id
        assert target.visible is not None
        assert target.visible.size == changed.image.size[::-1]
        assert target.visible == sample.ignore == target.amodal
        dense = target.visible.to_dense()
        assert dense.any(), "a crop keeps every target"
        inside = pixels[dense].mean(0)
        assert inside.argmax() == color, "the mask covers the pixels of its own color"
    assert all(region.size == changed.image.size[::-1] for region in changed.regions)


@given(items())
@settings(max_examples=20, deadline=None)
def test_mirroring_twice_gives_the_same_item(item: ImageQuestions) -> None:
    again = mirror(mirror(item))
    assert again.samples == item.samples
    assert again.regions == item.regions
    assert np.array_equal(np.asarray(again.image), np.asarray(item.image))


def sided(question: str, answer: str, phrase: str) -> ImageQuestions:
    plane = np.zeros((8, 12), bool)
    plane[2:5, 0:3] = True
    start = answer.index(phrase)
    region = Region(id="1", name="left-hand mug", visible=Mask.from_dense(plane))
    sample = Sample(
        id="s",
        image_id="1",
        question=question,
        targets=(region,),
        answer=Answer(
            text=answer,
            phrases=(Phrase(start=start, stop=start + len(phrase), regions=(0,)),),
        ),
    )
    return ImageQuestions(Image.new("RGB", (12, 8)), (sample,), (region,))


def test_sides_change_places_in_question_answer_and_names_of_a_mirrored_image() -> None:
    item = sided(
        "What is left of the Right-hand lamp?",
        "Left of it is the leftmost mug.",
        "leftmost mug",
    )
    assert can_flip(item)
    (sample,) = mirror(item).samples
    assert sample.question == "What is right of the Left-hand lamp?"
    assert sample.answer is not None
    assert sample.answer.text == "Right of it is the rightmost mug."
    (phrase,) = sample.answer.phrases
    assert sample.answer.text[phrase.start : phrase.stop] == "rightmost mug"
    assert sample.targets[0].name == "right-hand mug"
    assert sample.targets[0].visible is not None
    assert sample.targets[0].visible.box == (9, 2, 3, 3)
    always = Augmentation(flip=1.0)
    assert augment(item, always, np.random.default_rng(0)).samples == (sample,)


@pytest.mark.parametrize(
    "text",
    [
        "What is left on the plate?",
        "Which food is left over?",
        "Turn the knob clockwise.",
        "the cup right behind the pot",
        "Is that right?",
        "the right tool for this",
        "left",
    ],
)
def test_texts_in_which_a_side_cannot_be_swapped_are_not_mirrored(text: str) -> None:
    assert not can_mirror(text)
    item = sided(text, "It is the mug.", "mug")
    kept = augment(item, Augmentation(flip=1.0), np.random.default_rng(0))
    assert kept.samples == item.samples


@given(
    st.lists(
        st.sampled_from(
            ["left", "Right", "bright", "LEFT", "mug", "leftmost", "rightly"]
        ),
        max_size=6,
    )
)
def test_mirrored_texts_swap_words_only(words: list[str]) -> None:
    text = " ".join(words)
    assert mirror_text(mirror_text(text)) == text
    assert [
        word
        for word in mirror_text(text).split()
        if word in ("bright", "mug", "rightly")
    ] == [word for word in words if word in ("bright", "mug", "rightly")]
    assert mirror_answer(Answer(text=text)).text == mirror_text(text)


def test_a_text_that_names_a_place_in_the_image_is_not_cropped() -> None:
    item = sided("What is in the top left corner?", "It is the mug.", "mug")
    always = Augmentation(crop=1.0, crop_area=0.2)
    assert augment(item, always, np.random.default_rng(0)).image == item.image
    free = sided("What holds tea?", "It is the mug.", "mug")
    cropped = augment(free, always, np.random.default_rng(0))
    assert cropped.image is not None
    assert cropped.image.size != (12, 8)


def test_regions_outside_a_crop_are_left_out_of_dense_supervision() -> None:
    item = sided("What holds tea?", "It is the mug.", "mug")
    assert cut(item, (6, 0, 6, 8)).regions == ()
    assert len(cut(item, (0, 0, 6, 8)).regions) == 1
    assert resize(item, 24).regions[0].size == (16, 24)


def test_text_only_items_are_not_changed() -> None:
    item = ImageQuestions(None, (Sample(id="t", image_id="", question="Why left?"),))
    assert augment(item, EVERYTHING, np.random.default_rng(1)) is item
