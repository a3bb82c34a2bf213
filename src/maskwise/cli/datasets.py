"""`maskwise validate | stats | show`: look into a dataset folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import typer
from PIL import Image
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from maskwise.cli.options import AsJson, DatasetFolder, ImagesFolder, argument
from maskwise.console import make_console
from maskwise.datasets import find_dataset
from maskwise.errors import ImageError, StoreError, UnknownNameError
from maskwise.report.dataset_stats import compute_dataset_stats
from maskwise.report.dataset_validation import DatasetCheck, Finding, validate_dataset
from maskwise.report.overlay import draw_overlay
from maskwise.runs.environment import available_cores
from maskwise.schema import (
    Answer,
    MaskType,
    PredictedRegion,
    Prediction,
    Region,
    Sample,
)
from maskwise.store import Dataset, Log
from maskwise.terminal import echo

LISTED = 10
"""How many findings of a kind are printed; JSON has them all."""

SampleKey = Annotated[
    str,
    argument(
        "SAMPLE",
        "A sample's id, its number from 0, or an image's id for all its regions.",
    ),
]
RegionIds = Annotated[
    str | None,
    typer.Option(
        "--regions",
        metavar="IDS",
        help="Draw only these regions of the image, as 3,5,cup.",
        show_default=False,
    ),
]
PredictionsFile = Annotated[
    Path | None,
    typer.Option(
        "--predictions",
        help="Draw the prediction of this predictions.jsonl instead of the ground truth.",
        show_default=False,
    ),
]
AllRegions = Annotated[
    bool,
    typer.Option("--all-regions", help="Draw every region, not the targets alone."),
]
NoLabels = Annotated[
    bool, typer.Option("--no-labels", help="Do not write the names of the regions.")
]


def validate(
    dataset: DatasetFolder,
    images: ImagesFolder = None,
    no_images: Annotated[
        bool, typer.Option("--no-images", help="Do not check the image files.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a dataset: checksums, every mask, ids, references, images. Exit code 1 if something is wrong.

    Visible masks that extend beyond their amodal mask are warnings: published data has them. Questions without target
    are counted.

    Example: maskwise validate data/val --images /data/coco
    """
    progress = make_console(stderr=True)
    no_target = 0
    try:
        with progress.status(f"checking {escape(str(dataset))}"):
            opened = Dataset.open(find_dataset(dataset), image_root=images)
            found = validate_dataset(
                opened, images=not no_images, threads=available_cores()
            )
            no_target = (
                0
                if found.errors
                else int((np.diff(opened.samples.targets.offsets) == 0).sum())
            )
    except StoreError as error:
        found = DatasetCheck(
            str(dataset),
            [Finding("error", "cannot be opened", str(dataset), str(error))],
        )
    if as_json:
        echo(
            json.dumps(_validation_to_json(found) | {"no_target": no_target}, indent=2)
        )
    else:
        if no_target:
            echo(f"{no_target} of {len(opened)} questions have no target")
        _print_validation(found)
    raise typer.Exit(1 if found.errors else 0)


def stats(dataset: DatasetFolder, as_json: AsJson = False) -> None:
    """Count the contents of a dataset: questions, targets, mask types, occlusion, sizes, names, tags.

    Example: maskwise stats data/val --json
    """
    with make_console(stderr=True).status(f"counting {escape(str(dataset))}"):
        facts = msgspec.to_builtins(
            compute_dataset_stats(
                Dataset.open(find_dataset(dataset)), threads=available_cores()
            )
        )
    if as_json:
        echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    console = make_console()
    console.print(escape(facts["name"]), style="bold")
    sections = {
        "": facts["counts"],
        "targets per question": facts["targets_per_question"],
        "mask type asked for": facts["mask_types"],
        "occlusion of regions": facts["occlusion"],
        "size of regions": facts["region_sizes"],
        "size of images": facts["image_sizes"],
        f"names ({facts['category_count']})": facts["categories"],
        **{f"tag {key}": values for key, values in facts["tags"].items()},
        "about": facts["about"],
    }
    for title, values in sections.items():
        _print_section(console, title, values)


def show(
    dataset: DatasetFolder,
    sample: SampleKey,
    *,
    out: Annotated[Path, typer.Option(help="The image to write.")] = Path("sample.png"),
    mask_type: Annotated[MaskType, typer.Option(help="The masks to draw.")] = "both",
    all_regions: AllRegions = False,
    regions: RegionIds = None,
    no_labels: NoLabels = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="The image alone, nothing drawn.")
    ] = False,
    predictions: PredictionsFile = None,
    images: ImagesFolder = None,
) -> None:
    """Draw a sample: visible masks filled, hidden parts striped, ignored pixels hatched, question and answer below.

    For an image with many regions, --no-labels leaves out the names and --regions selects regions by id.

    Example: maskwise show data/val 12 --out sample.png
    """
    opened = Dataset.open(find_dataset(dataset), image_root=images)
    record = None if _means_image(opened, sample) else find_sample(opened, sample)
    image = sample if record is None else record.image_id
    drawn = opened.open_image(image)
    if not plain:
        everything = record is None or all_regions
        chosen, answer = _choose_regions(
            opened,
            image,
            None if everything else record,
            ids=regions,
            predictions=predictions,
        )
        drawn = draw_overlay(
            drawn,
            chosen,
            mask_type=mask_type,
            question=None if record is None else record.question,
            answer=answer,
            labels=not no_labels,
            ignore=None if record is None else record.ignore,
        )
    _save(drawn, out)
    echo(
        f"wrote {out} ({drawn.width} x {drawn.height}): {image if record is None else record.id}"
    )


