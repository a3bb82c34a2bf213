"""Small datasets in the layouts that were published, one function each; every one is read without a diagnostic."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from pycocotools import mask as coco_mask

WIDTH = 12
HEIGHT = 10


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_image(path: Path, width: int = WIDTH, height: int = HEIGHT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (width, height), (90, 120, 150)).save(path)
    return path


def plane(*rows: str) -> np.ndarray:
    """A plane of HEIGHT x WIDTH whose upper left corner is drawn; the rest is background."""
    out = np.zeros((HEIGHT, WIDTH), np.uint8)
    for y, row in enumerate(rows):
        for x, letter in enumerate(row):
            out[y, x] = letter == "#"
    return out


def rle(dense: np.ndarray) -> dict[str, Any]:
    """COCO run lengths, made by pycocotools."""
    made = coco_mask.encode(np.asfortranarray(dense.astype(np.uint8)))
    return {
        "size": [int(side) for side in made["size"]],
        "counts": made["counts"].decode(),
    }


SQUARE = [[1.0, 1.0, 5.0, 1.0, 5.0, 5.0, 1.0, 5.0]]
FRONT = plane("###", "###", "###")
BACK_VISIBLE = plane("...##", "...##", "...##")
BACK_AMODAL = plane(".####", ".####", ".####")


def images(*names: str) -> list[dict[str, Any]]:
    return [
        {"id": number, "file_name": name, "width": WIDTH, "height": HEIGHT}
        for number, name in enumerate(names, 1)
    ]


CATEGORIES = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]


def coco(root: Path) -> Path:
    write_image(root / "val2017/1.jpg")
    write_image(root / "val2017/2.jpg")
    annotations = [
        {
            "id": 7,
            "image_id": 1,
            "category_id": 1,
            "iscrowd": 0,
            "segmentation": SQUARE,
        },
        {
            "id": 8,
            "image_id": 1,
            "category_id": 2,
            "iscrowd": 1,
            "segmentation": {"size": [10, 12], "counts": [5, 5, 110]},
        },
    ]
    value = {
        "images": images("1.jpg", "2.jpg"),
        "annotations": annotations,
        "categories": CATEGORIES,
    }
    return write_json(root / "annotations/instances_val2017.json", value)


def cocoa(root: Path) -> Path:
    write_image(root / "val2014/1.jpg")
    regions = [
        {
            "segmentation": SQUARE[0],
            "name": "phone",
            "area": 16,
            "isStuff": 0,
            "occlude_rate": 0,
            "order": 1,
        },
        {
            "segmentation": [0.0, 0.0, 6.0, 0.0, 6.0, 6.0, 0.0, 6.0],
            "name": "table",
            "order": 4,
            "visible_mask": rle(plane("######", "#", "#")),
            "invisible_mask": rle(plane(".", ".#####")),
        },
    ]
    annotation = {
        "id": 377,
        "image_id": 1,
        "author": "a",
        "url": "u",
        "size": 9,
        "depth_constraint": "1-4",
        "regions": regions,
    }
    return write_json(
        root / "annotations/COCO_amodal_val2014.json",
        {"images": images("1.jpg"), "annotations": [annotation]},
    )


def _amodal_annotations(amodal: str, visible: str, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": 1,
            "image_id": 1,
            "category_id": 1,
            amodal: rle(FRONT),
            visible: rle(FRONT),
            **more,
        },
        {
            "id": 2,
            "image_id": 1,
            "category_id": 2,
            amodal: rle(BACK_AMODAL),
            visible: rle(BACK_VISIBLE),
            **more,
        },
    ]


def cocoa_cls(root: Path) -> Path:
    write_image(root / "val2014/1.jpg")
    annotations = _amodal_annotations(
        "segmentation", "visible_mask", bbox=[0, 0, 5, 3], occlude_rate=0.1
    )
    value = {
        "images": images("1.jpg"),
        "annotations": annotations,
        "categories": CATEGORIES,
    }
    return write_json(root / "annotations/COCO_amodal_val2014_with_classes.json", value)


def d2sa(root: Path) -> Path:
    write_image(root / "images/1.jpg")
    annotations = _amodal_annotations(
        "segmentation", "visible_mask", iscrowd=False, area=9.0
    )
    value = {
        "images": images("1.jpg"),
        "annotations": annotations,
        "categories": CATEGORIES,
    }
    return write_json(root / "D2S_amodal_validation.json", value)


def kins_2019(root: Path) -> Path:
    write_image(root / "testing/image_2/1.png")
    write_image(root / "training/image_2/1.png", 5, 5)
    annotations = _amodal_annotations(
        "segmentation", "inmodal_seg", inmodal_bbox=[0, 0, 1, 1]
    )
    annotations[0]["segmentation"] = [[0, 0, 3, 0, 3, 3, 0, 3]]
    value = {
        "images": images("1.png"),
        "annotations": annotations,
        "categories": CATEGORIES,
    }
    return write_json(root / "instances_val.json", value)


def kins_2020(root: Path) -> Path:
    write_image(root / "training/image_2/1.png")
    annotations = _amodal_annotations("a_segm", "i_segm", oco_id=0)
    annotations[0]["ico_id"] = 0
    annotations[1]["ico_id"] = 2
    value = {
        "images": images("1.png"),
        "annotations": annotations,
        "categories": CATEGORIES,
    }
    return write_json(root / "update_train_2020.json", value)


def muva(root: Path) -> Path:
    write_image(root / "images/1.jpg")
    annotations = _amodal_annotations("segmentation", "visible_mask")
    value = {
        "images": images("1.jpg"),
        "annotations": annotations,
        "categories": CATEGORIES,
    }
    return write_json(root / "annotations/AiFi-MUVA_val.json", value)


def paco_lvis(root: Path) -> Path:
    write_image(root / "val2017/1.jpg")
    annotations = [
        {
            "id": 1,
            "image_id": 1,
            "category_id": 1,
            "obj_ann_id": 1,
            "segmentation": rle(BACK_AMODAL),
        },
        {
            "id": 2,
            "image_id": 1,
            "category_id": 3,
            "obj_ann_id": 1,
            "segmentation": rle(BACK_VISIBLE),
        },
    ]
    categories = [*CATEGORIES, {"id": 3, "name": "cat:tail", "supercategory": "PART"}]
    value = {
        "images": images("val2017/1.jpg"),
        "annotations": annotations,
        "categories": categories,
    }
    return write_json(root / "annotations/paco_lvis_v1_val.json", value)


def ade20k(root: Path) -> Path:
    folder = root / "ADE20K_2021_17_01/images/ADE/training/street"
    write_image(folder / "ADE_1.jpg")
    (folder / "ADE_1").mkdir()
    for number, visible, amodal in (
        (0, FRONT, FRONT),
        (1, BACK_VISIBLE, BACK_AMODAL),
        (2, FRONT * 0, FRONT),
    ):
        grey = np.where(visible > 0, 255, np.where(amodal > 0, 128, 0)).astype(np.uint8)
        Image.fromarray(grey).save(folder / f"ADE_1/instance_00{number}_ADE_1.png")
    objects = [
        {
            "id": number,
            "name": name,
            "parts": {
                "hasparts": [],
                "ispartof": whole,
                "part_level": int(whole != []),
            },
            "instance_mask": f"ADE_1/instance_00{number}_ADE_1.png",
            "depth_ordering_rank": number + 1,
        }
        for number, name, whole in ((0, "car", []), (1, "wall", []), (2, "wheel", 0))
    ]
    value = {
        "annotation": {
            "filename": "ADE_1.jpg",
            "folder": "f",
            "imsize": [HEIGHT, WIDTH, 3],
            "object": objects,
        }
    }
    return write_json(folder / "ADE_1.json", value)


def mmr(root: Path) -> Path:
    write_image(root / "train2017/1.jpg")
    knife = {
        "bbox": [0, 0, 3, 3],
        "segmentation": rle(FRONT),
        "image_id": 5,
        "category_name": "knife",
        "category_id": 1,
    }
    handle = {"segmentation": rle(plane("#")), "category_name": "knife:handle"}
    record = {
        "file_name": "train2017/1.jpg",
        "height": HEIGHT,
        "width": WIDTH,
        "image_id": 5,
        "coco_url": "http://images.cocodataset.org/train2017/1.jpg",
        "questions": ["What cuts?", "Where do I hold what cuts?"],
        "annotations": [],
        "answers": [[knife], [knife, handle]],
        "text_answers": [
            "The knife_1 {seg}.",
            "Take the knife_1 {seg} by the knife_1's handle {seg}.",
        ],
        "raw_answers": ["", ""],
    }
    return write_json(root / "MMR_val.json", [record])


def muse(root: Path) -> Path:
    write_image(root / "train2014/COCO_train2014_1.jpg")
    write_image(root / "val2017/2.jpg")
    twice = [*SQUARE, [3.0, 3.0, 8.0, 3.0, 8.0, 8.0, 3.0, 8.0]]
    cat = {
        "segmentation": twice,
        "category_name": "cat",
        "rephrased_name": "sleepy cat",
        "bbox": [1, 1, 4, 4],
    }
    common = {
        "height": HEIGHT,
        "width": WIDTH,
        "ann_list": [cat],
        "questions": ["Who sleeps?"],
        "answers": [[cat]],
    }
    records = [
        common
        | {
            "file_name": "COCO_train2014_1.jpg",
            "text_answers": ["The sleepy cat {seg} does."],
        },
        common | {"coco_url": "http://images.cocodataset.org/val2017/2.jpg"},
    ]
    return write_json(root / "muse_val.json", records)


def reasonseg(root: Path) -> Path:
    write_image(root / "val/a.jpg")
    shapes = [
        {"label": "target", "points": [[1.9, 1.2], [8.0, 1.0], [8.0, 8.0], [1.0, 8.0]]},
        {"label": "ignore", "points": [[3, 3], [5, 3], [5, 5], [3, 5]]},
        {"label": "flag", "points": [[0, 0], [11, 0], [11, 9]]},
    ]
    return write_json(
        root / "val/a.json",
        {"text": ["What?", "Which?"], "is_sentence": True, "shapes": shapes},
    )


def grefcoco(root: Path) -> Path:
    write_image(root / "train2014/COCO_train2014_1.jpg")
    annotations = [
        {
            "id": 7,
            "image_id": 1,
            "category_id": 1,
            "iscrowd": 0,
            "segmentation": SQUARE,
        },
        {
            "id": 8,
            "image_id": 1,
            "category_id": 2,
            "iscrowd": 0,
            "segmentation": [[6, 6, 9, 6, 9, 9]],
        },
        {
            "id": 9,
            "image_id": 1,
            "category_id": 2,
            "iscrowd": 1,
            "segmentation": rle(FRONT),
        },
    ]
    value = {
        "images": images("COCO_train2014_1.jpg"),
        "annotations": annotations,
        "categories": CATEGORIES,
    }
    write_json(root / "grefcoco/instances.json", value)
    common = {"image_id": 1, "split": "val", "file_name": "COCO_train2014_1_16.jpg"}
    refs = [
        common
        | {
            "ref_id": 1,
            "ann_id": [7, 8, 9],
            "sentences": [{"sent_id": 1, "sent": "both", "raw": "Both", "tokens": []}],
        },
        common
        | {
            "ref_id": 2,
            "ann_id": [-1],
            "no_target": True,
            "sentences": [{"sent_id": 2, "sent": "cow"}],
        },
        common
        | {
            "ref_id": 3,
            "ann_id": 8,
            "sentences": [{"sent_id": 3, "sent": "dog"}, {"sent_id": 4, "sent": "pup"}],
        },
        common
        | {
            "ref_id": 4,
            "split": "train",
            "ann_id": [7],
            "sentences": [{"sent_id": 5, "sent": "cat"}],
        },
    ]
    return write_json(root / "grefcoco/grefs(unc).json", refs)


def refcocom(root: Path) -> Path:
    write_image(root / "train2014/a.jpg")
    (root / "masks").mkdir()
    grey = np.where(FRONT > 0, 255, np.where(BACK_AMODAL > 0, 254, 0)).astype(np.uint8)
    Image.fromarray(grey).save(root / "masks/31.png")
    record = {
        "img_name": "a.jpg",
        "segment_id": 31,
        "sentences": [{"sent": " Left Ear"}, {"sent": "ear"}],
    }
    return write_json(root / "annotations/refcocom_val.json", [record])


def amodalreasonseg(root: Path) -> Path:
    write_image(root / "images/1.jpg")
    pizza = {
        "category": "pizza",
        "visible_mask": rle(BACK_VISIBLE),
        "amodal_mask": rle(BACK_AMODAL),
    }
    knife = {
        "category": "knife",
        "visible_mask": rle(FRONT),
        "amodal_mask": [[0, 0, 3, 0, 3, 3, 0, 3]],
    }
    record = {
        "image": "1.jpg",
        "question": "What is for dinner?",
        "answer": "The pizza [SEG] is cut with a knife [SEG].",
        "objects": [pizza, knife],
    }
    return write_json(root / "val.json", [record])


def r2sm(root: Path) -> Path:
    write_image(root / "images/1.jpg")
    records = [
        {
            "image": "1.jpg",
            "query": "the cup",
            "mask_type": "modal",
            "mask": rle(BACK_VISIBLE),
        },
        {
            "image": "1.jpg",
            "query": "the whole cup",
            "mask_type": "amodal",
            "mask": rle(BACK_AMODAL),
        },
    ]
    return write_json(root / "val.json", records)


SOURCES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "coco": ("coco", coco),
    "cocoa": ("cocoa", cocoa),
    "cocoa_cls": ("cocoa_cls", cocoa_cls),
    "d2sa": ("d2sa", d2sa),
    "kins_2019": ("kins", kins_2019),
    "kins_2020": ("kins", kins_2020),
    "muva": ("muva", muva),
    "paco_lvis": ("paco_lvis", paco_lvis),
    "ade20k": ("ade20k", ade20k),
}
BENCHMARKS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    name: (name, make)
    for name, make in {
        "mmr": mmr,
        "muse": muse,
        "reasonseg": reasonseg,
        "grefcoco": grefcoco,
        "refcocom": refcocom,
        "amodalreasonseg": amodalreasonseg,
        "r2sm": r2sm,
    }.items()
}
