"""What there is to learn from: world scenes and the images of dataset folders, as arrays.

World scenes are rendered once and kept in files, so that an interrupted run loses nothing. A file holds SCENES_A_FILE
scenes of one split and seed. It is written beside its place and then moved there: a file that exists is whole.
"""

import json
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.masks import Mask, Masks
from maskwise.models.descriptions import Objects
from maskwise.models.tiny import CATEGORY_NAMES, COLOUR_NAMES, KINDS, MATERIAL_NAMES, MOST_PARTS, SIDE
from maskwise.schema import Region
from maskwise.store import Dataset
from maskwise.world import Scene, scene
from maskwise.world.catalogue import CATEGORIES

SCENES_A_FILE = 500


class Lesson(NamedTuple):
    """One scene. `image`: uint8 (size, size, 3). `owner`: int16 (size, size), the object seen at each pixel, or -1.
    `kinds`: int64 (n, 3), category, colour and material of each object, -1 where unknown. `boxes`: int64 (n, 4), left,
    top, right, bottom of `parts`; `parts`: for each object the part at each pixel of its box, 0 outside.
    `questions`: text, the noun phrase (`np`) where known, and targets as pairs of object and part (0 = the whole).
    """

    image: NDArray[np.uint8]
    owner: NDArray[np.int16]
    kinds: NDArray[np.int64]
    boxes: NDArray[np.int64]
    parts: list[NDArray[np.uint8]]
    questions: list[dict[str, Any]]


def scene_to_lesson(shown: Scene) -> Lesson:
    """What there is to learn from a scene."""
    inventory = shown.inventory
    objects = [inventory.items[place] for place in inventory.objects()]
    kinds = [
        (CATEGORY_NAMES.index(o.category), COLOUR_NAMES.index(o.colour), MATERIAL_NAMES.index(o.material))
        for o in objects
    ]
    parts, boxes = [], []
    for (rows, columns), numbers in inventory.extents:
        inside_rows, inside_columns = np.flatnonzero(numbers.any(1)), np.flatnonzero(numbers.any(0))
        top, bottom = int(inside_rows[0]), int(inside_rows[-1]) + 1
        left, right = int(inside_columns[0]), int(inside_columns[-1]) + 1
        parts.append(np.ascontiguousarray(numbers[top:bottom, left:right]))
        boxes.append((columns.start + left, rows.start + top, columns.start + right, rows.start + bottom))
    return Lesson(
        shown.image,
        inventory.owner.astype(np.int16),
        np.array(kinds, np.int64).reshape(-1, 3),
        np.array(boxes, np.int64).reshape(-1, 4),
        parts,
        [_question(shown, number) for number in range(len(shown.questions))],
    )


def _question(shown: Scene, number: int) -> dict[str, Any]:
    question, items = shown.questions[number], shown.items
    targets = []
    for place in question.targets:
        item = items[place]
        part = 0 if item.part is None else CATEGORIES[item.category].parts.index(item.part) + 1
        targets.append((item.order - 1, part))
    return {"text": question.text, "np": question.np, "targets": targets}


def write_files(
    folder: Path, split: str, seed: int, *, scenes: int, questions: int, workers: int
) -> Iterator[Path]:
    """Render scenes 0 to `scenes` - 1 into files, several at a time; yields each file as it is done."""
    folder.mkdir(parents=True, exist_ok=True)
    ranges = [range(first, min(first + SCENES_A_FILE, scenes)) for first in range(0, scenes, SCENES_A_FILE)]
    tasks = [(folder, split, seed, part, questions) for part in ranges]
    with get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(_write_task, tasks)


def _write_task(task: tuple[Path, str, int, range, int]) -> Path:
    return write_file(*task[:3], task[3], questions=task[4])


def write_file(folder: Path, split: str, seed: int, scenes: range, *, questions: int) -> Path:
    """Render one file of lessons, unless it is there."""
    path = folder / f"{split}-{seed}-{scenes.start // SCENES_A_FILE:04}.npz"
    if path.exists():
        return path
    lessons = [scene_to_lesson(scene(seed, index, split, SIDE, questions=questions)) for index in scenes]
    being_written = path.with_suffix(".part.npz")
    np.savez(
        being_written,
        image=np.stack([lesson.image for lesson in lessons]),
        owner=np.stack([lesson.owner for lesson in lessons]).astype(np.int8),
        counts=np.array([len(lesson.kinds) for lesson in lessons]),
        kinds=np.concatenate([lesson.kinds for lesson in lessons]),
        boxes=np.concatenate([lesson.boxes for lesson in lessons]),
        parts=np.concatenate([numbers.ravel() for lesson in lessons for numbers in lesson.parts]),
        questions=np.frombuffer(json.dumps([lesson.questions for lesson in lessons]).encode(), np.uint8),
    )
    being_written.rename(path)
    return path


def read_file(path: Path) -> list[Lesson]:
    """The lessons of a file."""
    with np.load(path, allow_pickle=False) as stored:
        columns = {name: stored[name] for name in stored.files}
    questions = json.loads(columns["questions"].tobytes())
    lessons, objects, at = [], 0, 0
    for place, count in enumerate(columns["counts"].tolist()):
        boxes = columns["boxes"][objects : objects + count]
        parts = []
        for left, top, right, bottom in boxes.tolist():
            area = (right - left) * (bottom - top)
            parts.append(columns["parts"][at : at + area].reshape(bottom - top, right - left))
            at += area
        kinds = columns["kinds"][objects : objects + count]
        lessons.append(
            Lesson(
                columns["image"][place],
                columns["owner"][place].astype(np.int16),
                kinds,
                boxes,
                parts,
                questions[place],
            )
        )
        objects += count
    return lessons


