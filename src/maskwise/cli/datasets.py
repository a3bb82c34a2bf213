"""`maskwise validate | stats | show`: look into a dataset folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from maskwise.cli.hints import is_dataset, refuse_swapped
from maskwise.cli.options import AsJson, DatasetName, ImagesFolder, argument
from maskwise.errors import ImageError, MaskwiseError, StoreError, UnknownNameError
from maskwise.terminal import echo

if TYPE_CHECKING:
    from PIL import Image

    from maskwise.report.dataset_validation import DatasetCheck
    from maskwise.schema import Answer, Prediction, Region, Sample
    from maskwise.store import Dataset

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
        help="A run folder or predictions.jsonl: draw its prediction beside the ground truth.",
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
    dataset: DatasetName,
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
    from rich.markup import escape

    from maskwise.cli.dataset_tables import print_validation
    from maskwise.cli.output import print_json
    from maskwise.console import make_console
    from maskwise.datasets import load_dataset
    from maskwise.report.dataset_validation import (
        DatasetCheck,
        Finding,
        validate_dataset,
    )
    from maskwise.runs.environment import available_cores

    no_target = 0
    samples = 0
    try:
        with make_console(stderr=True).status(f"checking {escape(dataset)}"):
            data = load_dataset(dataset, images=images)
            samples = len(data)
            check = validate_dataset(
                data, images=not no_images, threads=available_cores()
            )
            # The columns of a dataset with errors may not fit together.
            if not check.errors:
                no_target = _count_without_target(data)
    except StoreError as error:
        finding = Finding("error", "cannot be opened", dataset, str(error))
        check = DatasetCheck(dataset, [finding])
    if as_json:
        print_json(_validation_to_json(check) | {"no_target": no_target})
    else:
        if no_target:
            echo(f"{no_target} of {samples} questions have no target")
        print_validation(check)
    raise typer.Exit(1 if check.errors else 0)


def stats(dataset: DatasetName, as_json: AsJson = False) -> None:
    """Count the contents of a dataset: questions, targets, mask types, occlusion, sizes, names, tags.

    Example: maskwise stats data/val --json
    """
    import msgspec
    from rich.markup import escape

    from maskwise.cli.dataset_tables import print_stats
    from maskwise.cli.output import print_json
    from maskwise.console import make_console
    from maskwise.datasets import load_dataset
    from maskwise.report.dataset_stats import compute_dataset_stats
    from maskwise.runs.environment import available_cores

    with make_console(stderr=True).status(f"counting {escape(dataset)}"):
        data = load_dataset(dataset)
        dataset_stats = compute_dataset_stats(data, threads=available_cores())
    if as_json:
        print_json(dataset_stats)
    else:
        print_stats(msgspec.to_builtins(dataset_stats))


def show(
    dataset: DatasetName,
    sample: SampleKey = "0",
    *,
    out: Annotated[Path, typer.Option(help="The image to write.")] = Path("sample.png"),
    mask_type: Annotated[
        Literal["visible", "amodal", "both"], typer.Option(help="The masks to draw.")
    ] = "both",
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

    With --predictions the ground truth is on the left and the prediction on the right.

    Example: maskwise show world 12 --predictions runs/tiny --out sample.png
    """
    from maskwise.datasets import load_dataset
    from maskwise.report.overlay import draw_comparison, draw_overlay

    refuse_swapped(
        "show",
        "DATASET SAMPLE",
        dataset,
        sample,
        when=is_dataset(sample) and not is_dataset(dataset),
    )
    data = load_dataset(dataset, images=images)
    record = None if _is_image_id(data, sample) else _find_sample(data, sample)
    image_id = sample if record is None else record.image_id
    image = data.open_image(image_id)
    if predictions is not None and (plain or all_regions or regions is not None):
        raise MaskwiseError(
            "--predictions draws ground truth and prediction side by side; omit --plain, --all-regions and --regions"
        )
    if predictions is not None:
        if record is None:
            raise StoreError(
                f"{sample!r} is an image; --predictions needs the id or number of a sample"
            )
        image = draw_comparison(
            image,
            record,
            _find_prediction(predictions, record.id),
            mask_type=mask_type,
            labels=not no_labels,
        )
    elif not plain:
        chosen_regions, answer = _choose_regions(
            data,
            image_id,
            None if all_regions else record,
            ids=regions,
        )
        image = draw_overlay(
            image,
            chosen_regions,
            mask_type=mask_type,
            question=None if record is None else record.question,
            answer=answer,
            labels=not no_labels,
            ignore=None if record is None else record.ignore,
        )
    _save(image, out)
    id = image_id if record is None else record.id
    echo(f"wrote {out} ({image.width} x {image.height}): {id}")


