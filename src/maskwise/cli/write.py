"""`maskwise write`: write a dataset in another format."""

from pathlib import Path
from typing import Annotated

import typer

from maskwise.cli.hints import is_dataset, refuse_swapped
from maskwise.cli.options import DatasetName, ImagesFolder, argument
from maskwise.terminal import echo


def write(
    format: Annotated[
        str,
        argument(
            "FORMAT",
            "A format that can be written: coco, huggingface, lisa, qwen3_vl, ...",
        ),
    ],
    dataset: DatasetName,
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
    """Write a dataset in another format, to share it or to train with it.

    To share: coco, fiftyone, huggingface, labelstudio, png. They keep all regions, masks, questions, answers and tags.
    To train: lisa, mmr_json, segzero, sa2va, gcg_json, qwen2_vl, qwen2_5_vl, qwen3_vl. The command prints what such a
    format cannot say, with counts. `maskwise read` of the same format reads the folder again.

    Example: maskwise write coco data/val --out coco_val
    """
    from rich.markup import escape

    from maskwise.console import make_console
    from maskwise.datasets import load_dataset
    from maskwise.formats import write_dataset

    refuse_swapped(
        "write",
        "FORMAT DATASET",
        format,
        dataset,
        when=is_dataset(format) and not is_dataset(dataset),
    )
    with make_console(stderr=True).status(f"writing {escape(str(out))}"):
        data = load_dataset(dataset, images=images)
        left_out = write_dataset(data, format, out, with_images=not no_images)
    echo(f"wrote {out} ({format}): {len(data.images)} images, {len(data)} questions")
    for what, count in left_out.items():
        echo(f"not written, because {format} cannot say it: {count:,} {what}")
