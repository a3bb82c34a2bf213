"""Training examples from the world's scenes, rendered once and kept in shards (.npz files).

A shard holds SCENES_PER_SHARD scenes of one split and seed. It is written atomically: a shard that exists is complete,
so an interrupted run continues with the next one.
"""

from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
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
    IMAGE_SIZE,
    MATERIAL_NAMES,
)
from maskwise.store.atomic import atomic_write
from maskwise.world import Scene, make_scene

SCENES_PER_SHARD = 500


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


def shard_count(scenes: int) -> int:
    """Number of shards for that many scenes."""
    return -(-scenes // SCENES_PER_SHARD)


def write_shards(
    folder: Path, split: str, seed: int, *, scenes: int, questions: int, workers: int
) -> Iterator[Path]:
    """Render scenes 0 to `scenes` - 1 in several processes; yields each shard when it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(0, scenes, SCENES_PER_SHARD)
    ranges = [range(first, min(first + SCENES_PER_SHARD, scenes)) for first in starts]
    tasks = [(folder, split, seed, part, questions) for part in ranges]
    with get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(_write_task, tasks)


def _write_task(task: tuple[Path, str, int, range, int]) -> Path:
    return write_shard(*task[:3], task[3], questions=task[4])


def write_shard(
    folder: Path, split: str, seed: int, scenes: range, *, questions: int
) -> Path:
    """Render one shard, unless it exists."""
    path = folder / f"{split}-{seed}-{scenes.start // SCENES_PER_SHARD:04}.npz"
    if path.exists():
        return path
    examples = [
        scene_to_example(
            make_scene(seed, index, split, IMAGE_SIZE, questions=questions)
        )
        for index in scenes
    ]
    encoded = msgspec.json.encode([example.questions for example in examples])
    with atomic_write(path) as file:
        np.savez(
            file,
            image=np.stack([example.image for example in examples]),
            instances=np.stack([example.instances for example in examples]).astype(
                np.int8
            ),
            counts=np.array([len(example.labels) for example in examples]),
            labels=np.concatenate([example.labels for example in examples]),
            boxes=np.concatenate([example.boxes for example in examples]),
            parts=np.concatenate(
                [part.ravel() for example in examples for part in example.part_maps]
            ),
            questions=np.frombuffer(encoded, np.uint8),
        )
    return path


def read_shard(path: Path) -> list[SceneExample]:
    """The examples of a shard."""
    with np.load(path, allow_pickle=False) as stored:
        columns = {name: stored[name] for name in stored.files}
    questions = msgspec.json.decode(
        columns["questions"].tobytes(), type=list[list[ExampleQuestion]]
    )
    examples = []
    objects = 0
    at = 0
    for index, count in enumerate(columns["counts"].tolist()):
        boxes = columns["boxes"][objects : objects + count]
        part_maps = []
        for left, top, right, bottom in boxes.tolist():
            area = (right - left) * (bottom - top)
            part_maps.append(
                columns["parts"][at : at + area].reshape(bottom - top, right - left)
            )
            at += area
        examples.append(
            SceneExample(
                columns["image"][index],
                columns["instances"][index].astype(np.int16),
                columns["labels"][objects : objects + count],
                boxes,
                part_maps,
                questions[index],
            )
        )
        objects += count
    return examples