def _count_without_target(dataset: "Dataset") -> int:
    import numpy as np

    targets_per_sample = np.diff(dataset.samples.targets.offsets)
    return int((targets_per_sample == 0).sum())


def _choose_regions(
    dataset: "Dataset",
    image_id: str,
    sample: "Sample | None",
    *,
    ids: str | None,
) -> "tuple[Sequence[Region], Answer | None]":
    """What to draw: the regions with these ids, those of the sample, or all of the image."""
    if ids is not None:
        return _select_regions(dataset, image_id, ids), None
    if sample is None:
        return dataset.regions_of(image_id), None
    return sample.targets, sample.answer


def _save(image: "Image.Image", path: Path) -> None:
    try:
        image.save(path)
    except (OSError, ValueError) as error:
        raise ImageError(f"cannot write {path}: {error}") from error


def _is_image_id(dataset: "Dataset", key: str) -> bool:
    """Whether a key is an image's id, and neither a sample's id nor its number."""
    if key in dataset.samples.row or _is_sample_number(dataset, key):
        return False
    return key in dataset.images.row


def _is_sample_number(dataset: "Dataset", key: str) -> bool:
    return key.isdecimal() and int(key) < len(dataset)


def _select_regions(dataset: "Dataset", image_id: str, ids: str) -> "list[Region]":
    """The regions of an image with these ids, separated by commas."""
    regions = {region.id: region for region in dataset.regions_of(image_id)}
    wanted_ids = [id.strip() for id in ids.split(",") if id.strip()]
    for id in wanted_ids:
        if id not in regions:
            raise UnknownNameError(f"region of image {image_id!r}", id, regions)
    return [regions[id] for id in wanted_ids]


def _find_prediction(path: Path, sample_id: str) -> "Prediction":
    """The prediction of a sample in a predictions.jsonl, or in that of a run folder; else in what a run has scored."""
    from maskwise.runs.files import PREDICTIONS, RUN
    from maskwise.schema import Prediction
    from maskwise.store import Log

    if (path / RUN).is_file() and not (path / PREDICTIONS).is_file():
        return _find_scored_prediction(path, sample_id)
    if path.is_dir():
        path = path / PREDICTIONS
    if not path.is_file():
        raise StoreError(
            f"{path} is no file; expected a run folder or its {PREDICTIONS}"
        )
    for prediction in Log(path, Prediction):
        if prediction.sample == sample_id:
            return prediction
    raise StoreError(f"{path} contains no prediction for sample {sample_id!r}")


def _find_scored_prediction(folder: Path, sample_id: str) -> "Prediction":
    """The prediction of a sample in the file that `maskwise score` has read, in any format."""
    from maskwise.report.run_samples import RunSamples
    from maskwise.runs import load_run

    run = load_run(folder)
    if sample_id not in run.ids:
        raise UnknownNameError(f"sample of {folder}", sample_id, run.ids)
    (scored,) = RunSamples(run, run.main_protocol(), [run.ids.index(sample_id)])
    if scored.prediction is None:
        raise StoreError(f"{folder} contains no prediction for sample {sample_id!r}")
    return scored.prediction


def _find_sample(dataset: "Dataset", key: str) -> "Sample":
    """The sample with this id, or if there is none the one of this number."""
    if key in dataset.samples.row:
        return dataset.sample(key)
    if _is_sample_number(dataset, key):
        return dataset[int(key)]
    if not len(dataset):
        example = next(iter(dataset.images.id), "none")
        raise StoreError(
            f"{dataset.path} has no samples, only images and regions: give an image's id, such as {example!r}"
        )
    raise StoreError(
        f"{dataset.path}: no sample with id {key!r}, and it is not a number from 0 to {len(dataset) - 1}"
    )


def _validation_to_json(check: "DatasetCheck") -> dict[str, Any]:
    counts_by_kind = {kind: len(findings) for kind, findings in check.by_kind().items()}
    return {
        "dataset": check.dataset,
        "valid": not check.errors,
        "errors": check.errors,
        "warnings": len(check.findings) - check.errors,
        "kinds": counts_by_kind,
        "findings": check.findings,
    }
