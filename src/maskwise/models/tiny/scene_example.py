"""An annotated image in the form of `tiny`: the ground truth of a scene, for training and for its stage oracles."""

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import Int64Array, UInt8Array
from maskwise.models.tiny.detections import DetectedObjects
from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    CATEGORIES,
    CATEGORY_NAMES,
    COLOR_NAMES,
    MATERIAL_NAMES,
)
from maskwise.world import Scene


class ExampleQuestion(msgspec.Struct, frozen=True):
    """targets: pairs of object index and part number, 0 for the whole object. noun_phrase: what is asked for, where
    it is known apart from the rest of the text.
    """

    text: str
    targets: list[tuple[int, int]]
    noun_phrase: str | None = None


class SceneExample(NamedTuple):
    """An annotated image of s x s pixels with n objects. image: uint8 [s, s, 3]. instances: int16 [s, s], index of the
    object visible at each pixel, or -1. labels: int64 [n, 3], category, color and material, -1 where unknown. boxes:
    int64 [n, 4], left, top, right, bottom of the amodal mask. part_maps: for each object the part number at each pixel
    of its box, 0 outside the amodal mask.
    """

    image: UInt8Array
    instances: NDArray[np.int16]
    labels: Int64Array
    boxes: Int64Array
    part_maps: list[UInt8Array]
    questions: list[ExampleQuestion]

    def objects(self) -> DetectedObjects:
        """The ground truth in the form of detections; attributes are one-hot, or all 0 where unknown."""
        count = len(self.labels)
        side = self.instances.shape[0]
        part = np.zeros((count, side, side), np.uint8)
        for index, ((left, top, right, bottom), part_map) in enumerate(
            zip(self.boxes.tolist(), self.part_maps)
        ):
            part[index, top:bottom, left:right] = part_map
        visible = self.instances[None] == np.arange(count)[:, None, None]
        # Label -1 selects the additional last row, which is all zeros.
        attributes = [
            np.eye(size + 1, size, dtype=np.float32)[self.labels[:, i]]
            for i, size in enumerate(ATTRIBUTE_SIZES)
        ]
        return DetectedObjects(visible, part > 0, part, np.concatenate(attributes, 1))


def scene_to_example(shown: Scene) -> SceneExample:
    """The annotations of a rendered scene."""
    graph = shown.graph
    objects = [graph.nodes[place] for place in graph.objects()]
    labels = [
        (
            CATEGORY_NAMES.index(o.category),
            COLOR_NAMES.index(o.color),
            MATERIAL_NAMES.index(o.material),
        )
        for o in objects
    ]
    part_maps = []
    boxes = []
    for (rows, columns), numbers in graph.extents:
        inside_rows = np.flatnonzero(numbers.any(1))
        inside_columns = np.flatnonzero(numbers.any(0))
        top = int(inside_rows[0])
        bottom = int(inside_rows[-1]) + 1
        left = int(inside_columns[0])
        right = int(inside_columns[-1]) + 1
        part_maps.append(np.ascontiguousarray(numbers[top:bottom, left:right]))
        boxes.append(
            (
                columns.start + left,
                rows.start + top,
                columns.start + right,
                rows.start + bottom,
            )
        )
    return SceneExample(
        shown.image,
        graph.object_map.astype(np.int16),
        np.array(labels, np.int64).reshape(-1, 3),
        np.array(boxes, np.int64).reshape(-1, 4),
        part_maps,
        [_question(shown, number) for number in range(len(shown.questions))],
    )


def _question(shown: Scene, number: int) -> ExampleQuestion:
    question = shown.questions[number]
    items = shown.nodes
    targets = []
    for place in question.targets:
        item = items[place]
        part = (
            0
            if item.part is None
            else CATEGORIES[item.category].parts.index(item.part) + 1
        )
        targets.append((item.order - 1, part))
    return ExampleQuestion(question.text, targets, question.np)