def lesson_to_objects(lesson: Lesson) -> Objects:
    """The truth, as the eye would say it if it never erred."""
    count = len(lesson.kinds)
    part = np.zeros((count, SIDE, SIDE), np.uint8)
    for number, ((left, top, right, bottom), numbers) in enumerate(zip(lesson.boxes.tolist(), lesson.parts)):
        part[number, top:bottom, left:right] = numbers
    visible = lesson.owner[None] == np.arange(count)[:, None, None]
    # A kind that is not known is -1: one row beyond the last, all zeros.
    kinds = [np.eye(size + 1, size, dtype=np.float32)[lesson.kinds[:, i]] for i, size in enumerate(KINDS)]
    return Objects(visible, part > 0, part, np.concatenate(kinds, 1))


def dataset_to_lessons(dataset: Dataset) -> Iterator[Lesson]:
    """The images of a dataset, scaled to the model's frame; those without an object are passed over.

    Names are understood as far as they hold a category or colour of the world; masks teach in any case. An object
    without an amodal mask is taken to be seen whole, and one with more than MOST_PARTS parts keeps the first ones.
    """
    asked: dict[int, list[int]] = {}
    for row, place in enumerate(dataset.samples.image.tolist()):
        asked.setdefault(place, []).append(row)
    for place, image in enumerate(dataset.images.id):
        regions = dataset.regions_of(image)
        things = [
            (region, *_planes(region)) for region in regions if region.part_of is None and not region.crowd
        ]
        things = [thing for thing in things if thing[1].any()]
        if not things:
            continue
        # From the back to the front, as far as the order is known: what is in front is what is seen.
        owner = np.full((SIDE, SIDE), -1, np.int16)
        for number in sorted(range(len(things)), key=lambda i: -(things[i][0].order or 0)):
            owner[things[number][1]] = number
        places: dict[str, tuple[int, int]] = {}
        parts, boxes = [], []
        for number, (thing, _, amodal) in enumerate(things):
            own = _number_parts([region for region in regions if region.part_of == thing.id], thing.name)
            places |= {region.id: (number, k) for k, region in {0: thing, **own}.items()}
            box = _box(amodal)
            boxes.append(box)
            parts.append(_part_numbers(amodal, own)[box[1] : box[3], box[0] : box[2]])
        frame = dataset.open_image(image).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        kinds = np.array([_kinds(thing.name) for thing, _, _ in things], np.int64)
        questions = [
            {"text": sample.question, "targets": [places[region.id] for region in sample.targets]}
            for sample in map(dataset.__getitem__, asked.get(place, []))
            # One whose targets are crowds or surplus parts would be learnt to mean nothing.
            if all(region.id in places for region in sample.targets)
        ]
        yield Lesson(np.asarray(frame), owner, kinds, np.array(boxes, np.int64), parts, questions)


def _box(plane: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    rows, columns = np.flatnonzero(plane.any(1)), np.flatnonzero(plane.any(0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def _part_numbers(amodal: NDArray[np.bool_], parts: dict[int, Region]) -> NDArray[np.uint8]:
    """The part at each pixel of an object; what belongs to none is given to the first."""
    numbers = amodal.astype(np.uint8)
    for k, part in parts.items():
        numbers[_planes(part)[1] & amodal] = k
    return numbers


def _planes(region: Region) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Visible and amodal mask in the model's frame; one that is not known is the other."""
    visible = region.visible if region.visible is not None else region.amodal
    amodal = region.amodal if region.amodal is not None else region.visible
    assert visible is not None
    assert amodal is not None
    return tuple(_scaled(mask) for mask in (visible, visible | amodal))  # type: ignore[return-value]


def _scaled(mask: Mask) -> NDArray[np.bool_]:
    return Masks.from_masks([mask]).resize((SIDE, SIDE))[0].to_dense()


def _number_parts(parts: list[Region], name: str) -> dict[int, Region]:
    """Parts by their number in the world's category, others of it left out; of other things, by their order."""
    category = _kinds(name)[0]
    if category < 0:
        return dict(zip(range(1, MOST_PARTS + 1), parts))
    known = CATEGORIES[CATEGORY_NAMES[category]].parts
    # `handle`, `handle of the red mug`, or `mug:handle` as PACO writes it
    named = {part.name.lower().partition(" of ")[0].rpartition(":")[2].strip(): part for part in parts}
    return {number: named[word] for number, word in enumerate(known, 1) if word in named}


def _kinds(name: str) -> tuple[int, int, int]:
    """Category, colour and material that a name speaks of, -1 for what it does not say."""
    text = f" {name.lower().replace('-', ' ')} "
    found = []
    for names in (CATEGORY_NAMES, COLOUR_NAMES, MATERIAL_NAMES):
        spoken = [number for number, word in enumerate(names) if f" {word} " in text]
        found.append(spoken[-1] if spoken else -1)
    return found[0], found[1], found[2]
