"""A set as large as MMR to score: 194,398 questions about 57,643 images, 340,000 targets, a third of them objects.

The other targets are parts. Blobs stand for masks, at 640 x 480 with the size distribution of COCO objects and PACO
parts, run strings about as long as real ones (mean 246 bytes on COCO instances). Predictions are the targets deformed,
some missed, some misplaced, some invented, some out of order, each with a name, a score and an answer in words.
"""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.sizes import CACHE, QUICK
from maskwise.masks import Masks
from maskwise.schema import Answer, ImageInfo, Region, Sample
from maskwise.store import DatasetWriter

HEIGHT = 480
WIDTH = 640
QUESTIONS = 194_398
IMAGES = 57_643
OBJECTS = 114_000
PARTS = 226_000
VERTICES = 40
NAMES = (
    "knife",
    "cup",
    "dog",
    "chair",
    "lamp",
    "scissors",
    "bicycle",
    "laptop_computer",
    "bottle",
    "handbag",
)
SCALE = 0.002 if QUICK else 1.0
"""Share of an MMR-sized set."""
PART_NAMES = ("handle", "body", "rim", "base", "leg", "back", "seat", "neck")


# -- the set -----------------------------------------------------------------------------------------------------------


def draw_blobs(
    center: NDArray[np.float64], radius: NDArray[np.float64], rough: NDArray[np.float64]
) -> Masks:
    """One blob each: center [n, 2], radius [n], rough [n, VERTICES] relative deviations of the contour."""
    angle = np.linspace(0, 2 * np.pi, VERTICES, endpoint=False)
    reach = radius[:, None] * (1 + rough)
    x = center[:, :1] + reach * np.cos(angle) * 1.2
    y = center[:, 1:] + reach * np.sin(angle) / 1.2
    corners = np.stack([np.clip(x, 0, WIDTH), np.clip(y, 0, HEIGHT)], 2).reshape(
        len(center), -1
    )
    return Masks.draw_polygons(
        list(corners), np.broadcast_to([HEIGHT, WIDTH], (len(center), 2))
    )


def roughen(
    generator: np.random.Generator, count: int, strength: float
) -> NDArray[np.float64]:
    """Smooth contour noise plus a little per vertex."""
    angle = np.linspace(0, 2 * np.pi, VERTICES, endpoint=False)
    waves = np.zeros((count, VERTICES))
    for order in (2, 3, 5):
        phase = generator.uniform(0, 2 * np.pi, (count, 1))
        waves += generator.normal(0, strength / order, (count, 1)) * np.cos(
            order * angle + phase
        )
    return np.clip(
        waves + generator.normal(0, strength / 4, (count, VERTICES)), -0.7, 1.0
    )


def make_set(folder: Path, scale: float) -> None:
    """Write the dataset and its predictions below `folder`."""
    generator = np.random.default_rng(0)
    images = round(IMAGES * scale)
    questions = round(QUESTIONS * scale)
    targets = round((OBJECTS + PARTS) * scale)
    per_question = 1 + np.bincount(
        generator.choice(
            questions, targets - questions, p=_uneven(generator, questions)
        ),
        minlength=questions,
    )
    is_part = generator.random(targets) < PARTS / (OBJECTS + PARTS)
    center = generator.uniform([60, 50], [WIDTH - 60, HEIGHT - 50], (targets, 2))
    radius = np.exp(generator.normal(np.where(is_part, 3.2, 3.9), 0.65)).clip(3, 190)
    rough = roughen(generator, targets, 0.35)
    truth = draw_blobs(center, radius, rough)
    names = [
        NAMES[item % 10] + (f":{PART_NAMES[item % 8]}" if part else "")
        for item, part in enumerate(is_part.tolist())
    ]
    first = np.concatenate([[0], np.cumsum(per_question)])
    owner = np.sort(
        np.concatenate(
            [np.arange(images), generator.integers(0, images, questions - images)]
        )
    )
    write_truth(folder / "truth", truth, names, first=first, owner=owner, images=images)
    missed = generator.random(targets) < 0.08
    moved = np.where(
        generator.random((targets, 1)) < 0.05, generator.normal(0, 150, (targets, 2)), 0
    )
    drawn = draw_blobs(
        center + moved + generator.normal(0, 1, (targets, 2)) * radius[:, None] * 0.08,
        radius * np.exp(generator.normal(0, 0.1, targets)),
        rough + roughen(generator, targets, 0.1),
    )
    extra = draw_blobs(
        generator.uniform([60, 50], [WIDTH - 60, HEIGHT - 50], (questions, 2)),
        np.exp(generator.normal(3.5, 0.65, questions)).clip(3, 190),
        roughen(generator, questions, 0.35),
    )
    write_predictions(
        folder / "predictions.jsonl",
        generator,
        drawn,
        extra,
        names=names,
        first=first,
        missed=missed,
    )


