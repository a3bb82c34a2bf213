"""The harness on `tiny`: what it adds to the bare loop, what further questions cost, what memory many samples take.

    python bench/harness.py

prints what `make bench` writes to RESULTS.md.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from PIL import Image

from bench.memory import peak_megabytes
from bench.sizes import choose
from maskwise.harness.predict import predict_dataset
from maskwise.harness.progress import Progress
from maskwise.masks import Mask
from maskwise.models.tiny import load
from maskwise.schema import ImageInfo, PredictedRegion, Prediction, Region, Sample
from maskwise.store import Dataset, DatasetWriter
from maskwise.world import make_scene, write_scenes

SCENES = choose(120, 4)
ROUNDS = choose(7, 1)
ASKED = (1, 2, 4, 8, 16)
MANY = (choose(1_000, 200), choose(50_000, 400))
SIDE = 64
FILES = 50
QUESTIONS = 5
MOST_OVERHEAD = 0.03


def sections() -> Iterator[str]:
    """One Markdown section a measurement."""
    with tempfile.TemporaryDirectory() as folder:
        yield overhead(Path(folder))
        yield further_questions()
        yield memory(Path(folder))


def overhead(folder: Path) -> str:
    """Wall time of `evaluate` from its first image to its last, beside the model alone on images in memory."""
    write_scenes(
        folder / "scenes", SCENES, 11, split="test", workers=os.cpu_count() or 1
    )
    dataset = Dataset.open(folder / "scenes")
    model = load()
    work = [
        (dataset.open_image(image.id), [sample.question for sample in samples])
        for image, samples in dataset.groups()
    ]
    alone = []
    reading = []
    ours = []
    for number in range(
        ROUNDS
    ):  # in turn, so that all meet the same load of the machine
        alone.append(_time_bare(model, work))
        reading.append(_time_reading(model, dataset))
        ours.append(_time_evaluation(folder / "scenes", folder / f"run{number}"))
    base = min(alone)
    rows = (
        ("the model alone, images decoded beforehand", alone),
        ("a plain loop: open the image, ask, keep nothing", reading),
        ("**`maskwise eval --predict-only`**, every line flushed", ours),
    )
    lines = [
        f"## What the harness adds to `tiny`: {len(dataset)} questions about {SCENES} images, wall time, least of "
        f"{ROUNDS} (wanted: at most {MOST_OVERHEAD:.0%} over the loop)",
        "",
        "| way | s | over the model alone | questions/s |",
        "|---|--:|--:|--:|",
        *(
            f"| {name} | {min(times):.3f} | {min(times) / base - 1:+.1%} | {len(dataset) / min(times):,.0f} |"
            for name, times in rows
        ),
        "",
        f"Over the plain loop: {min(ours) / min(reading) - 1:+.1%}.",
        "",
    ]
    return "\n".join(lines)


def further_questions() -> str:
    """Wall time of k questions about one image in one call, beside one question."""
    model = load()
    shown = [make_scene(5, index, "test", questions=max(ASKED)) for index in range(12)]
    images = [Image.fromarray(one.image) for one in shown]
    texts = [[question.text for question in one.questions] for one in shown]
    texts = [
        (own * max(ASKED))[: max(ASKED)] for own in texts
    ]  # a scene may have fewer to ask
    times: dict[int, list[float]] = {count: [] for count in ASKED}
    for _ in range(ROUNDS):
        for count in ASKED:
            work = [(image, own[:count]) for image, own in zip(images, texts)]
            times[count].append(_time_bare(model, work) / len(work))
    one = min(times[1])
    lines = [
        "## k questions about one image, `tiny`, wall time (wanted: at most 1 + k/3 times one)",
        "",
        "| k | ms | times one | wanted at most |",
        "|--:|--:|--:|--:|",
        *(
            f"| {count} | {1000 * min(found):.2f} | {min(found) / one:.2f} | {1 + count / 3:.2f} |"
            for count, found in times.items()
        ),
        "",
    ]
    return "\n".join(lines)


def memory(folder: Path) -> str:
    """Memory of a process that predicts a small and a large dataset, with a model that takes none."""
    rows = []
    for samples in MANY:
        write_small(folder / f"small{samples}", samples)
        command = [
            sys.executable,
            __file__,
            "predict",
            str(folder / f"small{samples}"),
            str(folder / f"many{samples}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append((samples, *map(float, done.stdout.split())))
    lines = [
        "## Memory while predicting (a model that keeps nothing; `--predict-only`)",
        "",
        "| samples | own memory at first, MB | at the most, MB | peak with mapped files, MB | samples/s |",
        "|--:|--:|--:|--:|--:|",
        *(
            f"| {samples:,} | {first:.0f} | {most:.0f} | {peak:.0f} | {rate:,.0f} |"
            for samples, first, most, peak, rate in rows
        ),
        "",
    ]
    return "\n".join(lines)


def write_small(path: Path, samples: int) -> None:
    """Small images, five questions each; the files are few, so that what is measured is not the disk."""
    images = path.with_name("images")
    images.mkdir(exist_ok=True)
    chance = np.random.default_rng(0)
    for number in range(FILES):
        Image.fromarray(chance.integers(0, 256, (SIDE, SIDE, 3), np.uint8)).save(
            images / f"{number}.png"
        )
    with DatasetWriter(path, name="small", image_root=images) as writer:
        for k in range(samples // QUESTIONS):
            region = Region(id=f"r{k}", name="thing", visible=_box(k))
            file = f"{k % FILES}.png"
            writer.add_image(
                ImageInfo(id=f"p{k}", width=SIDE, height=SIDE, path=file), (region,)
            )
            for q in range(QUESTIONS):
                text = f"Where is thing {k}, asked for the {q}th time?"
                writer.add_sample(
                    Sample(
                        id=f"p{k}-{q}",
                        image_id=f"p{k}",
                        question=text,
                        targets=(region,),
                    )
                )


class Boxes:
    """A model that keeps nothing: a box a question."""

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question."""
        return [
            Prediction(
                sample="", regions=(PredictedRegion(visible=_box(len(question))),)
            )
            for question in questions
        ]


