"""The metrics of the model for photographs beside its controls: make photo.

    python bench/photo.py --coco FOLDER --reasonseg FOLDER --cocoa FOLDER [--limit N] [--parts coco reasonseg ...]
    python bench/photo.py --train FOLDER ...        # what thresholds of the completion are chosen on

The folders are datasets that `maskwise read` wrote: val2017 of COCO or a part of it, ReasonSeg val, COCOA. Every image
is encoded once for all rows of a table. Weights come from `maskwise get` or MASKWISE_WEIGHTS.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.progress import track

from bench.photo_controls import (
    named,
    predict_best_proposal,
    predict_match,
    predict_perfect_choice,
    predict_saliency,
    predict_text_blind,
    predict_whole_image,
    shuffle_questions,
)
from bench.photo_questions import write_questions
from bench.photo_shapes import measure_cocoa, measure_composites, measure_thresholds
from maskwise.harness.score import score
from maskwise.models.photo import EncodedPhoto, Photo, load
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.significance import compare_metric
from maskwise.schema import Prediction, Sample
from maskwise.store import Dataset

SHUFFLES = 5
SHUFFLED = "match, shuffled questions"

Control = Callable[[EncodedPhoto, Sample], Prediction]


def main() -> None:
    """Print one table per part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--coco", type=Path)
    parser.add_argument("--reasonseg", type=Path)
    parser.add_argument("--cocoa", type=Path)
    parser.add_argument(
        "--train",
        type=Path,
        nargs="*",
        help="training datasets of the completion network",
    )
    parser.add_argument("--limit", type=int, help="images per part")
    parser.add_argument(
        "--parts",
        nargs="*",
        default=["coco", "reasonseg", "cocoa", "composites", "time"],
    )
    given = parser.parse_args()
    model = load(threads=1)
    if given.coco and "coco" in given.parts:
        measure_coco(model, Dataset.open(given.coco), given.limit)
    if given.reasonseg and "reasonseg" in given.parts:
        measure_reasonseg(model, Dataset.open(given.reasonseg), given.limit)
    if given.cocoa and "cocoa" in given.parts:
        print_rows(
            "COCOA, occluded regions, true visible mask: amodal mIoU",
            measure_cocoa(model, Dataset.open(given.cocoa)),
        )
    if given.coco and "composites" in given.parts:
        print_rows(
            "composites of the COCO images",
            measure_composites(model, Dataset.open(given.coco), given.limit),
        )
    if given.train:
        print_rows(
            "held-out training images: MIN_ORDER and MIN_FRONT of the completion",
            measure_thresholds(model, map(Dataset.open, given.train)),
            ["IoU of the occluded region", "change of area of originals"],
        )
    if given.coco and "time" in given.parts:
        measure_time(model, Dataset.open(given.coco))


