"""Arrays as evaluation scripts like LISA's keep them: a `.npz` with one array per sample, or a folder of `SAMPLE.npy`.

    np.savez_compressed("predictions.npz", **{sample_id: masks or logits})

Shape (height, width) for one mask or (masks, height, width) for any number. No masks, (0, height, width), state that
there is no target; a mask without pixels does not. Bool and integer arrays are
masks (nonzero is foreground). Floats are logits, thresholded at > 0, or at >= 0 with `zero_inside` as in GSVA.
Nothing is unpickled, and sizes are checked before memory is allocated.
"""

import lzma
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from maskwise.errors import MaskError, StoreError
from maskwise.masks import Masks
from maskwise.predictions.loaded import LoadedPredictions, masks_to_columns
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.logits import threshold_logits
from maskwise.runs.schema import ReadOptions

MAX_MASKS = 10_000
"""The most masks that one sample may have."""

MAX_ARRAY_BYTES = 2**29
"""The largest array of one sample: a compressed file may claim, and contain, far more than its own size."""

HEADER_ERRORS = (
    ValueError,
    TypeError,
    SyntaxError,
    RecursionError,
    MemoryError,
    tokenize.TokenError,
)
"""What numpy raises for an invalid header."""

ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
)
"""What a damaged, encrypted or unsupported member of an archive raises when it is opened or read."""


def read_npz(path: Path, truth: GroundTruth, options: ReadOptions) -> LoadedPredictions:
    """The arrays of a file or folder, in the order of the dataset."""
    row = {sample: item for item, sample in enumerate(truth.ids)}
    read = 0
    unknown = None
    parts: dict[int, tuple[Masks, NDArray[np.int64]]] = {}
    for name, file in _open_all(path):
        read += 1
        if name not in row:
            unknown = unknown or name
            continue
        frame = tuple(truth.image_size[row[name]].tolist())
        parts[row[name]] = _cut(
            _load(file, frame, f"{path}: {name}"), options, f"{path}: {name}"
        )
    order = sorted(parts)
    owner = np.repeat(
        np.array(order, np.int64), [len(parts[sample][0]) for sample in order]
    )
    answered = np.zeros(len(truth), bool)
    answered[order] = True
    columns = masks_to_columns(
        truth,
        owner,
        Masks.concat([parts[sample][0] for sample in order]),
        answered=answered,
        options=options,
        no_target=_without_masks(parts, len(truth)),
        logits=_all_logits([parts[sample][1] for sample in order]),
    )
    return LoadedPredictions(columns, read, len(parts), unknown)


def _without_masks(
    parts: dict[int, tuple[Masks, NDArray[np.int64]]], samples: int
) -> NDArray[np.bool_]:
    """Which samples have an array of no masks, bool [samples]."""
    no_target = np.zeros(samples, bool)
    for sample, (masks, _) in parts.items():
        no_target[sample] = len(masks) == 0
    return no_target


def _open_all(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and open array of each sample."""
    if path.is_dir():
        for file in sorted(path.rglob("*.npy")):
            with open(file, "rb") as opened:
                yield file.relative_to(path).with_suffix("").as_posix(), opened
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                with archive.open(member) as opened:
                    yield member.removesuffix(".npy"), opened
    except ARCHIVE_ERRORS as error:
        raise StoreError(f"{path} is not a valid .npz file: {error}") from None


def _load(file: IO[bytes], frame: tuple[int, ...], where: str) -> NDArray[Any]:
    """One array (masks, height, width) of the image's size. The header is checked before the data is read."""
    try:
        version = npy.read_magic(file)
        reader = (
            npy.read_array_header_1_0
            if version == (1, 0)
            else npy.read_array_header_2_0
        )
        shape, fortran, dtype = reader(file)
    except (*HEADER_ERRORS, *ARCHIVE_ERRORS) as error:
        raise StoreError(f"{where} is not an array: {error}") from None
    if dtype.hasobject or dtype.kind not in "buif":
        raise StoreError(f"{where} holds {dtype}; expected bool, integers or floats")
    plain = all(type(length) is int for length in shape)  # numpy lets bools pass
    if (
        len(shape) not in (2, 3)
        or shape[-2:] != frame
        or not (plain and 0 <= math.prod(shape[:-2]) <= MAX_MASKS)
    ):
        raise StoreError(
            f"{where} has shape {shape}; expected (height, width) = {frame}, with up to {MAX_MASKS} masks"
        )
    size = math.prod(shape) * dtype.itemsize
    if size > MAX_ARRAY_BYTES:
        raise StoreError(
            f"{where} has {size} bytes; the limit for one sample is {MAX_ARRAY_BYTES}"
        )
    data = _read(file, size, where)
    if len(data) != size:
        raise StoreError(f"{where} ends early: {len(data)} bytes of {size}")
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    return array if array.ndim == 3 else array[None]


def _read(file: IO[bytes], size: int, where: str) -> bytes:
    """That many bytes and, at the end of the member, its checksum."""
    try:
        data = file.read(size)
        if len(data) == size:
            file.read(1)  # an archive compares the checksum when it reaches the end
    except ARCHIVE_ERRORS as error:
        raise StoreError(f"{where} is damaged: {error}") from None
    return data


def _cut(
    array: NDArray[Any], options: ReadOptions, where: str
) -> tuple[Masks, NDArray[np.int64]]:
    """Masks, and counts of logits [masks, 3], or [masks, 0] for an array that is not logits."""
    try:
        if array.dtype.kind == "f":
            return threshold_logits(array, zero_inside=options.zero_inside)
        return Masks.from_dense(array), np.zeros((len(array), 0), np.int64)
    except MaskError as error:
        raise StoreError(f"{where}: {error}") from None


def _all_logits(counts: list[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """The counts of all masks, if all of them come from logits."""
    if any(len(part) and part.shape[1] == 0 for part in counts) or not counts:
        return None
    return np.concatenate([part.reshape(-1, 3) for part in counts])
