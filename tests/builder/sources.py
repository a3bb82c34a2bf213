"""Datasets to build from: hand-made scenes, the bundled world, and photographs where they are present."""

import io
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image

from maskwise.builder.draft import SourceImage
from maskwise.masks import Mask
from maskwise.schema import ImageInfo, Region
from maskwise.store import Dataset, DatasetWriter
from tests.cli.commands import run
from tests.shared import shared

HEIGHT = 100
WIDTH = 200


def box(left: int, top: int, right: int, bottom: int) -> Mask:
    dense = np.zeros((HEIGHT, WIDTH), np.bool_)
    dense[top:bottom, left:right] = True
    return Mask.from_dense(dense)


def thing(
    id: str,
    name: str,
    visible: Mask,
    amodal: Mask | None = None,
    part_of: str | None = None,
) -> Region:
    return Region(
        id=id, name=name, visible=visible, amodal=amodal or visible, part_of=part_of
    )


def scene(*regions: Region, id: str = "scene") -> SourceImage:
    return SourceImage(
        ImageInfo(id=id, width=WIDTH, height=HEIGHT),
        regions,
        lambda: Image.new("RGB", (WIDTH, HEIGHT)),
    )


def table_scene() -> SourceImage:
    """A cup and a plate on a table; the cup hides a part of the plate, and the knife has parts."""
    cup = box(40, 40, 60, 60)
    plate = box(50, 50, 90, 62)
    return scene(
        thing(
            "table",
            "dining table",
            box(10, 55, 190, 95) - cup - plate,
            box(10, 55, 190, 95),
        ),
        thing("plate", "plate", plate - cup, plate),
        thing("cup", "coffee cup", cup),
        thing("knife", "knife", box(100, 60, 130, 66)),
        thing("knife.blade", "knife:blade", box(112, 60, 130, 66), part_of="knife"),
        thing("knife.handle", "knife:handle", box(100, 60, 112, 66), part_of="knife"),
        thing("left", "dog", box(5, 5, 35, 50)),
        thing("right", "dog", box(150, 5, 190, 50)),
    )


def write_dataset(path: Path, images: Iterable[SourceImage]) -> Dataset:
    file = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (90, 120, 150)).save(file, "PNG")
    with DatasetWriter(path, name="scenes") as writer:
        for image in images:
            writer.add_image(image.info, image.regions, file.getvalue())
    return Dataset.open(path)


def read_photos(name: str, path: Path) -> Dataset:
    """The photographs of COCOA, ADE20K or COCO as a dataset."""
    if name == "cocoa":
        return _read_cocoa(path)
    folder, options = {
        "ade20k": ("ade20k", ()),
        "coco": ("coco128", ("--split", "train2017")),
    }[name]
    run("read", name, shared("data", folder), "--out", path, *options)
    return Dataset.open(path)


def _read_cocoa(path: Path) -> Dataset:
    """The five photographs, put together as the published file is."""
    folder = shared("data", "cocoa")
    raw = path.with_name("cocoa_raw")
    (raw / "val2014").mkdir(parents=True)
    annotations = []
    images = []
    for file in sorted(folder.glob("*.json")):
        annotation = json.loads(file.read_text())
        photo = folder / f"{file.stem}.jpg"
        (raw / "val2014" / photo.name).write_bytes(photo.read_bytes())
        with Image.open(photo) as image:
            width, height = image.size
        images.append(
            {
                "id": annotation["image_id"],
                "file_name": photo.name,
                "width": width,
                "height": height,
            }
        )
        annotations.append(annotation)
    (raw / "COCO_amodal_val2014.json").write_text(
        json.dumps({"images": images, "annotations": annotations})
    )
    run("read", "cocoa", raw, "--split", "val", "--out", path)
    return Dataset.open(path)