def _box(k: int) -> Mask:
    inside = np.zeros((SIDE, SIDE), bool)
    inside[k % 31 : k % 31 + 20, k % 17 : k % 17 + 30] = True
    return Mask.from_dense(inside)


def _time_bare(model: object, work: list[tuple[Image.Image, list[str]]]) -> float:
    started = time.perf_counter()
    for image, questions in work:
        model.predict(image, questions)  # type: ignore[attr-defined]
    return time.perf_counter() - started


def _time_reading(model: object, dataset: Dataset) -> float:
    started = time.perf_counter()
    for image, samples in dataset.groups():
        model.predict(
            dataset.open_image(image.id), [sample.question for sample in samples]
        )  # type: ignore[attr-defined]
    return time.perf_counter() - started


def _time_evaluation(dataset: Path, out: Path) -> float:
    moments: list[float] = []
    predict_dataset(
        "tiny",
        dataset,
        out,
        on_progress=lambda _: moments.append(time.perf_counter()),
    )
    return moments[-1] - moments[0]


def _predict(dataset: str, out: str) -> None:
    """Predict in this process and tell memory: own at first, own at most, peak of all; and samples a second."""
    own: list[float] = []
    moments: list[float] = []

    def watch(progress: Progress) -> None:
        moments.append(time.perf_counter())
        if progress.done % (20 * QUESTIONS) == 0 and progress.done:
            own.append(_own_megabytes())

    done = predict_dataset("bench.harness:Boxes", dataset, out, on_progress=watch)
    rate = done.samples / (moments[-1] - moments[0])
    print(own[0], max(own), peak_megabytes(), rate)


def _own_megabytes() -> float:
    """Memory that is not a mapped file."""
    return (
        int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0])
        / 1024
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["predict"]:
        _predict(*sys.argv[2:])
    else:
        for section in sections():
            print(section, flush=True)
