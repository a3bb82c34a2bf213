"""Recipe `cocoa-cls`: COCOA-cls rebuilt from COCOA and COCO instances.

    summary = rebuild_cocoa_cls(load_dataset("cocoa_val"), load_dataset("coco_val2014"), "cocoa_cls_val")

COCOA has amodal masks and free names, COCO has categories. Follmann et al. ("Learning to See the Invisible", arXiv
1804.08864) gave a COCOA region the category of the COCO instance whose mask has an IoU of 0.75 or more with its visible
mask, and dropped all others. Their code is not published, so these rules are ours: crowds are not matched; an instance
and a region are used once, pairs of larger IoU first; images without a match are left out; a region keeps both masks
and the depth order of COCOA, and takes the id and the category of its COCO instance.

Beside its tables the folder holds `matches.jsonl`, one line per COCOA region with what it matched or nearly matched,
and `matching.json`, the summary.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from maskwise.errors import RecordError, StoreError
from maskwise.masks import Masks, pairwise_iou
from maskwise.schema import Region
from maskwise.store import Dataset, DatasetWriter
from maskwise.store.folder import refuse_source_folder

MIN_IOU = 0.75
"""Of a visible mask and an instance: as in the paper."""

BANDS = (0.25, 0.5, 0.75, 0.9)
"""Where the bands of the best IoU begin, after 0."""

PUBLISHED_OBJECTS = {"train": 6_763, "val": 3_799}
"""Objects of the published files, as the loaders of Bayesian-Amodal and VRSP count them; their sum is published."""

SUMMARY = "matching.json"
MATCHES = "matches.jsonl"


class RegionMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A region of COCOA and the COCO instance that its visible mask fits best.

    `matched` is false if the IoU is too small or the instance fits another region better. Without any instance that
    shares a pixel, `instance` and `category` are None.
    """

    image: str
    region: str
    name: str
    instance: str | None
    category: str | None
    iou: float
    matched: bool


class MatchingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What matched. `unknown_images` have no instances under their id.

    best_iou: regions by the IoU of their best instance. taken: regions above the smallest IoU whose instance fits
    another region better. categories: of the matched regions, most frequent first. published: objects of the published
    split, if it is known.
    """

    out: str
    min_iou: float
    images: int
    images_kept: int
    unknown_images: int
    regions: int
    matched: int
    taken: int
    instances: int
    best_iou: dict[str, int]
    categories: dict[str, int]
    published: int | None


def rebuild_cocoa_cls(
    cocoa: Dataset,
    coco: Dataset,
    out: str | os.PathLike[str],
    *,
    min_iou: float = MIN_IOU,
    overwrite: bool = False,
    done: Callable[[], object] = lambda: None,
) -> MatchingSummary:
    """Write the regions of COCOA that are COCO instances as a dataset folder.

    Images are found by id: COCO's images of 2014 and 2017 have the same ids. done: called after each image.
    """
    if not 0.5 < min_iou <= 1:
        raise RecordError(
            f"smallest IoU {min_iou}: expected more than 0.5, where a region cannot fit two objects, and at most 1"
        )
    split = cocoa.manifest.about.get("split")
    about = cocoa.manifest.about | {
        "recipe": "cocoa-cls",
        "recipe_source": f"{cocoa.name}, {coco.name}",
        "recipe_options": f"IoU {min_iou} or more",
    }
    matches: list[RegionMatch] = []
    unknown_images = 0
    instance_count = 0
    images_kept = 0
    path = Path(out)
    refuse_source_folder(path, [cocoa.path, coco.path])
    root = None if cocoa.image_root is None else cocoa.image_root.resolve()
    with DatasetWriter(
        path,
        name=f"{cocoa.name}-cls",
        image_root=root,
        about=about,
        overwrite=overwrite,
    ) as writer:
        for row, id in enumerate(cocoa.images.id):
            # An image with several annotators is `image@annotation`.
            coco_id = id.partition("@")[0]
            if coco_id not in coco.images.row:
                unknown_images += 1
                done()
                continue
            regions = cocoa.regions_of(row)
            instances = [
                region for region in coco.regions_of(coco_id) if not region.crowd
            ]
            _check_sizes(cocoa, id, [*regions, *instances])
            instance_count += len(instances)
            image_matches = match_regions(id, regions, instances, min_iou)
            matches += image_matches
            kept = [
                replace(region, id=match.instance, name=match.category)
                for region, match in zip(regions, image_matches)
                if match.matched
            ]
            if kept:
                images_kept += 1
                data = cocoa.images.table["data"][row].as_py()
                writer.add_image(cocoa.image(row), kept, data)
            done()
        if not images_kept:
            raise StoreError(
                f"no region of {cocoa.path} matches an instance of {coco.path}: "
                f"{unknown_images} of {len(cocoa.images)} images have no instances under their id"
            )
        summary = _summarize(
            matches,
            out=str(path),
            min_iou=min_iou,
            images=len(cocoa.images),
            images_kept=images_kept,
            unknown_images=unknown_images,
            instances=instance_count,
            published=PUBLISHED_OBJECTS.get(split or ""),
        )
        text = msgspec.json.format(msgspec.json.encode(summary), indent=2)
        (writer.folder / SUMMARY).write_bytes(text + b"\n")
        lines = [msgspec.json.encode(match) + b"\n" for match in matches]
        (writer.folder / MATCHES).write_bytes(b"".join(lines))
    return summary


def match_regions(
    image: str, regions: Sequence[Region], instances: Sequence[Region], min_iou: float
) -> list[RegionMatch]:
    """For each region the instance that its visible mask fits, or the best of those that it does not fit."""
    overlaps = np.zeros((len(regions), len(instances)))
    if regions and instances:
        overlaps = pairwise_iou(_visible_masks(regions), _visible_masks(instances))
    pairs = np.argwhere(overlaps >= min_iou).tolist()
    # Larger IoU first; of equal ones the earlier region and instance.
    pairs.sort(key=lambda pair: (-overlaps[pair[0], pair[1]], *pair))
    chosen: dict[int, int] = {}
    for number, instance in pairs:
        if number not in chosen and instance not in chosen.values():
            chosen[number] = instance
    matches = []
    for number, region in enumerate(regions):
        best = chosen.get(number)
        if best is None and overlaps[number].any():
            best = int(overlaps[number].argmax())
        partner = None if best is None else instances[best]
        matches.append(
            RegionMatch(
                image=image,
                region=region.id,
                name=region.name,
                instance=None if partner is None else partner.id,
                category=None if partner is None else partner.name,
                iou=0.0 if best is None else round(float(overlaps[number, best]), 4),
                matched=number in chosen,
            )
        )
    return matches


def _visible_masks(regions: Sequence[Region]) -> Masks:
    """The visible masks; a region without one is matched by its amodal mask."""
    masks = [
        region.amodal if region.visible is None else region.visible
        for region in regions
    ]
    return Masks.from_masks([mask for mask in masks if mask is not None])


def _check_sizes(cocoa: Dataset, id: str, regions: Sequence[Region]) -> None:
    sizes = {region.size for region in regions}
    if len(sizes) > 1:
        raise RecordError(
            f"{cocoa.path}: image {id!r} has masks of different sizes in COCOA and COCO (height, width): "
            f"{sorted(sizes)}; are both of the same edition?"
        )


def _summarize(
    matches: Sequence[RegionMatch],
    *,
    out: str,
    min_iou: float,
    images: int,
    images_kept: int,
    unknown_images: int,
    instances: int,
    published: int | None,
) -> MatchingSummary:
    matched = [match for match in matches if match.matched]
    taken = [match for match in matches if match.iou >= min_iou and not match.matched]
    starts = (0.0, *BANDS)
    bands = dict.fromkeys((f"{start:g} or more" for start in starts), 0)
    for match in matches:
        band = max(start for start in starts if start <= match.iou)
        bands[f"{band:g} or more"] += 1
    categories = Counter(match.category for match in matched if match.category)
    return MatchingSummary(
        out=out,
        min_iou=min_iou,
        images=images,
        images_kept=images_kept,
        unknown_images=unknown_images,
        regions=len(matches),
        matched=len(matched),
        taken=len(taken),
        instances=instances,
        best_iou=bands,
        categories=dict(categories.most_common()),
        published=published,
    )
