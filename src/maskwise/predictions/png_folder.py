"""A folder of mask images: `SAMPLE.png` for one mask, or `SAMPLE/0.png`, `SAMPLE/1.png`, ... for several.

One channel of 0 and 1, or of 0 and 255. A sample id may contain slashes: they are folders. A mask without
foreground is an empty mask. A file that belongs to no sample is counted, not scored.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.errors import MaskError, StoreError
from maskwise.masks import Masks
from maskwise.predictions.loaded import LoadedPredictions, masks_to_columns
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.runs.schema import ReadOptions

MODES = ("1", "L", "P", "I", "I;16")
"""Pillow's modes with one channel: bits, bytes, palette, 32 and 16 bits."""


def read_png_folder(
    path: Path, truth: GroundTruth, options: ReadOptions
) -> LoadedPredictions:
    """The masks of a folder, in the order of the dataset."""
    row = {sample: item for item, sample in enumerate(truth.ids)}
    # Row of the sample, number of the mask among those of the sample, file.
    mask_files: list[tuple[int, int, Path]] = []
    files = sorted(path.rglob("*.png"))
    unknown = None
    for file in files:
        whole = file.relative_to(path).with_suffix("").as_posix()
        sample, _, number = whole.rpartition("/")
        if whole in row:
            mask_files.append((row[whole], 0, file))
        elif sample in row and number.isdecimal():
            mask_files.append((row[sample], int(number), file))
        else:
            unknown = unknown or whole
    mask_files.sort()
    masks = [
        _read(file, tuple(truth.image_size[sample].tolist()))
        for sample, _, file in mask_files
    ]
    owner = np.array([sample for sample, _, _ in mask_files], np.int64)
    answered = np.zeros(len(truth), bool)
    answered[owner] = True
    columns = masks_to_columns(
        truth, owner, Masks.concat(masks), answered=answered, options=options
    )
    return LoadedPredictions(columns, len(files), len(mask_files), unknown)


def _read(file: Path, frame: tuple[int, ...]) -> Masks:
    """One mask; the size is checked before pixels are read."""
    try:
        with Image.open(file, formats=["PNG"]) as image:
            if image.mode not in MODES:
                raise StoreError(
                    f"{file} has mode {image.mode}; expected a mask with one channel"
                )
            if (image.height, image.width) != frame:
                raise StoreError(
                    f"{file} has height and width {image.height, image.width}, but its image has {frame}"
                )
            pixels: NDArray[np.generic] = np.asarray(image)
    except (
        OSError,
        SyntaxError,
        ValueError,
        MemoryError,
        Image.DecompressionBombError,
    ) as error:
        # Pillow raises ValueError for text and color profile chunks beyond its limits, and MemoryError for a chunk
        # whose header claims gigabytes.
        raise StoreError(f"{file} is not a PNG image: {error}") from None
    try:
        return Masks.from_dense(pixels[None])
    except MaskError as error:
        raise StoreError(f"{file}: {error}") from None
