"""The oracle repeats the truth, or spoils it as much as it is told to."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from maskwise.harness.oracle import Oracle
from maskwise.harness.predictor import call_model
from maskwise.masks import Mask
from maskwise.schema import Answer, Phrase, Prediction, Region, Sample

HEIGHT = 60
WIDTH = 80
IMAGE = Image.new("RGB", (WIDTH, HEIGHT))


def box(top: int, left: int, bottom: int, right: int) -> Mask:
    inside = np.zeros((HEIGHT, WIDTH), bool)
    inside[top:bottom, left:right] = True
    return Mask.from_dense(inside)


REGIONS = (
    Region(
        id="r0", name="box", visible=box(10, 10, 40, 30), amodal=box(10, 10, 40, 50)
    ),
    Region(id="r1", name="lid", visible=box(40, 50, 60, 80)),
    Region(
        id="r2",
        name="hidden",
        visible=Mask.empty(HEIGHT, WIDTH),
        amodal=box(0, 0, 5, 5),
    ),
)
ANSWER = Answer(
    text="box, lid, hidden",
    phrases=(
        Phrase(start=0, stop=3, regions=(0,)),
        Phrase(start=5, stop=8, regions=(1,)),
        Phrase(start=10, stop=16, regions=(1, 2)),
    ),
)


def sample(name: str = "s", **fields: Any) -> Sample:
    given = {"mask_type": "amodal", "targets": REGIONS, "answer": ANSWER, **fields}
    return Sample(id=name, image_id="p", question="?", **given)


def reply(oracle: Oracle, *asked: Sample) -> list[Prediction]:
    return call_model(oracle, "predict_with_ground_truth", IMAGE, asked or (sample(),))


def test_without_options_it_repeats_the_truth() -> None:
    right, empty = reply(Oracle(), sample(), sample("none", targets=(), answer=None))
    assert [
        (region.visible, region.amodal, region.name) for region in right.regions
    ] == [(region.visible, region.amodal, region.name) for region in REGIONS]
    assert (right.mask_type, right.answer, right.no_target) == ("amodal", ANSWER, False)
    assert (empty.regions, empty.no_target) == ((), True)


def test_what_it_says_depends_on_the_sample_and_the_seed_alone() -> None:
    spoilt = {"noise": 3, "drop": 0.3, "add": 0.5, "flip": 0.5}
    alone = reply(Oracle(**spoilt), sample("b"))
    among = reply(Oracle(**spoilt), sample("a"), sample("b"), sample("c"))
    assert among[1] == alone[0]
    assert reply(Oracle(**spoilt, seed=1), sample("b")) != alone
    assert len({str(one.regions) for one in among}) == 3


@given(noise=st.floats(0.1, 20), seed=st.integers(0, 1000))
def test_noise_keeps_visible_inside_amodal(noise: float, seed: int) -> None:
    (spoilt,) = reply(Oracle(noise=noise, seed=seed))
    first, second, hidden = spoilt.regions
    assert first.visible is not None
    assert first.amodal is not None
    assert first.visible.inside(first.amodal)
    assert second.amodal is None, "what is not known stays unknown"
    assert hidden.visible is not None
    assert hidden.visible.area == 0, "what is hidden stays hidden"


def test_more_noise_is_worse_and_moves_boundaries_that_far() -> None:
    def mean_iou(noise: float) -> float:
        ious = []
        for seed in range(30):
            region = reply(Oracle(noise=noise, seed=seed))[0].regions[0]
            assert region.visible is not None
            ious.append(region.visible.iou(box(10, 10, 40, 30)))
        return float(np.mean(ious))

    found = [mean_iou(noise) for noise in (0.5, 2, 5)]
    assert found == sorted(found, reverse=True)
    # A boundary of 100 pixels that wanders by d on average changes about 100 d pixels of 600.
    assert found[1] == pytest.approx(1 - 100 * 2 * 0.55 / 600, abs=0.1)


def test_chances_are_kept() -> None:
    many = [sample(f"s{k}") for k in range(300)]
    dropped = reply(Oracle(drop=0.25), *many)
    assert np.mean([len(one.regions) for one in dropped]) == pytest.approx(
        3 * 0.75, abs=0.2
    )
    for one in dropped:
        assert one.answer is not None
        assert all(
            max(phrase.regions) < len(one.regions) for phrase in one.answer.phrases
        )
        assert one.no_target == (not one.regions)
    added = reply(Oracle(add=0.4), *many)
    assert np.mean([len(one.regions) == 4 for one in added]) == pytest.approx(
        0.4, abs=0.1
    )
    flipped = reply(Oracle(flip=0.6), *many)
    assert np.mean([one.mask_type != "amodal" for one in flipped]) == pytest.approx(
        0.6, abs=0.1
    )
    assert {one.mask_type for one in flipped} == {"visible", "amodal", "both"}
