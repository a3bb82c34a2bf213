"""Amodal completion measured with true visible masks: on COCOA's occluded regions and on composites of `occlude`."""

import io

import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import track

from maskwise.arrays import BoolArray
from maskwise.builder.cutouts import CutoutSource
from maskwise.builder.occlude import OccludeOptions, occlude_image
from maskwise.models.convex_hull import fill_hull
from maskwise.models.photo import EncodedPhoto, Photo
from maskwise.models.photo.proposals import mask_iou
from maskwise.store import Dataset

RATES = (0.05, 0.75)
"""Occlusion rates of the regions that are measured: less is hardly seen, more leaves nothing to see."""

SEED = 100
"""Of the composites; training uses others."""

Rows = list[tuple[str, ...]]


def measure_cocoa(model: Photo, dataset: Dataset) -> Rows:
    """Amodal mIoU of the occluded regions; the occluders are not given, except to the clipped hull."""
    values: dict[str, list[float]] = {}
    changes = []
    for row in track(range(len(dataset.images)), "COCOA", console=Console(stderr=True)):
        photo = EncodedPhoto(dataset.open_image(row), model.networks, model.completion)
        known = [
            (one.visible.to_dense(), one.amodal.to_dense())
            for one in dataset.regions_of(row)
            if one.visible and one.amodal
        ]
        for item, (visible, amodal) in enumerate(known):
            if not visible.any():
                continue
            rate = 1 - visible.sum() / amodal.sum()
            completed = photo.complete(visible).amodal
            if rate <= RATES[0]:
                changes.append(completed.sum() / visible.sum() - 1)
            elif rate < RATES[1]:
                others = np.any([mask for place, (mask, _) in enumerate(known) if place != item], 0)
                hull = fill_hull(visible)
                found = {
                    "visible copy": visible,
                    "convex hull": hull | visible,
                    "convex hull clipped to the true other regions": visible | (hull & others),
                    "photo": completed,
                }
                for name, mask in found.items():
                    values.setdefault(name, []).append(mask_iou(mask, amodal))
    rows: Rows = [(name, _mean(found)) for name, found in values.items()]
    return [*rows, ("photo, change of area of regions that are not occluded", _mean(changes))]


def measure_composites(model: Photo, dataset: Dataset, limit: int | None) -> Rows:
    """IoU of the occluded region alone, and the change of area of the same objects in the originals."""
    cutouts = CutoutSource.of(dataset)
    values: dict[str, list[float]] = {}
    options = OccludeOptions(per_image=2, seed=SEED)
    for row in track(range(len(dataset.images))[:limit], "composites", console=Console(stderr=True)):
        pairs = occlude_image(cutouts, row, options).pairs
        for place, (original, composite) in enumerate(pairs):
            for member in ([original] if place == 0 else []) + [composite]:
                with Image.open(io.BytesIO(member.data)) as image:
                    photo = EncodedPhoto(image.convert("RGB"), model.networks, model.completion)
                targets = (
                    [pair[0].sample.targets[0] for pair in pairs]
                    if member is original
                    else member.sample.targets
                )
                for target in targets:
                    assert target.visible is not None, "targets of composites have visible masks"
                    assert target.amodal is not None, "targets of composites have amodal masks"
                    _add(values, photo, target.visible.to_dense(), target.amodal.to_dense())
    return [(name, _mean(found)) for name, found in values.items()]


def _add(values: dict[str, list[float]], photo: EncodedPhoto, visible: BoolArray, amodal: BoolArray) -> None:
    completed = photo.complete(visible).amodal
    hidden = amodal & ~visible
    if not hidden.any():
        values.setdefault("photo, change of area of originals", []).append(
            completed.sum() / visible.sum() - 1
        )
        return
    hull = fill_hull(visible) | visible
    for name, mask in (("convex hull", hull), ("photo", completed)):
        values.setdefault(f"{name}, IoU of the occluded region", []).append(mask_iou(mask & ~visible, hidden))
        values.setdefault(f"{name}, amodal IoU", []).append(mask_iou(mask, amodal))
    values.setdefault("visible copy, amodal IoU", []).append(mask_iou(visible, amodal))


def _mean(values: list[float]) -> str:
    """Mean with the 95 % interval of the standard error."""
    error = 1.96 * np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.3f} ± {error:.3f} (n = {len(values)})"