def _choose_regions(
    dataset: Dataset,
    image: str,
    sample: Sample | None,
    *,
    ids: str | None,
    predictions: Path | None,
) -> tuple[Sequence[Region | PredictedRegion], Answer | None]:
    """What to draw: the regions with these ids, those of the sample or its prediction, or all of the image."""
    if ids is not None:
        return select_regions(dataset, image, ids), None
    if sample is None:
        return dataset.regions_of(image), None
    if predictions is None:
        return sample.targets, sample.answer
    prediction = find_prediction(predictions, sample.id)
    return prediction.regions, prediction.answer


def _save(image: Image.Image, path: Path) -> None:
    try:
        image.save(path)
    except (OSError, ValueError) as error:
        raise ImageError(f"cannot write {path}: {error}") from error


def _means_image(dataset: Dataset, key: str) -> bool:
    """Whether a key is an image's id, and neither a sample's id nor its number."""
    number = key.isdecimal() and int(key) < len(dataset)
    return key in dataset.images.row and key not in dataset.samples.row and not number


def select_regions(dataset: Dataset, image: str, ids: str) -> list[Region]:
    """The regions of an image with these ids, separated by commas."""
    known = {region.id: region for region in dataset.regions_of(image)}
    wanted = [id.strip() for id in ids.split(",") if id.strip()]
    for id in wanted:
        if id not in known:
            raise UnknownNameError(f"region of image {image!r}", id, known)
    return [known[id] for id in wanted]


def find_prediction(path: Path, sample: str) -> Prediction:
    """What a file of predictions says to a sample."""
    if not path.is_file():
        raise StoreError(f"{path} is no file; expected the predictions.jsonl of a run")
    for prediction in Log(path, Prediction):
        if prediction.sample == sample:
            return prediction
    raise StoreError(f"{path} contains no prediction for sample {sample!r}")


def find_sample(dataset: Dataset, key: str) -> Sample:
    """The sample with this id, or if there is none the one of this number."""
    if key in dataset.samples.row:
        return dataset.sample(key)
    if key.isdecimal() and int(key) < len(dataset):
        return dataset[int(key)]
    if not len(dataset):
        raise StoreError(
            f"{dataset.path} has no samples, only images and regions: give an image's id, such as "
            f"{next(iter(dataset.images.id), 'none')!r}"
        )
    raise StoreError(
        f"{dataset.path}: no sample with id {key!r}, and it is not a number from 0 to {len(dataset) - 1}"
    )


def _validation_to_json(found: DatasetCheck) -> dict[str, Any]:
    kinds = {kind: len(findings) for kind, findings in found.by_kind().items()}
    return {
        "dataset": found.dataset,
        "valid": not found.errors,
        "errors": found.errors,
        "warnings": len(found.findings) - found.errors,
        "kinds": kinds,
        "findings": msgspec.to_builtins(found.findings),
    }


def _print_validation(found: DatasetCheck) -> None:
    console = make_console()
    for kind, findings in found.by_kind().items():
        color = "red" if findings[0].level == "error" else "yellow"
        console.print(
            f"[{color}]{findings[0].level}[/]: {escape(kind)} ({len(findings)})"
        )
        for finding in findings[:LISTED]:
            console.print(
                f"  {escape(finding.where)}: {escape(finding.message)}",
                highlight=False,
                soft_wrap=True,
            )
        if len(findings) > LISTED:
            console.print(f"  and {len(findings) - LISTED} more (--json lists all)")
    warnings = len(found.findings) - found.errors
    verdict = "[red]not valid[/]" if found.errors else "[green]valid[/]"
    console.print(
        f"{escape(found.dataset)}: {verdict}, {found.errors} errors, {warnings} warnings",
        soft_wrap=True,
    )


def _print_section(console: Console, title: str, values: dict[str, Any]) -> None:
    if not values:
        return
    if title:
        console.print(f"\n{escape(title)}", style="bold")
    table = Table.grid(padding=(0, 3))
    table.add_column()
    table.add_column(
        justify="right"
        if all(isinstance(value, int) for value in values.values())
        else "left"
    )
    for name, value in values.items():
        table.add_row(
            f"  {escape(str(name))}",
            f"{value:,}" if isinstance(value, int) else escape(str(value)),
        )
    console.print(table)
