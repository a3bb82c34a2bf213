"""Amodal completion measured with true visible masks: on COCOA's occluded regions and on composites of `occlude`."""

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import track

from maskwise.arrays import BoolArray
from maskwise.builder.cutouts import CutoutSource
from maskwise.builder.occlude import CompositeMaker, OccludeOptions
from maskwise.models.convex_hull import fill_hull
from maskwise.models.photo import EncodedPhoto, Photo
from maskwise.models.photo.completion import complete_mask
from maskwise.models.photo.proposals import mask_iou
from maskwise.schema import Region
from maskwise.store import Dataset

RATES = (0.05, 0.75)
"""Occlusion rates of the regions that are measured: less is hardly seen, more leaves nothing to see."""

SEED = 100
"""Of the composites; training uses others."""

HELD_OUT = 8
"""Every so many images of a training dataset are held out (configs/completion.toml)."""

ORDERS = (0.5, 0.6, 0.7, 0.75, 0.8)
FRONTS = (0.1, 0.2, 0.35, 0.5, 0.65)
"""Values of MIN_ORDER and MIN_FRONT that are compared."""

Rows = list[tuple[str, ...]]


class MeasuredObject(NamedTuple):
    """An object of an encoded image. visible, amodal: bool [height, width]; others: visible masks of the other
    annotated ones; front: pixels of those that are in front of it.
    """

    photo: EncodedPhoto
    visible: BoolArray
    amodal: BoolArray
    others: list[BoolArray]
    front: BoolArray

    @property
    def controls(self) -> dict[str, BoolArray]:
        """Amodal masks without a network."""
        hull = fill_hull(self.visible)
        union = np.any([self.visible, *self.others], 0)
        return {
            "visible copy": self.visible,
            "convex hull": self.visible | hull,
            "convex hull clipped to the annotated objects": self.visible
            | (hull & union),
            "convex hull clipped to the true occluders": self.visible
            | (hull & self.front),
        }


def measure_cocoa(model: Photo, dataset: Dataset) -> Rows:
    """Amodal mIoU of the occluded regions; the occluders are not given, except to the clipped hulls."""
    values: dict[str, list[float]] = {}
    for row in track(range(len(dataset.images)), "COCOA", console=Console(stderr=True)):
        photo = EncodedPhoto(dataset.open_image(row), model.networks, model.completion)
        regions = [one for one in dataset.regions_of(row) if one.visible and one.amodal]
        for one in measured_objects(photo, regions, regions):
            rate = 1 - one.visible.sum() / one.amodal.sum()
            completed = photo.complete(one.visible)
            if rate <= RATES[0]:
                _add(
                    values,
                    "photo, change of area of regions that are not occluded",
                    _change(one, completed),
                )
            elif rate < RATES[1]:
                for name, mask in {**one.controls, "photo": completed}.items():
                    _add(values, name, mask_iou(mask, one.amodal))
    return [(name, _mean(found)) for name, found in values.items()]


def measure_composites(model: Photo, dataset: Dataset, limit: int | None) -> Rows:
    """IoU of the occluded region alone, and the change of area of the same objects in the originals."""
    values: dict[str, list[float]] = {}
    for one in composite_objects(model, dataset, range(len(dataset.images))[:limit]):
        completed = one.photo.complete(one.visible)
        told = complete_mask(
            one.photo.completion,
            one.photo.image,
            one.photo.embedding,
            one.visible,
            one.others,
        )
        hidden = one.amodal & ~one.visible
        found = {
            **one.controls,
            "photo": completed,
            "photo, annotated objects given": told,
        }
        for name, mask in found.items():
            if hidden.any():
                _add(
                    values,
                    f"{name}: IoU of the occluded region",
                    mask_iou(mask & ~one.visible, hidden),
                )
                _add(values, f"{name}: amodal IoU", mask_iou(mask, one.amodal))
            else:
                _add(values, f"{name}: change of area of originals", _change(one, mask))
    return [
        (name, _mean(values[name]))
        for name in sorted(values, key=lambda name: name.split(": ")[1])
    ]


def measure_thresholds(model: Photo, datasets: Iterable[Dataset]) -> Rows:
    """For values of MIN_ORDER and MIN_FRONT, on held-out images of training datasets: IoU of the occluded region, and
    change of area of originals.
    """
    found: dict[str, tuple[list[float], list[float]]] = {}
    for dataset in datasets:
        for one in composite_objects(
            model, dataset, range(0, len(dataset.images), HELD_OUT)
        ):
            photo = one.photo
            hidden = one.amodal & ~one.visible
            given = (
                photo.completion,
                photo.image,
                photo.embedding,
                one.visible,
                photo.neighbours(one.visible),
            )
            for order, front in product(ORDERS, FRONTS):
                amodal = complete_mask(*given, min_order=order, min_front=front)
                ious, changes = found.setdefault(f"{order}, {front}", ([], []))
                if hidden.any():
                    ious.append(mask_iou(amodal & ~one.visible, hidden))
                else:
                    changes.append(_change(one, amodal))
    return [
        (name, _mean(ious), _mean(changes)) for name, (ious, changes) in found.items()
    ]


def composite_objects(
    model: Photo, dataset: Dataset, rows: Sequence[int]
) -> Iterator[MeasuredObject]:
    """The targets of up to two composites per image, there and in the original."""
    composites = CompositeMaker(dataset, CutoutSource(dataset))
    # Shapes are measured: it does not matter here whether a composite is plausible.
    options = OccludeOptions(per_image=2, seed=SEED, any_context=True)
    for row in track(
        rows, f"composites of {dataset.name}", console=Console(stderr=True)
    ):
        pairs, _ = composites.occlude(row, options)
        ids = [original.samples[0].targets[0].id for original, _ in pairs]
        members = [(pairs[0][0], ids)] if pairs else []
        members += [(composite, [id]) for (_, composite), id in zip(pairs, ids)]
        for member, wanted in members:
            with Image.open(io.BytesIO(member.data)) as image:
                photo = EncodedPhoto(
                    image.convert("RGB"), model.networks, model.completion
                )
            targets = [one for one in member.regions if one.id in wanted]
            yield from measured_objects(photo, member.regions, targets)


def measured_objects(
    photo: EncodedPhoto, regions: Sequence[Region], wanted: Sequence[Region]
) -> Iterator[MeasuredObject]:
    """The wanted regions of an image among all its regions; one that does not show is left out."""
    masks = {
        one.id: one.visible.to_dense()
        for one in regions
        if one.visible is not None and not one.crowd
    }
    for one in wanted:
        if one.amodal is not None and masks[one.id].any():
            others = [mask for id, mask in masks.items() if id != one.id]
            front = [
                masks[other.id]
                for other in regions
                if other.id in masks and _is_in_front(other, one)
            ]
            union = np.any([np.zeros_like(masks[one.id]), *front], 0)
            yield MeasuredObject(
                photo, masks[one.id], one.amodal.to_dense(), others, union
            )


def _is_in_front(other: Region, one: Region) -> bool:
    """Whether the annotation says so; the object in front has the lower number."""
    return other.order is not None and one.order is not None and other.order < one.order


def _change(one: MeasuredObject, completed: BoolArray) -> float:
    """By how much the area of an object grows, relative to its visible area."""
    return float(completed.sum() / one.visible.sum() - 1)


def _add(values: dict[str, list[float]], name: str, value: float) -> None:
    values.setdefault(name, []).append(value)


def _mean(values: list[float]) -> str:
    """Mean with the 95 % interval of the standard error."""
    error = (
        1.96 * np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    )
    return f"{np.mean(values):.3f} ± {error:.3f} (n = {len(values)})"
