"""Visible pixels outside the amodal mask: find them, and repair them with one operation."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from maskwise.errors import MaskError
from maskwise.masks import Mask
from maskwise.schema import Region


class MaskProblem(msgspec.Struct, frozen=True):
    """Something wrong with the masks of a region. pixels: how many are affected."""

    region: str
    kind: Literal["visible_outside_amodal"]
    pixels: int


def find_mask_problems(regions: Iterable[Region]) -> list[MaskProblem]:
    """The regions whose visible mask extends beyond the amodal one."""
    problems = []
    for region in regions:
        if region.visible is None or region.amodal is None:
            continue
        inside, area, _ = region.visible.areas_with(region.amodal)
        outside = area - inside
        if outside:
            problem = MaskProblem(region.id, "visible_outside_amodal", outside)
            problems.append(problem)
    return problems


class RepairedMasks(msgspec.Struct, frozen=True):
    """Masks of which the visible one lies inside the amodal one. changed: how many pixels were added or removed."""

    visible: Mask
    amodal: Mask
    changed: int


def repair_masks(
    visible: Mask, amodal: Mask, keep: Literal["visible", "amodal"] = "visible"
) -> RepairedMasks:
    """Make the visible mask lie inside the amodal one.

    keep="visible" adds the outside pixels to the amodal mask: what a person sees belongs to the object, while the
    hidden part is an estimate. keep="amodal" removes them from the visible mask.
    """
    if visible.size != amodal.size:
        raise MaskError(f"sizes differ: visible {visible.size}, amodal {amodal.size}")
    outside = (visible - amodal).area
    if keep == "visible":
        return RepairedMasks(visible, amodal | visible, outside)
    return RepairedMasks(visible & amodal, amodal, outside)
