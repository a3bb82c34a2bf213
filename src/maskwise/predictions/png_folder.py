"""A folder of mask images: `SAMPLE.png` for one mask, or `SAMPLE/0.png`, `SAMPLE/1.png`, ... for several.

One channel of 0 and 1, or of 0 and 255. A sample id may contain slashes: they are folders. A mask without
foreground is an empty mask. A file that belongs to no sample is counted, not scored. `no_target.txt` has the ids of the
samples for which the model states that there is no target, one per line; a sample with neither has no prediction.
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

NO_TARGET_FILE = "no_target.txt"
MAX_LIST_BYTES = 2**28
"""The largest list of ids that is read: 256 MB are several million ids."""

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
    stated = _read_no_target(path)
    no_target = np.zeros(len(truth), bool)
    for sample_id in stated:
        if sample_id in row:
            no_target[row[sample_id]] = True
        else:
            unknown = unknown or sample_id
    contradicting = owner[no_target[owner]]
    if len(contradicting):
        raise StoreError(
            f"{path / NO_TARGET_FILE} names {truth.ids[contradicting[0]]!r}, which has masks; remove one of them"
        )
    answered = no_target.copy()
    answered[owner] = True
    columns = masks_to_columns(
        truth,
        owner,
        Masks.concat(masks),
        answered=answered,
        options=options,
        no_target=no_target,
    )
    matched = len(mask_files) + int(no_target.sum())
    return LoadedPredictions(columns, len(files) + len(stated), matched, unknown)


def _read_no_target(folder: Path) -> list[str]:
    """The ids in the list of samples without targets, each once; empty if there is no list."""
    path = folder / NO_TARGET_FILE
    if not path.is_file():
        return []
    if path.stat().st_size > MAX_LIST_BYTES:
        raise StoreError(f"{path} is larger than {MAX_LIST_BYTES} bytes")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from None
    lines = (line.strip() for line in text.splitlines())
    return list(dict.fromkeys(line for line in lines if line))


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
