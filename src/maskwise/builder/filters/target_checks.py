"""Checks of the targets: they exist, have phrases and masks, and are large and visible enough."""

from collections import Counter

from maskwise.builder.draft import Draft, SourceImage, find_phrases
from maskwise.builder.filters.filter import FilterContext
from maskwise.masks import Mask, Masks
from maskwise.schema import Region


def find_unknown_target(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """A region that the image does not have."""
    unknown = [id for id in draft.region_ids if id not in image.by_id]
    return (
        f"no region {', '.join(map(repr, unknown))} in the image" if unknown else None
    )


def find_phrase_mismatch(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """No target, a phrase without a region, one that is not in the answer in this order, a region with two phrases."""
    if not draft.targets:
        return "the answer refers to no region"
    phrases = [target.phrase for target in draft.targets]
    empty = [
        target.phrase
        for target in draft.targets
        if not target.regions or not target.phrase.strip()
    ]
    if empty:
        return f"phrase {empty[0]!r} and its regions must not be empty"
    missing = [
        phrase
        for phrase, span in zip(phrases, find_phrases(draft.answer, phrases))
        if span is None
    ]
    if missing:
        return f"{missing[0]!r} is not in the answer, after the phrases before it"
    uses = Counter(id for target in draft.targets for id in target.regions)
    twice = [id for id, count in uses.items() if count > 1]
    return f"region {twice[0]!r} has {uses[twice[0]]} phrases" if twice else None


def find_missing_mask(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """A target without the mask that the question asks for."""
    for region in _targets(draft, image):
        if draft.mask_type != "amodal" and region.visible is None:
            return f"region {region.id!r} has no visible mask"
        if draft.mask_type != "visible" and region.amodal is None:
            return f"region {region.id!r} has no amodal mask"
    return None


def find_small_target(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """A target whose requested mask is too small."""
    pixels = image.info.width * image.info.height
    for region in _targets(draft, image):
        mask = _requested_mask(draft, region)
        if mask.area < context.options.min_area * pixels or not mask.area:
            return f"region {region.id!r} covers {mask.area} of {pixels} pixels"
    return None


def find_hidden_target(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """A target of which too much is hidden."""
    for id in draft.region_ids:
        hidden = image.occlusion.get(id, 0.0)
        if hidden > context.options.max_occlusion:
            return f"{100 * hidden:.0f} % of region {id!r} is hidden"
    return None


def find_truncated_target(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """A target of an amodal question that continues beyond the image border, so that its whole shape is unknown."""
    if draft.mask_type != "amodal":
        return None
    for region in _targets(draft, image):
        share = border_share(_requested_mask(draft, region))
        if share > context.options.max_border:
            return f"{100 * share:.0f} % of the box of region {region.id!r} lies on the image border"
    return None


def find_unoccluded_amodal(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """An amodal question about targets of which nothing is hidden."""
    if draft.mask_type != "amodal" or not draft.region_ids:
        return None
    most = max(image.occlusion.get(id, 0.0) for id in draft.region_ids)
    if most >= context.options.min_occlusion:
        return None
    return f"at most {100 * most:.0f} % of a target is hidden"


def border_share(mask: Mask) -> float:
    """Length of the image border that a mask touches, as a share of the perimeter of its box; 0 if it is empty."""
    left, top, width, height = mask.box
    if not width:
        return 0.0
    rows, columns = mask.size
    inside = left > 0 and top > 0 and left + width < columns and top + height < rows
    return 0.0 if inside else _border_length(mask) / (2 * (width + height))


def _border_length(mask: Mask) -> int:
    """Mask pixels in the first and last row and column; a corner counts twice."""
    rows, columns = mask.size
    sides = [
        (0, 0, columns, 1),
        (0, rows - 1, columns, 1),
        (0, 0, 1, rows),
        (columns - 1, 0, 1, rows),
    ]
    lines = Masks.from_boxes(sides, [mask.size] * len(sides))
    return int((Masks.from_masks([mask] * len(sides)) & lines).area().sum())


def _targets(draft: Draft, image: SourceImage) -> list[Region]:
    return [image.by_id[id] for id in draft.region_ids]


def _requested_mask(draft: Draft, region: Region) -> Mask:
    """The mask that the question asks for; the visible one if it asks for both."""
    mask = region.amodal if draft.mask_type == "amodal" else region.visible
    assert mask is not None, "drafts without the requested mask were rejected before"
    return mask