def _uneven(generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    weight = generator.gamma(0.6, size=count)
    return weight / weight.sum()


def write_truth(
    path: Path,
    masks: Masks,
    names: list[str],
    *,
    first: NDArray[np.int64],
    owner: NDArray[np.int64],
    images: int,
) -> None:
    """The dataset, through the writer every benchmark reader uses."""
    cursor = 0
    with DatasetWriter(path, name="mmr-sized") as writer:
        for image in range(images):
            writer.add_image(
                ImageInfo(
                    id=f"p{image}",
                    width=WIDTH,
                    height=HEIGHT,
                    path=f"train2017/{image:012}.jpg",
                )
            )
            while cursor < len(owner) and owner[cursor] == image:
                span = range(first[cursor], first[cursor + 1])
                regions = tuple(
                    Region(id=f"r{item}", name=names[item], visible=masks[item])
                    for item in span
                )
                answer = Answer(
                    text=f"You could use {', '.join(names[item] for item in span)} for that."
                )
                tags = {
                    "question_type": "functional" if cursor % 3 else "relational",
                    "source": "paco",
                }
                writer.add_sample(
                    Sample(
                        id=f"q{cursor}",
                        image_id=f"p{image}",
                        question="Which part would you hold, and what is it attached to?",
                        targets=regions,
                        answer=answer,
                        tags=tags,
                    )
                )
                cursor += 1


def write_predictions(
    path: Path,
    generator: np.random.Generator,
    drawn: Masks,
    extra: Masks,
    *,
    names: list[str],
    first: NDArray[np.int64],
    missed: NDArray[np.bool_],
) -> None:
    """One line per question, as `schema.Prediction` writes itself."""
    chance = generator.random(len(first) - 1)
    score = generator.beta(6, 2, len(drawn))
    mask = lambda counts: {"size": [HEIGHT, WIDTH], "counts": counts.decode()}  # noqa: E731
    with open(path, "w") as file:
        for question in range(len(first) - 1):
            items = [
                item
                for item in range(first[question], first[question + 1])
                if not missed[item]
            ]
            if chance[question] < 0.1:
                items.reverse()
            regions = [
                {
                    "visible": mask(drawn.string(item)),
                    "score": round(float(score[item]), 4),
                    "name": names[item],
                }
                for item in items
            ]
            if chance[question] > 0.85:
                regions.append(
                    {
                        "visible": mask(extra.string(question)),
                        "score": 0.3,
                        "name": "thing",
                    }
                )
            said = ", ".join(names[item] for item in items)
            line = {
                "sample": f"q{question}",
                "answer": {"text": f"You could use {said} for that."},
                "regions": regions,
            }
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def find_set(name: str = "mmr", scale: float = SCALE) -> Path:
    """The folder of a set, which is made the first time. scale: its share of an MMR-sized one."""
    folder = CACHE / name
    if not (folder / "predictions.jsonl").exists():
        folder.mkdir(parents=True, exist_ok=True)
        make_set(folder, scale)
    return folder
