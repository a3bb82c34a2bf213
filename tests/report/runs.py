"""Small datasets, predictions and scored runs for the tests of reports."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from maskwise.harness.run_record import result_to_run
from maskwise.harness.scoring import compute_scores
from maskwise.masks import Mask
from maskwise.runs import Run, load_run, write_run
from maskwise.schema import (
    Answer,
    ImageInfo,
    Phrase,
    PredictedRegion,
    Prediction,
    Region,
    Sample,
)
from maskwise.store import Dataset, DatasetWriter, Log

SIZE = 48
HOSTILE = """</script><script>alert(1)</script><img src=x onerror="alert(2)">'"><b>&amp;{{ 7 * 7 }}{% raw %}"""

Rewrite = Callable[[str], str]


def plain(text: str) -> str:
    return text


def hostile(text: str) -> str:
    return f"{text} {HOSTILE}"


def square(left: int, top: int, side: int) -> Mask:
    plane = np.zeros((SIZE, SIZE), np.bool_)
    plane[max(0, top) : top + side, max(0, left) : left + side] = True
    return Mask.from_dense(plane)


def make_dataset(
    folder: Path, *, images: int = 12, words: Rewrite = plain, embed: bool = True
) -> Path:
    """Two questions an image: one target with a hidden lower half; every fourth image's second one has none."""
    with DatasetWriter(
        folder, name=words("toy"), image_root=None if embed else "nowhere"
    ) as writer:
        for number in range(images):
            image = words(f"p{number}")
            path = None if embed else f"{number}.png"
            record = ImageInfo(id=image, width=SIZE, height=SIZE, path=path)
            writer.add_image(record, data=png(number) if embed else None)
            whole = square(10 + number % 5, 10, 20)
            seen = whole & square(0, 0, 20) if number % 2 else whole
            region = Region(
                id=f"r{number}", name=words("box"), visible=seen, amodal=whole
            )
            for item, mask_type in enumerate(("visible", "amodal")):
                targets = () if item and number % 4 == 0 else (region,)
                text = words("the box") if targets else words("nothing")
                phrases = (Phrase(start=0, stop=7, regions=(0,)),) if targets else ()
                writer.add_sample(
                    Sample(
                        id=words(f"s{number}-{item}"),
                        image_id=image,
                        question=words(f"question {number}"),
                        mask_type=mask_type,
                        targets=targets,
                        answer=Answer(text=text, phrases=phrases),
                        tags={words("kind"): words(f"k{number % 3}")},
                    )
                )
    return folder


def png(seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (SIZE, SIZE, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def make_predictions(
    path: Path, dataset: Path, *, shift: int = 2, words: Rewrite = plain
) -> Path:
    """Every target moved to the right by `shift` pixels; one reply failed and one missing."""
    with Log(path, Prediction) as log:
        for number, sample in enumerate(Dataset.open(dataset)):
            if number == 5:
                log.append(Prediction(sample=sample.id, error=words("out of memory")))
            elif number != 7:
                log.append(reply(sample, shift + number % 3, words))
    return path


def reply(sample: Sample, shift: int, words: Rewrite) -> Prediction:
    regions = tuple(
        PredictedRegion(
            visible=moved(target.visible, shift),
            amodal=moved(target.amodal, shift),
            name=words("box"),
            score=1 / (1 + shift),
        )
        for target in sample.targets
    )
    phrases = (Phrase(start=0, stop=7, regions=(0,)),) if regions else ()
    answer = Answer(text=words("the box"), phrases=phrases)
    return Prediction(
        sample=sample.id,
        answer=answer,
        mask_type=sample.mask_type,
        regions=regions,
        no_target=not regions,
    )


def moved(mask: Mask | None, shift: int) -> Mask | None:
    return (
        None
        if mask is None
        else Mask.from_dense(np.roll(mask.to_dense(), shift, axis=1))
    )


def make_run(
    folder: Path,
    dataset: Path,
    predictions: Path,
    *,
    protocols: list[str] | None = None,
) -> Run:
    """Score, and open the folder it leaves."""
    truth = Dataset.open(dataset)
    write_run(folder, result_to_run(compute_scores(predictions, truth, protocols)))
    return load_run(folder)
