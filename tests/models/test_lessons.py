from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from maskwise.masks import Mask
from maskwise.models.lessons import (
    dataset_to_lessons,
    lesson_to_objects,
    read_file,
    scene_to_lesson,
    write_file,
)
from maskwise.models.tiny import CATEGORY_NAMES, COLOUR_NAMES, KINDS, SIDE
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset, DatasetWriter
from maskwise.world import scene, write_scenes
from maskwise.world.catalogue import CATEGORIES


def test_a_file_gives_back_what_was_rendered(tmp_path: Path) -> None:
    path = write_file(tmp_path, "train", 5, range(3), questions=2)
    lessons = read_file(path)
    assert len(lessons) == 3
    for index, lesson in enumerate(lessons):
        rendered = scene_to_lesson(scene(5, index, "train", questions=2))
        for stored, fresh in zip(lesson[:4], rendered[:4]):
            assert (stored == fresh).all()
        assert all((a == b).all() for a, b in zip(lesson.parts, rendered.parts))
        assert [q["text"] for q in lesson.questions] == [q["text"] for q in rendered.questions]
    written = path.stat().st_mtime_ns
    write_file(tmp_path, "train", 5, range(3), questions=2)
    assert path.stat().st_mtime_ns == written, "a file that is there is not made again"


def test_a_world_dataset_teaches_what_its_scenes_do(tmp_path: Path) -> None:
    write_scenes(tmp_path / "scenes", 2, 3, split="test")
    for index, lesson in enumerate(dataset_to_lessons(Dataset.open(tmp_path / "scenes"))):
        truth = scene_to_lesson(scene(3, index, "test"))
        assert (lesson.image == truth.image).all()
        assert (lesson.owner == truth.owner).all()
        assert (lesson.kinds[:, :2] == truth.kinds[:, :2]).all()
        assert (lesson.kinds[:, 2] == -1).all(), "names do not tell materials"
        assert (lesson.boxes == truth.boxes).all()
        assert all((a == b).all() for a, b in zip(lesson.parts, truth.parts))
        for own, true in zip(lesson.questions, truth.questions):
            assert own["text"] == true["text"]
            assert [tuple(target) for target in own["targets"]] == [tuple(t) for t in true["targets"]]


def test_other_datasets_teach_masks_and_the_names_that_are_known(tmp_path: Path) -> None:
    def box(left: int, right: int) -> Mask:
        plane = np.zeros((40, 80), bool)
        plane[10:30, left:right] = True
        return Mask.from_dense(plane)

    regions = [
        Region(id="a", name="red mug", visible=box(0, 20), amodal=box(0, 40)),
        Region(id="b", name="zeppelin", visible=box(20, 60), order=1),
        Region(id="c", name="crowd", visible=box(60, 80), crowd=True),
        Region(id="d", name="gondola of the zeppelin", visible=box(20, 40), part_of="b"),
    ]
    image = np.zeros((40, 80, 3), np.uint8)
    with DatasetWriter(tmp_path / "d", name="mixed") as writer:
        writer.add_image(ImageInfo(id="p", width=80, height=40), regions, png(image))
        writer.add_sample(Sample(id="s", image_id="p", question="the gondola", targets=(regions[3],)))
    (lesson,) = dataset_to_lessons(Dataset.open(tmp_path / "d"))
    assert lesson.kinds.tolist() == [
        [CATEGORY_NAMES.index("mug"), COLOUR_NAMES.index("red"), -1],
        [-1, -1, -1],
    ]
    assert lesson.boxes.tolist() == [[0, 40, 80, 120], [40, 40, 120, 120]]
    assert lesson.questions == [{"text": "the gondola", "targets": [(1, 1)]}]
    objects = lesson_to_objects(lesson)
    assert objects.kinds[1].sum() == 0
    assert objects.kinds[0, : sum(KINDS)].sum() == 2
    assert objects.amodal[0].sum() == 2 * objects.visible[0].sum()


def test_a_image_without_questions_teaches_too_however_many_objects_it_has(tmp_path: Path) -> None:
    planes = np.zeros((200, SIDE, SIDE), bool)
    for number, plane in enumerate(planes):
        plane[4 * (number // 20), 8 * (number % 20)] = True
    regions = [
        Region(id=str(i), name="dot", visible=Mask.from_dense(plane)) for i, plane in enumerate(planes)
    ]
    with DatasetWriter(tmp_path / "d", name="dots") as writer:
        image = ImageInfo(id="p", width=SIDE, height=SIDE)
        writer.add_image(image, regions, png(np.zeros((SIDE, SIDE, 3), np.uint8)))
    (lesson,) = dataset_to_lessons(Dataset.open(tmp_path / "d"))
    assert lesson.questions == []
    assert set(np.unique(lesson.owner)) == set(range(-1, 200))


def test_parts_are_known_by_their_names_and_unknown_targets_teach_nothing(tmp_path: Path) -> None:
    planes = np.zeros((3, SIDE, SIDE), bool)
    planes[0, 20:60, 20:60] = planes[1, 20:60, 50:60] = planes[2, 20:30, 20:50] = True
    mug, handle, sticker = (Mask.from_dense(plane) for plane in planes)
    regions = [
        Region(id="m", name="mug", visible=mug),
        Region(id="s", name="mug:sticker", visible=sticker, part_of="m"),
        Region(id="h", name="mug:handle", visible=handle, part_of="m"),
    ]
    with DatasetWriter(tmp_path / "d", name="paco") as writer:
        image = ImageInfo(id="p", width=SIDE, height=SIDE)
        writer.add_image(image, regions, png(np.zeros((SIDE, SIDE, 3), np.uint8)))
        for number, target in enumerate((regions[2], regions[1])):
            writer.add_sample(Sample(id=str(number), image_id="p", question=target.name, targets=(target,)))
    (lesson,) = dataset_to_lessons(Dataset.open(tmp_path / "d"))
    place = CATEGORIES["mug"].parts.index("handle") + 1
    assert lesson.questions == [{"text": "mug:handle", "targets": [(0, place)]}]
    assert (lesson.parts[0][:, 30:] == place).all()


def png(pixels: np.ndarray) -> bytes:
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()
