"""Edits of a prediction that bring it no closer to the ground truth raise no metric of `strict`."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from maskwise.masks import Mask
from maskwise.protocols import strict
from maskwise.schema import PredictedRegion, Prediction, Region, Sample
from tests.protocols.small_cases import answer_naming, scoring_input
from tests.protocols.strategies import FRAME, PIXELS

EMPTY = Mask.empty(*FRAME)
LOWER_IS_BETTER = {"target_count_error", "visible_outside_amodal"}

CANNOT_SEE: dict[str, set[str]] = {
    # Of what is left out, precision and its like cannot know that it was right in part.
    "drop": {"precision", "f1", "visible_outside_amodal"},
    "empty": {"precision", "f1", "visible_outside_amodal"},
    # A region in two pieces can make up the number of another one that is missing; outlines do not see the inside.
    "split": {"target_count_error", "boundary_iou", "visible_outside_amodal"},
    # A prediction that says "nothing here" has no region at all.
    "no_target": {"precision", "f1", "visible_outside_amodal"},
}
"""What the docstring of `strict` says that a metric cannot see, by edit."""


@st.composite
def partly_right(draw):
    """Questions with disjoint targets, and predictions whose every region is a part of a target of its own."""
    samples = []
    predictions = []
    for number in range(draw(st.integers(1, 3))):
        owner = draw(st.lists(st.integers(0, 3), min_size=PIXELS, max_size=PIXELS))
        requested = draw(st.sampled_from(["visible", "amodal", "both"]))
        targets = []
        regions = []
        for k in range(3):
            amodal = [one == k for one in owner]
            if not any(amodal):
                continue
            name = f"thing {k}"
            visible = _part(draw, amodal)
            targets.append(
                Region(
                    id=f"{number}-{k}",
                    name=name,
                    visible=_mask(visible),
                    amodal=_mask(amodal),
                )
            )
            if draw(st.integers(0, 3)):
                seen = _part(draw, visible)
                hidden = _part(
                    draw, [whole and not front for whole, front in zip(amodal, visible)]
                )
                own = seen, [one or other for one, other in zip(seen, hidden)]
                fields = dict(zip(("visible", "amodal"), map(_mask, own)))
                regions.append(
                    PredictedRegion(name=name, score=draw(st.floats(0, 1)), **fields)
                )
        samples.append(
            Sample(
                id=str(number),
                image_id=str(number),
                question="?",
                mask_type=requested,
                targets=tuple(targets),
                answer=answer_naming([one.name for one in targets]),
            )
        )
        predictions.append(
            Prediction(sample=str(number), regions=tuple(regions), mask_type=requested)
        )
    return samples, predictions


def _part(draw: Any, pixels: list[bool]) -> list[bool]:
    """A part of the pixels, not empty if they are not."""
    keep = draw(st.lists(st.booleans(), min_size=len(pixels), max_size=len(pixels)))
    part = [one and kept for one, kept in zip(pixels, keep)]
    return part if any(part) else pixels


def _mask(pixels: list[bool]) -> Mask:
    return Mask.from_dense(np.array(pixels, bool).reshape(FRAME))


def replace(record: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(record, **fields)


def change_region(
    prediction: Prediction, item: int, *regions: PredictedRegion
) -> Prediction:
    kept = prediction.regions
    return replace(prediction, regions=(*kept[:item], *regions, *kept[item + 1 :]))


def drop(draw: Any, one: Prediction, item: int) -> Prediction:
    return change_region(one, item)


def duplicate(draw: Any, one: Prediction, item: int) -> Prediction:
    return change_region(one, item, one.regions[item], one.regions[item])


def split(draw: Any, one: Prediction, item: int) -> Prediction:
    region = one.regions[item]
    cut = _mask(draw(st.lists(st.booleans(), min_size=PIXELS, max_size=PIXELS)))
    inside = replace(region, visible=region.visible & cut, amodal=region.amodal & cut)
    outside = replace(region, visible=region.visible - cut, amodal=region.amodal - cut)
    return change_region(one, item, inside, outside)


def empty(draw: Any, one: Prediction, item: int) -> Prediction:
    kinds = draw(st.sampled_from([("visible",), ("amodal",), ("visible", "amodal")]))
    return change_region(
        one, item, replace(one.regions[item], **dict.fromkeys(kinds, EMPTY))
    )


def omit_mask(draw: Any, one: Prediction, item: int) -> Prediction:
    return change_region(
        one,
        item,
        replace(
            one.regions[item], **{draw(st.sampled_from(["visible", "amodal"])): None}
        ),
    )


def omit_name(draw: Any, one: Prediction, item: int) -> Prediction:
    return change_region(one, item, replace(one.regions[item], name=None))


def rename(draw: Any, one: Prediction, item: int) -> Prediction:
    return change_region(one, item, replace(one.regions[item], name="something else"))


def relabel(draw: Any, one: Prediction, item: int) -> Prediction:
    wrong = [
        kind for kind in ("visible", "amodal", "both", None) if kind != one.mask_type
    ]
    return replace(one, mask_type=draw(st.sampled_from(wrong)))


def reorder(draw: Any, one: Prediction, item: int) -> Prediction:
    return replace(one, regions=tuple(draw(st.permutations(one.regions))))


def add_empty(draw: Any, one: Prediction, item: int) -> Prediction:
    return change_region(
        one,
        item,
        one.regions[item],
        PredictedRegion(visible=EMPTY, amodal=EMPTY, name="thing 0"),
    )


def no_target(draw: Any, one: Prediction, item: int) -> Prediction:
    return replace(one, no_target=True)


EDITS: list[Callable[[Any, Prediction, int], Prediction]] = [
    drop,
    duplicate,
    split,
    empty,
    omit_mask,
    omit_name,
    rename,
    relabel,
    reorder,
    add_empty,
    no_target,
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
@given(data=st.data())
@settings(max_examples=40, deadline=None, phases=[Phase.generate])
def test_no_edit_raises_a_metric(edit, data):
    samples, predictions = data.draw(partly_right())
    edited = [
        edit(data.draw, one, data.draw(st.integers(0, len(one.regions) - 1)))
        if one.regions and data.draw(st.booleans())
        else one
        for one in predictions
    ]
    before, after = (
        strict.score(scoring_input(samples, made, FRAME)).headline()
        for made in (predictions, edited)
    )
    for name in before.keys() - CANNOT_SEE.get(edit.__name__, set()):
        old = before[name]
        new = after[name]
        if old is None or new is None:
            # Only a share of what was predicted can lose its denominator.
            assert old == new or name in ("precision", "visible_outside_amodal"), name
        elif edit in (reorder, add_empty):
            assert new == pytest.approx(old, abs=1e-9), name
        elif name in LOWER_IS_BETTER:
            assert new >= old - 1e-9, name
        else:
            assert new <= old + 1e-9, name
