"""A plan keeps the questions of an image together, in the dataset's order, whatever part of it is asked for."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.errors import StoreError
from maskwise.harness.plan import Plan, PlannedImage
from maskwise.store import Dataset
from tests.harness.fakes import write_dataset

counts = st.lists(st.integers(1, 4), max_size=12)


def plan_of(sizes: list[int]) -> Plan:
    """Images 10, 11, ... with that many questions each; sample rows count from 100."""
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return Plan(10 + np.arange(len(sizes)), 100 + np.arange(int(offsets[-1])), offsets)


def test_a_plan_groups_the_samples_of_a_dataset(tmp_path: Path) -> None:
    dataset = Dataset.open(write_dataset(tmp_path / "small", 9))
    plan = Plan.from_dataset(dataset)
    groups = [
        (image.id, [sample.id for sample in samples])
        for image, samples in dataset.groups()
    ]
    ids = dataset.samples.id
    assert [
        (dataset.images.id[work.image], [ids[row] for row in work.rows])
        for work in plan
    ] == groups
    assert plan.samples == len(dataset) == 18


@given(counts, st.integers(-15, 15), st.integers(-15, 15))
def test_a_slice_of_a_plan_is_a_plan(sizes: list[int], first: int, stop: int) -> None:
    plan = plan_of(sizes)
    assert list(plan[first:stop]) == list(plan)[first:stop]
    assert plan[first:stop].samples == sum(
        len(work.rows) for work in list(plan)[first:stop]
    )


def test_a_plan_is_not_cut_with_a_step() -> None:
    with pytest.raises(ValueError, match="got a step of 2"):
        plan_of([1, 2, 3])[::2]


@given(counts, st.data())
def test_a_plan_of_some_samples(sizes: list[int], data: st.DataObject) -> None:
    plan = plan_of(sizes)
    positions = (
        data.draw(st.lists(st.integers(0, plan.samples - 1), unique=True))
        if plan.samples
        else []
    )
    wanted = {100 + position for position in positions}
    expected = [
        PlannedImage(work.image, tuple(row for row in work.rows if row in wanted))
        for work in plan
    ]
    assert list(plan.only(sorted(positions))) == [
        work for work in expected if work.rows
    ]


def test_a_draw_does_not_depend_on_the_order_of_images(tmp_path: Path) -> None:
    dataset = Dataset.open(write_dataset(tmp_path / "small", 12))
    whole = {
        dataset.images.id[work.image]
        for work in Plan.from_dataset(dataset, limit=4, seed=2)
    }
    part = Dataset.open(write_dataset(tmp_path / "smaller", 11))
    smaller = {
        part.images.id[work.image] for work in Plan.from_dataset(part, limit=4, seed=2)
    }
    assert len(whole) == len(smaller) == 4
    assert len(whole - smaller) <= 1, "an image that is gone makes room for one other"
    with pytest.raises(StoreError, match="limit of 0"):
        Plan.from_dataset(dataset, limit=0)
