"""Training examples from the world's scenes, rendered once and kept in shards (.npz files).

A shard holds SCENES_PER_SHARD scenes of one split and seed. It is written atomically: a shard that exists is complete,
so an interrupted run continues with the next one.
"""

from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import msgspec
import numpy as np

from maskwise.models.tiny.scene_example import (
    ExampleQuestion,
    SceneExample,
    scene_to_example,
)
from maskwise.models.tiny.spec import IMAGE_SIZE
from maskwise.store.atomic import atomic_write
from maskwise.world import make_scene

SCENES_PER_SHARD = 500


def shard_count(scenes: int) -> int:
    """Number of shards for that many scenes."""
    return -(-scenes // SCENES_PER_SHARD)


def write_shards(
    folder: Path,
    split: str,
    seed: int,
    *,
    scenes: int,
    questions: int,
    workers: int,
    preset: str = "default",
) -> Iterator[Path]:
    """Render scenes 0 to `scenes` - 1 in several processes; yields each shard when it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(0, scenes, SCENES_PER_SHARD)
    ranges = [range(first, min(first + SCENES_PER_SHARD, scenes)) for first in starts]
    tasks = [(folder, split, seed, part, questions, preset) for part in ranges]
    with get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(_write_task, tasks)


def _write_task(task: tuple[Path, str, int, range, int, str]) -> Path:
    return write_shard(*task[:4], questions=task[4], preset=task[5])


def write_shard(
    folder: Path,
    split: str,
    seed: int,
    scenes: range,
    *,
    questions: int,
    preset: str = "default",
) -> Path:
    """Render one shard, unless it exists."""
    name = f"{split}-{seed}-{scenes.start // SCENES_PER_SHARD:04}.npz"
    path = folder / (name if preset == "default" else f"{preset}-{name}")
    if path.exists():
        return path
    examples = [
        scene_to_example(
            make_scene(
                seed, index, split, IMAGE_SIZE, questions=questions, preset=preset
            )
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