def measure_coco(model: Photo, source: Dataset, limit: int | None) -> None:
    """Questions that name categories, attributes and relations, and questions about absent things."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = write_questions(source, Path(folder) / "questions")
        samples = list(dataset)
        shuffled = shuffle_questions([one for one in samples if one.targets])
        controls: dict[str, Control] = {
            "match": predict_match,
            "match, shuffled questions": lambda photo, one: predict_match(
                photo, one, shuffled.get(one.id, one.question)
            ),
            "text-blind: best detection": predict_text_blind,
            "saliency": predict_saliency,
            "whole image": predict_whole_image,
        }
        found = predict_all(model, dataset, controls, limit)
        for family in ("category", "attribute", "relation"):
            view = dataset.filter(
                lambda one, family=family: one.tags["family"] == family
            )
            print_scores(
                f"COCO, {family} questions, strict", view, found, "strict", ["giou"]
            )
        print_scores(
            "COCO, questions with targets, strict",
            dataset.filter(lambda one: bool(one.targets)),
            found,
            "strict",
            ["giou"],
        )
        print_scores(
            "COCO, absent things, strict",
            dataset.filter(lambda one: not one.targets),
            found,
            "strict",
            ["no_target_accuracy"],
        )


def measure_reasonseg(model: Photo, dataset: Dataset, limit: int | None) -> None:
    """Reasoning questions."""
    shuffled = [shuffle_questions(list(dataset), seed) for seed in range(SHUFFLES)]
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.sqlite"
        controls: dict[str, Control] = {
            "match": predict_match,
            **{
                f"{SHUFFLED} {number}": lambda photo, one, asked=asked: predict_match(
                    photo, one, asked[one.id]
                )
                for number, asked in enumerate(shuffled, 1)
            },
            "text-blind: best detection": predict_text_blind,
            "saliency": predict_saliency,
            "whole image": predict_whole_image,
            "best proposal (knows the ground truth)": predict_best_proposal,
            "perfect chooser of marks, end to end": partial(
                predict_perfect_choice, ledger=ledger
            ),
            "perfect chooser of marks and boxes, end to end": partial(
                predict_perfect_choice, ledger=ledger, boxes=True
            ),
        }
        found = predict_all(model, dataset, controls, limit)
    print_scores("ReasonSeg val, lisa", dataset, found, "lisa", ["giou", "ciou"])
    print_question_gap("ReasonSeg val, lisa", dataset, found, "lisa")


def predict_all(
    model: Photo, dataset: Dataset, controls: dict[str, Control], limit: int | None
) -> dict[str, list[Prediction]]:
    """The predictions of every control, image by image."""
    found: dict[str, list[Prediction]] = {name: [] for name in controls}
    for photo, samples in encoded_images(model, dataset, limit):
        for name, control in controls.items():
            found[name] += [named(control(photo, sample), sample) for sample in samples]
    return found


def encoded_images(
    model: Photo, dataset: Dataset, limit: int | None
) -> Iterator[tuple[EncodedPhoto, list[Sample]]]:
    """Every image with questions, encoded, and its samples."""
    by_image: dict[str, list[Sample]] = {}
    for sample in dataset:
        by_image.setdefault(sample.image_id, []).append(sample)
    images = list(by_image.items())[:limit]
    for _, samples in track(images, "images", console=Console(stderr=True)):
        yield EncodedPhoto(samples[0].image, model.networks, model.completion), samples


def print_scores(
    title: str,
    dataset: Dataset,
    found: dict[str, list[Prediction]],
    protocol: str,
    metrics: list[str],
) -> None:
    """One row per control, with 95 % intervals."""
    ids = {sample.id for sample in dataset}
    asked = {one.sample for predictions in found.values() for one in predictions}
    view = dataset.filter(lambda sample: sample.id in asked)
    if not len(view):
        return
    rows = []
    for name, predictions in found.items():
        run = score(
            [one for one in predictions if one.sample in ids],
            view,
            protocols=[protocol],
        )
        values = run[protocol].metrics
        rows.append((name, *(_cell(values[metric]) for metric in metrics)))
    print_rows(f"{title} ({len(view)} questions)", rows, metrics)


def print_question_gap(
    title: str, dataset: Dataset, found: dict[str, list[Prediction]], protocol: str
) -> None:
    """What the questions contribute: gIoU of `match` less its mean over all shufflings, with a paired interval."""
    asked = {one.sample for one in found["match"]}
    view = dataset.filter(lambda sample: sample.id in asked)
    true = score(found["match"], view, protocols=[protocol])
    terms = [
        score(predictions, view, protocols=[protocol]).metrics(protocol)["giou"]
        for name, predictions in found.items()
        if name.startswith(SHUFFLED)
    ]
    mean = replace(terms[0], numerator=np.mean([one.numerator for one in terms], 0))
    (gap,) = compare_metric(
        mean, true.metrics(protocol)["giou"], ImageGroups.single(true.clusters)
    )
    rows = [
        ("true questions", f"{gap.b:.3f}"),
        (f"shuffled questions, mean of {len(terms)}", f"{gap.a:.3f}"),
        (
            "difference",
            f"{gap.difference:.3f} ({gap.interval.low:.3f} to {gap.interval.high:.3f})",
        ),
    ]
    print_rows(f"{title}: what the questions contribute to `match`", rows, ["giou"])


def measure_time(model: Photo, dataset: Dataset, images: int = 12) -> None:
    """CPU time of the first and of a further question, relative to one run of MobileSAM's encoder."""
    encode = []
    first = []
    further = []
    for row in range(min(images, len(dataset.images))):
        image = dataset.open_image(row)
        names = [region.name for region in dataset.regions_of(row)] or ["person"]
        encode.append(_seconds(lambda image=image: model.networks.sam.encode(image)))
        started = time.process_time()
        asked = model.encode(image)
        asked.answer([f"the {names[0]}"])
        first.append(time.process_time() - started)
        further.append(
            _seconds(
                lambda asked=asked, names=names: asked.answer(
                    [f"the largest {names[-1]}"]
                )
            )
        )
    rows = [
        ("encoder alone", f"{median(encode):.2f} s", "1", "1"),
        ("first question", f"{median(first):.2f} s", *_ratios(first, encode)),
        ("a further question", f"{median(further):.3f} s", *_ratios(further, encode)),
        ("a further question, relative to the first", "", *_ratios(further, first)),
    ]
    print_rows(
        f"CPU time of {len(encode)} images, one thread",
        rows,
        ["median", "relative to the encoder: median", "highest"],
    )


def _ratios(values: list[float], others: list[float]) -> tuple[str, str]:
    ratios = np.divide(values, others)
    return f"{median(ratios):.3f}", f"{max(ratios):.3f}"


def _seconds(function: Callable[[], object]) -> float:
    started = time.process_time()
    function()
    return time.process_time() - started


def print_rows(
    title: str, rows: list[tuple[str, ...]], head: list[str] | None = None
) -> None:
    """A Markdown table."""
    columns = ["", *(head or [""] * (len(rows[0]) - 1))]
    print(f"\n{title}\n")
    for cells in (columns, ["---"] * len(columns), *rows):
        print("|", " | ".join(cells), "|")
    print(flush=True)


def _cell(metric: object) -> str:
    value, low, high = (getattr(metric, name) for name in ("value", "low", "high"))
    if value is None:
        return "none"
    return f"{value:.3f}" if low is None else f"{value:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
