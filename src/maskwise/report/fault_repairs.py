"""What is wrong with the prediction of one question, fault by fault, and the prediction with some faults repaired.

A question is looked at once, as it was predicted: regions are paired with targets, and every wrong pixel, region or
type is put down to one fault. A repair undoes what belongs to its fault and nothing else. So repairs can be made in any
order, the prediction without any repair is the one that was given, and the one with all repairs is the truth.

Regions and targets are paired as `strict` does, with the mask type repaired. A pair below SAME_OBJECT is none: the
region is about something else.
- wrong target: a region without a target beside a target without a region; the repair puts the target in its place
- missed target, extra region: what remains of either; the repair adds the target, or removes the region
- wrong mask type: the prediction states another type, or a paired region lacks the mask of the requested type; the
  repair states the requested type, and a mask of the other type stands for the one that lacks
- over-completion: pixels drawn as hidden that are not. Of an amodal mask, what is outside the true one and not in the
  predicted visible mask; without such a mask, what is nearer to the hidden part of the target than to the visible one.
  Of a visible mask, the true hidden part
- missing completion: hidden pixels of the target that the amodal mask lacks
- visible boundary: all other wrong pixels, those of the visible part
Where a target has no visible mask, its whole amodal mask counts as visible.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from maskwise.masks import Mask
from maskwise.schema import PredictedRegion, Prediction, Region, Sample

FAULTS = {
    "failed": "no prediction, or one that cannot be read",
    "silent": "no region, though there are targets",
    "invented": "regions, though there is no target",
    "wrong_target": "a region on something else, and a target without one",
    "missed_target": "fewer regions than targets",
    "extra_region": "more regions than targets",
    "wrong_mask_type": "visible and amodal confused",
    "visible_boundary": "wrong pixels of the visible part",
    "missing_completion": "hidden pixels that were not drawn",
    "over_completion": "pixels drawn as hidden that are not",
}
"""By name, in the order in which they are repaired, with what each means."""

REPAIRED_FAULTS = tuple(FAULTS)[3:]
"""Those that a question with targets and regions may have; each of the others is the only fault of its question."""

SAME_OBJECT = 0.1
"""IoU from which a region is about a target: the threshold below which TIDE (Bolya et al., ECCV 2020) takes a
detection for background."""

Slot = Literal["visible", "amodal"]
SLOTS: tuple[Slot, ...] = get_args(Slot)
Edit = tuple[Mask, Mask]
"""Pixels to add and pixels to remove."""


@dataclass(frozen=True)
class SlotMask:
    """A mask of a region that is compared with one type of mask of a target.

    given: whether the region has a mask of this type; otherwise `mask` is the one it has.
    """

    mask: Mask
    given: bool


@dataclass(frozen=True)
class ShownRegion:
    """A region that counts. slots: by requested type; visible: its visible mask where it has pixels."""

    slots: Mapping[Slot, SlotMask]
    visible: Mask | None

    def to_region(
        self, *, typed: bool, edits: Mapping[Slot, Iterable[Edit]] | None = None
    ) -> PredictedRegion:
        """The region with edited masks. typed: a mask of another type stands for one that lacks."""
        masks = {}
        for slot, held in self.slots.items():
            mask = held.mask
            for added, removed in (edits or {}).get(slot, ()):
                mask = (mask | added) - removed
            if held.given or typed:
                masks[slot] = mask
        if not masks:
            # Nothing of the requested type: the mask stays in the other place, where it has no IoU.
            (slot,) = self.slots
            masks[_other(slot)] = self.slots[slot].mask
        return PredictedRegion(visible=masks.get("visible"), amodal=masks.get("amodal"))


@dataclass(frozen=True)
class ShownQuestion:
    """A question with targets and regions that count. wrong_type: the prediction states a type that is not accepted."""

    sample: Sample
    regions: tuple[ShownRegion, ...]
    wrong_type: bool

    @property
    def with_type(self) -> Prediction:
        """The prediction with its mask type repaired."""
        regions = tuple(region.to_region(typed=True) for region in self.regions)
        return Prediction(
            sample=self.sample.id, mask_type=self.sample.mask_type, regions=regions
        )


def show_question(
    sample: Sample,
    regions: Sequence[PredictedRegion],
    *,
    scored_type: Slot,
    wrong_type: bool,
) -> ShownQuestion:
    """A question and the regions of its prediction that count, without ignored pixels.

    scored_type: the type of mask that `strict` looks at, where it is one.
    """
    shown = []
    for region in regions:
        masks = {slot: _without(region.mask(slot), sample.ignore) for slot in SLOTS}
        slots: dict[Slot, SlotMask]
        if sample.mask_type == "both":
            slots = {slot: _slot_mask(masks, slot) for slot in SLOTS}
        else:
            slots = {sample.mask_type: _slot_mask(masks, scored_type)}
        shown.append(ShownRegion(slots, masks["visible"]))
    return ShownQuestion(sample, tuple(shown), wrong_type)


@dataclass(frozen=True)
class PairedRegion:
    """A region and the edits that turn it into its target: by fault and type."""

    region: ShownRegion
    edits: Mapping[str, Mapping[Slot, Edit]]

    @property
    def lacks_type(self) -> bool:
        """Whether it has no mask of a requested type."""
        return not all(held.given for held in self.region.slots.values())


@dataclass(frozen=True)
class FaultyQuestion:
    """A question with everything that is wrong with its prediction.

    wrong: regions about something else, each with the target that takes its place.
    """

    shown: ShownQuestion
    paired: tuple[PairedRegion, ...]
    wrong: tuple[tuple[ShownRegion, Region], ...]
    extra: tuple[ShownRegion, ...]
    missed: tuple[Region, ...]

    @property
    def faults(self) -> list[str]:
        """The faults of the prediction, in the order of repair."""
        has = {
            "wrong_target": bool(self.wrong),
            "missed_target": bool(self.missed),
            "extra_region": bool(self.extra),
            "wrong_mask_type": self.shown.wrong_type
            or any(pair.lacks_type for pair in self.paired),
        }
        for fault in REPAIRED_FAULTS[len(has) :]:
            has[fault] = any(fault in pair.edits for pair in self.paired)
        return [fault for fault in REPAIRED_FAULTS if has[fault]]

    def repair(self, faults: Collection[str]) -> Prediction | None:
        """The prediction without these faults; None where its stated type is wrong, so that it scores 0."""
        typed = "wrong_mask_type" in faults
        if self.shown.wrong_type and not typed:
            return None
        regions = []
        for pair in self.paired:
            edits: dict[Slot, list[Edit]] = {}
            for fault in pair.edits.keys() & faults:
                for slot, edit in pair.edits[fault].items():
                    edits.setdefault(slot, []).append(edit)
            regions.append(pair.region.to_region(typed=typed, edits=edits))
        for region, target in self.wrong:
            if "wrong_target" in faults:
                regions.append(_true_region(target))
            else:
                regions.append(region.to_region(typed=typed))
        if "extra_region" not in faults:
            regions += [region.to_region(typed=typed) for region in self.extra]
        if "missed_target" in faults:
            regions += [_true_region(target) for target in self.missed]
        sample = self.shown.sample
        return Prediction(
            sample=sample.id, mask_type=sample.mask_type, regions=tuple(regions)
        )


def find_faults(
    shown: ShownQuestion,
    pairs: Sequence[tuple[int, int, float]],
    targets: Collection[int],
) -> FaultyQuestion:
    """What is wrong with a prediction.

    pairs: position of a region, of a target, and their IoU, with the mask type repaired; targets: those that count.
    """
    sample = shown.sample
    same = {region: target for region, target, iou in pairs if iou >= SAME_OBJECT}
    # A region that overlaps a target a little is rather the wrong one than the extra one:
    # so an extra region is never worth anything, and removing it cannot cost.
    little = {region for region, _, iou in pairs if iou < SAME_OBJECT}
    others = [place for place in range(len(shown.regions)) if place not in same]
    others.sort(key=lambda place: place not in little)
    missing = [place for place in sorted(targets) if place not in same.values()]
    count = min(len(others), len(missing))
    paired = [
        _pair(sample, shown.regions[region], sample.targets[target])
        for region, target in sorted(same.items())
    ]
    replaced = zip(others[:count], missing[:count], strict=True)
    return FaultyQuestion(
        shown,
        tuple(paired),
        tuple(
            (shown.regions[region], sample.targets[target])
            for region, target in replaced
        ),
        tuple(shown.regions[region] for region in others[count:]),
        tuple(sample.targets[target] for target in missing[count:]),
    )


def _pair(sample: Sample, region: ShownRegion, target: Region) -> PairedRegion:
    slots = dict(region.slots)
    edits: dict[str, dict[Slot, Edit]] = {}
    for slot, held in region.slots.items():
        truth = _without(target.mask(slot), sample.ignore)
        if not held.given and truth is None:
            # The target has no mask of this type either.
            del slots[slot]
            continue
        if target.mask(slot) is None:
            continue
        for fault, edit in _slot_edits(sample, region, target, slot).items():
            if any(mask.area for mask in edit):
                edits.setdefault(fault, {})[slot] = edit
    return PairedRegion(ShownRegion(slots, region.visible), edits)


def _slot_edits(
    sample: Sample, region: ShownRegion, target: Region, slot: Slot
) -> dict[str, Edit]:
    """The edits that turn one mask of a region into that of its target, by fault."""
    nothing = Mask.empty(*target.size)
    truth = _without(target.mask(slot), sample.ignore) or nothing
    mask = region.slots[slot].mask
    lacking = truth - mask
    surplus = mask - truth
    hidden = nothing
    if target.visible is not None and target.amodal is not None:
        hidden = target.amodal - target.visible
    if slot == "visible":
        over = surplus & hidden
    elif region.visible is not None:
        over = surplus - region.visible
    else:
        over = _nearest_to(surplus, hidden & truth, truth - hidden)
    missing = lacking & hidden
    return {
        "visible_boundary": (lacking - missing, surplus - over),
        "missing_completion": (missing, nothing),
        "over_completion": (nothing, over),
    }


def _nearest_to(pixels: Mask, part: Mask, rest: Mask) -> Mask:
    """Those of the pixels that are nearer to a part than to the rest."""
    from scipy.ndimage import distance_transform_edt  # noqa: PLC0415

    if not pixels.area or not part.area:
        return Mask.empty(*pixels.size)
    if not rest.area:
        return pixels
    x, y, width, height = (pixels | part | rest).box
    window = (slice(y, y + height), slice(x, x + width))
    distances = [
        distance_transform_edt(~mask.to_dense()[window]) for mask in (part, rest)
    ]
    nearer = np.zeros(pixels.size, bool)
    nearer[window] = distances[0] < distances[1]
    return pixels & Mask.from_dense(nearer)


def _slot_mask(masks: Mapping[Slot, Mask | None], slot: Slot) -> SlotMask:
    """The mask of a type, or the other one. A region that counts has pixels in one of them."""
    mask = masks[slot]
    if mask is not None:
        return SlotMask(mask, given=True)
    other = masks[_other(slot)]
    assert other is not None
    return SlotMask(other, given=False)


def _without(mask: Mask | None, ignore: Mask | None) -> Mask | None:
    """A mask without ignored pixels; None if nothing is left, as in `strict`."""
    if mask is None:
        return None
    rest = mask if ignore is None else mask - ignore
    return rest if rest.area else None


def _other(slot: Slot) -> Slot:
    return "amodal" if slot == "visible" else "visible"


def _true_region(target: Region) -> PredictedRegion:
    return PredictedRegion(visible=target.visible, amodal=target.amodal)
