"""Write scenes as a dataset folder; the bundled test set."""

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal

from PIL import Image

from maskwise.arrays import UInt8Array
from maskwise.errors import RecordError
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import DatasetWriter
from maskwise.world.scenes import QUESTIONS, SIZE, make_scene

Encoding = Literal["png", "jpeg"]

ENCODINGS: dict[Encoding, dict[str, int]] = {
    "png": {"compress_level": 3},
    "jpeg": {"quality": 92, "subsampling": 0},
}
"""How images are stored: png keeps every pixel, jpeg needs a quarter of the space."""

CHUNK = 8
"""Scenes per task of a worker."""

Row = tuple[ImageInfo, tuple[Region, ...], bytes, tuple[Sample, ...]]


def write_scenes(
    path: str | os.PathLike[str],
    scenes: int,
    seed: int,
    *,
    split: str = "train",
    size: int = SIZE,
    questions: int = QUESTIONS,
    preset: str = "default",
    dialogues: bool = False,
    encoding: Encoding = "png",
    workers: int = 1,
    overwrite: bool = False,
    done: Callable[[], None] = lambda: None,
) -> None:
    """Write scenes 0 to `scenes` - 1 of a split as a dataset folder, all regions included.

    The folder is the same for any number of workers. dialogues: ask in two or three turns; the last one is the
    question. `done` is called after every scene.
    """
    if scenes < 1 or size < 32 or questions < 0 or workers < 1:
        raise RecordError(
            f"expected at least 1 scene, a size of 32 or more, 0 or more questions and 1 worker; got {scenes} scenes, "
            f"size {size}, {questions} questions, {workers} workers"
        )
    command = (
        f"maskwise world --scenes {scenes} --seed {seed} --split {split} --size {size} "
        f"--questions {questions} --encoding {encoding}"
    )
    name = f"world-{split}"
    if preset != "default":
        command = f"{command} --preset {preset}"
        name = f"world-{preset}-{split}"
    if dialogues:
        command = f"{command} --dialogues"
        name = f"{name}-dialogues"
    about = {"source": "maskwise world", "command": command}
    make = partial(
        _row,
        seed=seed,
        split=split,
        size=size,
        questions=questions,
        preset=preset,
        dialogues=dialogues,
        encoding=encoding,
    )
    with (
        DatasetWriter(path, name=name, about=about, overwrite=overwrite) as writer,
        _rows(make, scenes, workers) as rows,
    ):
        for image, regions, data, samples in rows:
            writer.add_image(image, regions, data)
            for sample in samples:
                writer.add_sample(sample)
            done()


def bundled() -> Path:
    """The folder of the benchmark that ships with the package: 48 scenes of the test split.

    Made by `maskwise world --scenes 48 --seed 2506 --split test --size 224 --questions 5 --encoding jpeg`.
    """
    return Path(__file__).parent / "bundled"


def bundled_predictions() -> Path:
    """Example predictions for the bundled benchmark: model `oracle` with noise (docs/benchmarks/world.md)."""
    return Path(__file__).parent / "bundled_predictions.jsonl"


@contextlib.contextmanager
def _rows(
    make: Callable[[int], Row], scenes: int, workers: int
) -> Iterator[Iterator[Row]]:
    if workers == 1:
        yield map(make, range(scenes))
        return
    with ProcessPoolExecutor(workers) as pool:
        try:
            yield pool.map(make, range(scenes), chunksize=CHUNK)
        finally:
            pool.shutdown(
                cancel_futures=True
            )  # after an error, do not wait for the rest


def _row(
    index: int,
    *,
    seed: int,
    split: str,
    size: int,
    questions: int,
    preset: str,
    dialogues: bool,
    encoding: Encoding,
) -> Row:
    made = make_scene(
        seed,
        index,
        split,
        size,
        questions=0 if dialogues else questions,
        dialogues=questions if dialogues else 0,
        preset=preset,
    )
    image = ImageInfo(id=made.id, width=size, height=size)
    samples = made.dialogue_samples if dialogues else made.samples
    return image, made.regions, encode_image(made.image, encoding), samples


def encode_image(pixels: UInt8Array, encoding: Encoding) -> bytes:
    """An image uint8 (height, width, 3) as PNG or JPEG bytes."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, encoding, **ENCODINGS[encoding])
    return file.getvalue()
