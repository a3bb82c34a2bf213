"""`maskwise write`: write a dataset in another format."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from maskwise.cli.options import DatasetFolder, ImagesFolder, argument
from maskwise.console import make_console
from maskwise.datasets import find_dataset
from maskwise.formats import write_dataset
from maskwise.store import Dataset
from maskwise.terminal import echo


def write(
    format: Annotated[
        str, argument("FORMAT", "coco, fiftyone, huggingface, labelstudio or png.")
    ],
    dataset: DatasetFolder,
    *,
    out: Annotated[Path, typer.Option("--out", help="The folder to write.")],
    images: ImagesFolder = None,
    no_images: Annotated[
        bool,
        typer.Option(
            "--no-images", help="Write annotations only, without image files."
        ),
    ] = False,
) -> None:
    """Write a dataset in another format: COCO, FiftyOne, Hugging Face, Label Studio or PNG masks.

    `maskwise read` of the same format reads the folder again: the same regions, masks, questions, answers and tags.

    Example: maskwise write coco data/val --out coco_val
    """
    with make_console(stderr=True).status(f"writing {escape(str(out))}"):
        opened = Dataset.open(find_dataset(dataset), image_root=images)
        write_dataset(opened, format, out, with_images=not no_images)
    echo(
        f"wrote {out} ({format}): {len(opened.images)} images, {len(opened)} questions"
    )
