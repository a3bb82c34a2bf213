"""Masks that contradict each other, and regions that several samples share and change."""

import pytest

from maskwise.errors import MaskError
from maskwise.masks import Mask
from maskwise.review.mask_problems import find_mask_problems, repair_masks
from maskwise.review.region_versions import merge_region_versions
from maskwise.schema import Region, Sample
from tests.review.datasets import box


def cup(width: int, id: str = "cup") -> Region:
    return Region(id=id, name="cup", visible=box(0, 0, width, 4))


def sample(id: str, *targets: Region) -> Sample:
    return Sample(id=id, image_id="i", question="Which?", targets=targets)


def test_visible_pixels_outside_the_amodal_mask_are_counted() -> None:
    wrong = Region(id="a", name="", visible=box(0, 0, 4, 4), amodal=box(1, 0, 4, 4))
    right = Region(id="b", name="", visible=box(0, 0, 2, 4), amodal=box(0, 0, 4, 4))
    unknown = Region(id="c", name="", visible=box(0, 0, 2, 4))
    (problem,) = find_mask_problems([wrong, right, unknown])
    assert (problem.region, problem.kind, problem.pixels) == (
        "a",
        "visible_outside_amodal",
        4,
    )


def test_a_repair_keeps_what_the_person_chooses() -> None:
    visible = box(0, 0, 4, 4)
    amodal = box(1, 0, 4, 4)
    grown = repair_masks(visible, amodal)
    assert (grown.visible, grown.amodal) == (visible, box(0, 0, 5, 4))
    cut = repair_masks(visible, amodal, "amodal")
    assert (cut.visible, cut.amodal) == (box(1, 0, 3, 4), amodal)
    assert grown.changed == cut.changed == 4


def test_masks_of_two_sizes_cannot_be_repaired() -> None:
    with pytest.raises(MaskError, match="sizes differ"):
        repair_masks(box(0, 0, 4, 4), Mask(size=(2, 2), counts="4"))


def test_a_version_that_all_samples_use_replaces_the_original() -> None:
    regions, samples, renamed = merge_region_versions(
        [cup(4), cup(2, "other")],
        [sample("s", cup(5)), sample("t", cup(5))],
    )
    assert regions == [cup(5), cup(2, "other")]
    assert [one.targets for one in samples] == [(cup(5),), (cup(5),)]
    assert renamed == {}


def test_the_only_changed_version_replaces_the_original() -> None:
    regions, samples, renamed = merge_region_versions(
        [cup(4)], [sample("s", cup(5)), sample("t", cup(4))]
    )
    assert regions == [cup(5)]
    assert [one.targets for one in samples] == [(cup(5),), (cup(5),)]
    assert renamed == {}


def test_of_several_versions_the_original_keeps_the_id() -> None:
    regions, samples, renamed = merge_region_versions(
        [cup(4)], [sample("s", cup(5)), sample("t", cup(4)), sample("u", cup(6))]
    )
    assert [(region.id, region.visible) for region in regions] == [
        ("cup", box(0, 0, 4, 4)),
        ("cup~2", box(0, 0, 5, 4)),
        ("cup~3", box(0, 0, 6, 4)),
    ]
    assert [one.targets[0].id for one in samples] == ["cup~2", "cup", "cup~3"]
    assert renamed == {"s": {"cup": "cup~2"}, "u": {"cup": "cup~3"}}


def test_without_the_original_the_first_version_keeps_the_id() -> None:
    _, samples, renamed = merge_region_versions(
        [cup(4)], [sample("s", cup(5)), sample("t", cup(6))]
    )
    assert [one.targets[0].id for one in samples] == ["cup", "cup~2"]
    assert renamed == {"t": {"cup": "cup~2"}}


def test_a_new_id_is_one_that_no_region_has() -> None:
    taken = cup(1, "cup~2")
    regions, _, renamed = merge_region_versions(
        [cup(4), taken], [sample("s", cup(5)), sample("t", cup(6))]
    )
    assert renamed == {"t": {"cup": "cup~3"}}
    assert taken in regions


def test_new_regions_of_reviewers_are_added() -> None:
    regions, _, renamed = merge_region_versions([cup(4)], [sample("s", cup(2, "mug"))])
    assert [region.id for region in regions] == ["cup", "mug"]
    assert renamed == {}
    assert merge_region_versions([], []) == ([], [], {})
