from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from maskwise.masks import Mask
from maskwise.models.tiny.scene_example import ExampleQuestion, scene_to_example
from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    CATEGORIES,
    CATEGORY_NAMES,
    COLOR_NAMES,
    IMAGE_SIZE,
)
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset, DatasetWriter
from maskwise.training.tiny.annotated_dataset import (
    dataset_examples,
    unknown_categories,
)
from maskwise.world import make_scene, write_scenes


def test_a_world_dataset_gives_the_same_examples_as_its_scenes(tmp_path: Path) -> None:
    write_scenes(tmp_path / "scenes", 2, 3, split="test")
    for index, example in enumerate(
        dataset_examples(Dataset.open(tmp_path / "scenes"))
    ):
        assert example is not None
        rendered = scene_to_example(make_scene(3, index, "test"))
        assert (example.image == rendered.image).all()
        assert (example.instances == rendered.instances).all()
        assert (example.labels[:, :2] == rendered.labels[:, :2]).all()
        assert (example.labels[:, 2] == -1).all(), "names do not tell materials"
        assert (example.boxes == rendered.boxes).all()
        assert all(
            (a == b).all() for a, b in zip(example.part_maps, rendered.part_maps)
        )
        for own, other in zip(example.questions, rendered.questions):
            assert (own.text, own.targets) == (other.text, other.targets)


def test_unknown_names_train_masks_only_and_are_counted(tmp_path: Path) -> None:
    def box(left: int, right: int) -> Mask:
        mask = np.zeros((40, 80), bool)
        mask[10:30, left:right] = True
        return Mask.from_dense(mask)

    regions = [
        Region(id="a", name="red mug", visible=box(0, 20), amodal=box(0, 40)),
        Region(id="b", name="zeppelin", visible=box(20, 60), order=1),
        Region(id="c", name="crowd", visible=box(60, 80), crowd=True),
        Region(
            id="d", name="gondola of the zeppelin", visible=box(20, 40), part_of="b"
        ),
    ]
    with DatasetWriter(tmp_path / "d", name="mixed") as writer:
        writer.add_image(
            ImageInfo(id="p", width=80, height=40),
            regions,
            png(np.zeros((40, 80, 3), np.uint8)),
        )
        writer.add_sample(
            Sample(id="s", image_id="p", question="the gondola", targets=(regions[3],))
        )
    dataset = Dataset.open(tmp_path / "d")
    (example,) = dataset_examples(dataset)
    assert example is not None
    assert example.labels.tolist() == [
        [CATEGORY_NAMES.index("mug"), COLOR_NAMES.index("red"), -1],
        [-1, -1, -1],
    ]
    assert example.boxes.tolist() == [[0, 40, 80, 120], [40, 40, 120, 120]]
    assert example.questions == [ExampleQuestion("the gondola", [(1, 1)])]
    objects = example.objects()
    assert objects.attributes[1].sum() == 0
    assert objects.attributes[0, : sum(ATTRIBUTE_SIZES)].sum() == 2
    assert objects.amodal[0].sum() == 2 * objects.visible[0].sum()
    assert unknown_categories(dataset) == {"zeppelin": 1}


def test_an_image_without_questions_may_have_any_number_of_objects(
    tmp_path: Path,
) -> None:
    masks = np.zeros((200, IMAGE_SIZE, IMAGE_SIZE), bool)
    for number, mask in enumerate(masks):
        mask[4 * (number // 20), 8 * (number % 20)] = True
    regions = [
        Region(id=str(i), name="dot", visible=Mask.from_dense(mask))
        for i, mask in enumerate(masks)
    ]
    with DatasetWriter(tmp_path / "d", name="dots") as writer:
        image = ImageInfo(id="p", width=IMAGE_SIZE, height=IMAGE_SIZE)
        writer.add_image(
            image, regions, png(np.zeros((IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8))
        )
    (example,) = dataset_examples(Dataset.open(tmp_path / "d"))
    assert example is not None
    assert (example.objects().visible == masks).all()
    assert example.questions == []


def test_an_image_without_objects_gives_no_example(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "d", name="empty") as writer:
        writer.add_image(
            ImageInfo(id="p", width=8, height=8), [], png(np.zeros((8, 8, 3), np.uint8))
        )
    assert list(dataset_examples(Dataset.open(tmp_path / "d"))) == [None]


def test_parts_are_found_by_name_and_questions_about_unknown_parts_are_left_out(
    tmp_path: Path,
) -> None:
    masks = np.zeros((3, IMAGE_SIZE, IMAGE_SIZE), bool)
    masks[0, 20:60, 20:60] = masks[1, 20:60, 50:60] = masks[2, 20:30, 20:50] = True
    mug, handle, sticker = (Mask.from_dense(mask) for mask in masks)
    regions = [
        Region(id="m", name="mug", visible=mug),
        Region(id="s", name="mug:sticker", visible=sticker, part_of="m"),
        Region(id="h", name="mug:handle", visible=handle, part_of="m"),
    ]
    with DatasetWriter(tmp_path / "d", name="paco") as writer:
        image = ImageInfo(id="p", width=IMAGE_SIZE, height=IMAGE_SIZE)
        writer.add_image(
            image, regions, png(np.zeros((IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8))
        )
        for number, target in enumerate((regions[2], regions[1])):
            writer.add_sample(
                Sample(
                    id=str(number),
                    image_id="p",
                    question=target.name,
                    targets=(target,),
                )
            )
    (example,) = dataset_examples(Dataset.open(tmp_path / "d"))
    assert example is not None
    part = CATEGORIES["mug"].parts.index("handle") + 1
    assert example.questions == [ExampleQuestion("mug:handle", [(0, part)])]
    assert (example.part_maps[0][:, 30:] == part).all()


def png(pixels: np.ndarray) -> bytes:
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()
