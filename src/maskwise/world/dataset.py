"""Scenes as a dataset folder."""

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.errors import RecordError
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import DatasetWriter
from maskwise.world.scenes import QUESTIONS, SIZE, scene

Encoding = Literal["png", "jpeg"]

ENCODINGS: dict[Encoding, dict[str, int]] = {
    "png": {"compress_level": 3},
    "jpeg": {"quality": 92, "subsampling": 0},
}
"""How images are stored: png keeps every pixel, jpeg takes a quarter of the room."""

CHUNK = 8
"""Scenes a worker makes before it hands them over."""

Row = tuple[ImageInfo, tuple[Region, ...], bytes, tuple[Sample, ...]]


def write_scenes(
    path: str | os.PathLike[str],
    scenes: int,
    seed: int,
    *,
    split: str = "train",
    size: int = SIZE,
    questions: int = QUESTIONS,
    encoding: Encoding = "png",
    workers: int = 1,
    overwrite: bool = False,
    done: Callable[[], None] = lambda: None,
) -> None:
    """Write scenes 0 to `scenes` - 1 of a split as a dataset folder, all regions included.

    The folder is the same for any number of workers. `done` is called after every scene.
    """
    if scenes < 1 or size < 32 or questions < 0 or workers < 1:
        raise RecordError(
            f"expected at least 1 scene, a size of 32 or more, 0 or more questions and 1 worker; got {scenes} scenes, "
            f"size {size}, {questions} questions, {workers} workers"
        )
    about = {
        "source": "maskwise world",
        "command": f"maskwise world --scenes {scenes} --seed {seed} --split {split} --size {size} "
        f"--questions {questions} --images {encoding}",
    }
    make = partial(_row, seed=seed, split=split, size=size, questions=questions, encoding=encoding)
    with (
        DatasetWriter(path, name=f"world-{split}", about=about, overwrite=overwrite) as writer,
        _rows(make, scenes, workers) as rows,
    ):
        for image, regions, data, samples in rows:
            writer.add_image(image, regions, data)
            for sample in samples:
                writer.add_sample(sample)
            done()


def bundled() -> Path:
    """The folder of the benchmark that ships with the package: 48 scenes of the test split.

    Made by `maskwise world --scenes 48 --seed 2506 --split test --size 224 --questions 5 --images jpeg`.
    """
    return Path(__file__).parent / "bundled"


def bundled_predictions() -> Path:
    """Sample predictions for the bundled benchmark, made by `python -m maskwise.world.spoil`."""
    return Path(__file__).parent / "bundled_predictions.jsonl"


@contextlib.contextmanager
def _rows(make: Callable[[int], Row], scenes: int, workers: int) -> Iterator[Iterator[Row]]:
    if workers == 1:
        yield map(make, range(scenes))
        return
    with ProcessPoolExecutor(workers) as pool:
        try:
            yield pool.map(make, range(scenes), chunksize=CHUNK)
        finally:
            pool.shutdown(cancel_futures=True)  # after an error nobody waits for the rest


def _row(index: int, *, seed: int, split: str, size: int, questions: int, encoding: Encoding) -> Row:
    made = scene(seed, index, split, size, questions=questions)
    image = ImageInfo(id=made.id, width=size, height=size)
    return image, made.regions, encode_image(made.image, encoding), made.samples


def encode_image(pixels: NDArray[np.uint8], encoding: Encoding) -> bytes:
    """An image uint8 (height, width, 3) as PNG or JPEG bytes."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, encoding, **ENCODINGS[encoding])
    return file.getvalue()
