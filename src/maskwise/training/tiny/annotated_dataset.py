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
    return Counter(
        region.name
        for image_id in dataset.images.id
        for region in dataset.regions_of(image_id)
        if region.part_of is None
        and not region.crowd
        and read_labels(region.name)[0] < 0
    )


def read_labels(name: str) -> tuple[int, int, int]:
    """Category, color and material in a region's name, -1 for what it does not say."""
    text = f" {name.lower().replace('-', ' ')} "
    found = []
    for names in (CATEGORY_NAMES, COLOR_NAMES, MATERIAL_NAMES):
        mentioned = [number for number, word in enumerate(names) if f" {word} " in text]
        found.append(mentioned[-1] if mentioned else -1)
    return found[0], found[1], found[2]


def _read_example(
    dataset: Dataset, image_id: str, samples: list[Sample]
) -> SceneExample | None:
    regions = dataset.regions_of(image_id)
    objects = [
        (region, *_resized_masks(region))
        for region in regions
        if region.part_of is None and not region.crowd
    ]
    objects = [one for one in objects if one[1].any()]
    if not objects:
        return None
    # From back to front, where the order is known: a pixel belongs to the frontmost object.
    instances = np.full((IMAGE_SIZE, IMAGE_SIZE), -1, np.int16)
    for index in sorted(range(len(objects)), key=lambda i: -(objects[i][0].order or 0)):
        instances[objects[index][1]] = index
    keys: dict[str, tuple[int, int]] = {}
    part_maps = []
    boxes = []
    for index, (region, _, amodal) in enumerate(objects):
        parts = _number_parts(
            [part for part in regions if part.part_of == region.id], region.name
        )
        keys |= {
            one.id: (index, number) for number, one in {0: region, **parts}.items()
        }
        box = _mask_box(amodal)
        boxes.append(box)
        part_maps.append(_part_map(amodal, parts)[box[1] : box[3], box[0] : box[2]])
    questions = [
        ExampleQuestion(sample.question, [keys[region.id] for region in sample.targets])
        for sample in samples
        # A question about crowds or unknown parts would otherwise become one without targets.
        if all(region.id in keys for region in sample.targets)
    ]
    labels = np.array([read_labels(region.name) for region, _, _ in objects], np.int64)
    image = resize_image(dataset.open_image(image_id))
    return SceneExample(
        image, instances, labels, np.array(boxes, np.int64), part_maps, questions
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
    # `handle`, `handle of the red mug`, or `mug:handle` as in PACO
    named = {
        part.name.lower().partition(" of ")[0].rpartition(":")[2].strip(): part
        for part in parts
    }
    return {
        number: named[word] for number, word in enumerate(known, 1) if word in named
    }
