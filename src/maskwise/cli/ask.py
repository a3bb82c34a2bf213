"""`maskwise ask`: one question about one image, for any model."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from PIL import Image

from maskwise.api.loaded_model import load_model
from maskwise.cli.options import ModelOptions, ModelSpec, argument
from maskwise.errors import ImageError, MaskwiseError
from maskwise.harness.registry import parse_options
from maskwise.schema import Prediction
from maskwise.store.atomic import atomic_write
from maskwise.terminal import echo


def ask(
    image: Annotated[Path, argument("IMAGE", "An image file.")],
    question: Annotated[str, argument("QUESTION", "What to look for, in words.")],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for overlay.png and prediction.json.", show_default=False
        ),
    ] = None,
    model: ModelSpec = "tiny",
    model_option: ModelOptions = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the prediction as JSON, masks as COCO RLE."),
    ] = False,
) -> None:
    """Ask a question about an image: an answer in words, the mask type it asks for, and the masks.

    A line per region has its name, the areas of its masks and, in brackets, its score: the model's confidence in the
    region, from 0 to 1. Scores of different models cannot be compared.

    The bundled model knows the objects of `maskwise world` and no others. It warns about most other images. For
    photographs use --model photo, which says what to download first.

    Example: maskwise ask scene.png "Show the whole mug, hidden part included." --out answer
    """
    if not question.strip():
        raise MaskwiseError(
            'the question is empty; expected words such as "the red mug"'
        )
    with load_model(model, **parse_options(model_option or [])) as loaded:
        shown = loaded.encode(image)
        prediction = shown.ask(question)
        warning = shown.domain_warning
    overlay = None if out is None else prediction.plot()
    named = msgspec.structs.replace(prediction, sample=image.name)
    encoded = msgspec.json.format(msgspec.json.encode(named))
    if out is not None and overlay is not None:
        _write(out, encoded, overlay)
    if warning is not None:
        echo(f"maskwise: warning: {warning}", err=True)
    echo(encoded.decode() if as_json else _describe(prediction, out))


def _write(folder: Path, encoded: bytes, overlay: Image.Image) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / "prediction.json") as file:
            file.write(encoded + b"\n")
        with atomic_write(folder / "overlay.png") as file:
            overlay.save(file, "PNG")
    except OSError as error:
        raise ImageError(f"cannot write to {folder}: {error}") from error


def _describe(prediction: Prediction, out: Path | None) -> str:
    """Answer, mask type, and one line per region."""
    lines = [
        prediction.answer.text if prediction.answer else "(no answer in words)",
        f"mask type: {prediction.mask_type or 'not stated'}",
    ]
    for region in prediction.regions:
        areas = [
            f"{name} {mask.area} px"
            for name, mask in (("visible", region.visible), ("amodal", region.amodal))
            if mask
        ]
        lines.append(
            f"  {region.name or 'region'}: {', '.join(areas)} ({region.score:.2f})"
        )
    if out is not None:
        lines.append(
            f"drawn in {out / 'overlay.png'}; masks in {out / 'prediction.json'}"
        )
    return "\n".join(lines)
