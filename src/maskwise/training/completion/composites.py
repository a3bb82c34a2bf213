"""Training data: crops of the objects in composites of `occlude` and in their originals, one file per image.

MobileSAM, which encodes them, takes seconds per image. covered_pairs.py makes more examples without it.
"""

import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array, UInt8Array
from maskwise.builder.cutouts import CutoutSource
from maskwise.builder.occlude import CompositeMaker, OccludeOptions
from maskwise.errors import MaskwiseError
from maskwise.models.photo.sam import FEATURE_CHANNELS, MobileSam
from maskwise.models.photo.window import Window
from maskwise.schema import Region
from maskwise.store import Dataset
from maskwise.store.atomic import atomic_write

STORED_SIZE = 128
STORED_FEATURES = 32
"""Sides of the stored crops, which are larger than what the network sees: augmentation moves its window in them."""

STORED_CONTEXT = 0.8

MIN_AREA = 300
"""Smallest visible object, in pixels, that is an example."""

MAX_RATE = 0.8
"""An object that is occluded more than this is no example: nothing tells its shape."""


MAX_NEIGHBOURS = 255
"""Other objects of a crop that are told apart."""


class ObjectCrop(NamedTuple):
    """An object and what is around it, s = STORED_SIZE. pixels: uint8 [s, s, 3]; visible, amodal: bool [s, s];
    neighbours: uint8 [s, s], the other annotated objects, numbered from 1, 0 where there is none; features: float16
    [256, f, f], [0, f, f] if the image is not encoded; window: float32 [4] in pixels of the image.
    """

    pixels: UInt8Array
    visible: BoolArray
    amodal: BoolArray
    neighbours: UInt8Array
    features: NDArray[np.float16]
    window: Float32Array

    @property
    def rate(self) -> float:
        """Occlusion rate."""
        return 1 - float(self.visible.sum() / max(1, self.amodal.sum()))


def split_rows(dataset: Dataset, held_out: int) -> tuple[list[int], list[int]]:
    """The images for training and, every `held_out`-th one from the first on, those for validation."""
    rows = range(len(dataset.images))
    return [row for row in rows if row % held_out], list(rows[::held_out])


def write_composites(
    dataset: Dataset,
    rows: Iterable[int],
    options: OccludeOptions,
    *,
    sam: MobileSam,
    folder: Path,
) -> Iterator[list[Path]]:
    """Write the objects of a dataset's composites and originals; yields the files of one source image after another.

    rows: the images. Files that exist are kept. An original is written once for all seeds.
    """
    maker = CompositeMaker(dataset, CutoutSource(dataset))
    folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        paths = []
        pairs, _ = maker.occlude(row, options)
        for number, pair in enumerate(pairs):
            prefix = f"{dataset.path.name}-{row}"
            names = (f"{prefix}-original", f"{prefix}-{options.seed}-{number}")
            for name, member in zip(names, pair):
                path = folder / f"{name}.npz"
                if not path.exists():
                    assert member.data is not None
                    with Image.open(io.BytesIO(member.data)) as image:
                        write_crops(
                            path,
                            crop_objects(image.convert("RGB"), member.regions, sam),
                        )
                paths.append(path)
        yield paths


def crop_objects(
    image: Image.Image, regions: tuple[Region, ...], sam: MobileSam
) -> list[ObjectCrop]:
    """The objects of an image whose visible and amodal masks are known, large enough and not hidden too much."""
    features = sam.encode(image).features[0]
    shown = [
        region for region in regions if region.visible is not None and not region.crowd
    ]
    dense = [
        region.visible.to_dense() for region in shown if region.visible is not None
    ]
    crops = []
    for place, (region, visible) in enumerate(zip(shown, dense)):
        if region.amodal is not None and _is_example(
            visible, amodal := region.amodal.to_dense()
        ):
            others = dense[:place] + dense[place + 1 :]
            crops.append(crop_object(image, features, visible, amodal, others))
    return crops


def crop_object(
    image: Image.Image,
    features: Float32Array | None,
    visible: BoolArray,
    amodal: BoolArray,
    others: list[BoolArray],
) -> ObjectCrop:
    """One object. Masks are bool [height, width] of the image; others: further objects, the one in front first."""
    window = Window.around(visible, STORED_CONTEXT)
    neighbours = np.zeros((STORED_SIZE, STORED_SIZE), np.uint8)
    for number, mask in reversed(list(enumerate(others[:MAX_NEIGHBOURS], 1))):
        neighbours[window.crop_mask(mask, STORED_SIZE)] = number
    cropped = np.zeros((0, STORED_FEATURES, STORED_FEATURES), np.float16)
    if features is not None:
        cropped = window.crop_features(
            features, max(image.size), STORED_FEATURES
        ).astype(np.float16)
    return ObjectCrop(
        window.crop(image, STORED_SIZE),
        window.crop_mask(visible, STORED_SIZE),
        window.crop_mask(amodal, STORED_SIZE),
        neighbours,
        cropped,
        np.array(window, np.float32),
    )


def write_crops(path: Path, crops: list[ObjectCrop]) -> None:
    """Write the crops of an image; there may be none."""
    s = STORED_SIZE
    f = STORED_FEATURES
    channels = len(crops[0].features) if crops else 0
    shapes = ((s, s, 3), (s, s), (s, s), (s, s), (channels, f, f), (4,))
    columns = {
        name: np.array([crop[place] for crop in crops]).reshape(
            len(crops), *shapes[place]
        )
        for place, name in enumerate(ObjectCrop._fields)
    }
    with atomic_write(path) as file:
        np.savez(file, **columns)  # type: ignore[arg-type]


def read_crops(path: Path) -> list[ObjectCrop]:
    """Read a file of `write_crops`."""
    try:
        with np.load(path) as file:
            columns = [file[name] for name in ObjectCrop._fields]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise MaskwiseError(
            f"{path} is not a usable training file: {error}; delete it to make it again"
        ) from None
    if columns[4].shape[1:2] not in ((0,), (FEATURE_CHANNELS,)) and len(columns[4]):
        raise MaskwiseError(
            f"{path} holds {columns[4].shape[1]} feature channels; delete it to make it again"
        )
    return [ObjectCrop(*row) for row in zip(*columns)]


def _is_example(visible: BoolArray, amodal: BoolArray) -> bool:
    shown = int(visible.sum())
    return shown >= MIN_AREA and shown >= (1 - MAX_RATE) * int(amodal.sum())
