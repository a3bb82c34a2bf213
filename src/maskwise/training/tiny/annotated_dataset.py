"""Training examples from the images of a dataset folder.

Region names are compared with the model's categories, colors and parts. Objects of other categories still train the
masks and the boxes; `unknown_categories` counts them.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from maskwise.arrays import BoolArray, UInt8Array
from maskwise.masks import Mask, Masks
from maskwise.models.tiny.preprocess import resize_image
from maskwise.models.tiny.scene_example import ExampleQuestion, SceneExample
from maskwise.models.tiny.spec import (
    CATEGORIES,
    CATEGORY_NAMES,
    COLOR_NAMES,
    IMAGE_SIZE,
    MATERIAL_NAMES,
    MAX_PARTS,
)
from maskwise.schema import Region, Sample
from maskwise.store import Dataset


def dataset_examples(dataset: Dataset) -> Iterator[SceneExample | None]:
    """One example per image, or None for an image without an object; masks and images are resized.

    An object without an amodal mask counts as unoccluded, and one with more than MAX_PARTS parts keeps the first ones.
    """
    rows: dict[int, list[int]] = {}
    for row, image in enumerate(dataset.samples.image.tolist()):
        rows.setdefault(image, []).append(row)
    for number, image_id in enumerate(dataset.images.id):
        yield _read_example(
            dataset, image_id, [dataset[row] for row in rows.get(number, [])]
        )


def unknown_categories(dataset: Dataset) -> Counter[str]:
    """How many objects have a name without a category of the model, by name."""
    unknown: Counter[str] = Counter()
    for image_id in dataset.images.id:
        for region in dataset.regions_of(image_id):
            if region.part_of is not None or region.crowd:
                continue
            category, _, _ = read_labels(region.name)
            if category < 0:
                unknown[region.name] += 1
    return unknown


def read_labels(name: str) -> tuple[int, int, int]:
    """Category, color and material in a region's name, -1 for what it does not say."""
    text = f" {name.lower().replace('-', ' ')} "
    labels = []
    for names in (CATEGORY_NAMES, COLOR_NAMES, MATERIAL_NAMES):
        mentioned = [number for number, word in enumerate(names) if f" {word} " in text]
        labels.append(mentioned[-1] if mentioned else -1)
    return labels[0], labels[1], labels[2]


def _read_example(
    dataset: Dataset, image_id: str, samples: list[Sample]
) -> SceneExample | None:
    regions = dataset.regions_of(image_id)
    objects: list[Region] = []
    visible_masks: list[BoolArray] = []
    amodal_masks: list[BoolArray] = []
    for region in regions:
        if region.part_of is not None or region.crowd:
            continue
        visible, amodal = _resized_masks(region)
        # An object may have no visible pixel left at the model's resolution.
        if visible.any():
            objects.append(region)
            visible_masks.append(visible)
            amodal_masks.append(amodal)
    if not objects:
        return None
    # From back to front, where the order is known: a pixel belongs to the frontmost object.
    instances = np.full((IMAGE_SIZE, IMAGE_SIZE), -1, np.int16)
    depths = [-(region.order or 0) for region in objects]
    for index in sorted(range(len(objects)), key=depths.__getitem__):
        instances[visible_masks[index]] = index
    # Object index and part number of a region's id; 0 is the whole object.
    places: dict[str, tuple[int, int]] = {}
    part_maps = []
    boxes = []
    for index, region in enumerate(objects):
        own_parts = [part for part in regions if part.part_of == region.id]
        parts = _number_parts(own_parts, region.name)
        places[region.id] = (index, 0)
        for number, part in parts.items():
            places[part.id] = (index, number)
        left, top, right, bottom = _mask_box(amodal_masks[index])
        boxes.append((left, top, right, bottom))
        part_map = _part_map(amodal_masks[index], parts)
        part_maps.append(part_map[top:bottom, left:right])
    questions = []
    for sample in samples:
        # A question about crowds or unknown parts would otherwise become one without targets.
        if all(region.id in places for region in sample.targets):
            targets = [places[region.id] for region in sample.targets]
            questions.append(ExampleQuestion(sample.question, targets))
    labels = [read_labels(region.name) for region in objects]
    return SceneExample(
        resize_image(dataset.open_image(image_id)),
        instances,
        np.array(labels, np.int64),
        np.array(boxes, np.int64),
        part_maps,
        questions,
    )


def _mask_box(mask: BoolArray) -> tuple[int, int, int, int]:
    rows = np.flatnonzero(mask.any(1))
    columns = np.flatnonzero(mask.any(0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _part_map(amodal: BoolArray, parts: dict[int, Region]) -> UInt8Array:
    """The part number at each pixel of an object; pixels outside all parts get number 1."""
    numbers: UInt8Array = amodal.astype(np.uint8)
    for number, part in parts.items():
        numbers[_resized_masks(part)[1] & amodal] = number
    return numbers


def _resized_masks(region: Region) -> tuple[BoolArray, BoolArray]:
    """Visible and amodal mask at the model's resolution; an unknown mask is replaced by the other one."""
    visible = region.visible if region.visible is not None else region.amodal
    amodal = region.amodal if region.amodal is not None else region.visible
    assert visible is not None
    assert amodal is not None
    return _resize(visible), _resize(visible | amodal)


def _resize(mask: Mask) -> BoolArray:
    return Masks.from_masks([mask]).resize((IMAGE_SIZE, IMAGE_SIZE))[0].to_dense()


def _number_parts(parts: list[Region], name: str) -> dict[int, Region]:
    """Parts by their number in the category, others left out; for unknown categories, by their order."""
    category = read_labels(name)[0]
    if category < 0:
        return dict(zip(range(1, MAX_PARTS + 1), parts))
    known = CATEGORIES[CATEGORY_NAMES[category]].parts
    named = {}
    for part in parts:
        # `handle`, `handle of the red mug`, or `mug:handle` as in PACO
        before_of = part.name.lower().partition(" of ")[0]
        word = before_of.rpartition(":")[2].strip()
        named[word] = part
    return {
        number: named[word] for number, word in enumerate(known, 1) if word in named
    }
