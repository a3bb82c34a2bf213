"""`maskwise ask`: one question about one image, answered by the bundled model."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from PIL import Image

from maskwise.errors import ImageError, MaskwiseError, ModelError
from maskwise.harness.predictor import Predictor, call_model
from maskwise.harness.registry import load_model, parse_options
from maskwise.images import open_image
from maskwise.overlay import draw_overlay
from maskwise.schema import Prediction, Sample


def ask(
    image: Annotated[Path, typer.Argument(help="An image file.", show_default=False)],
    question: Annotated[str, typer.Argument(help="What to look for, in words.", show_default=False)],
    *,
    out: Annotated[
        Path | None, typer.Option(help="Folder for overlay.png and prediction.json.", show_default=False)
    ] = None,
    model: Annotated[str, typer.Option(help="As for eval: a name, package.module:factory, ...")] = "tiny",
    model_option: Annotated[
        list[str] | None,
        typer.Option("--model-option", help="KEY=VALUE, such as folder=runs/train for weights of your own."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the prediction as JSON, masks as COCO RLE.")
    ] = False,
) -> None:
    """Ask a question about an image: an answer in words, the mask type it wants, and the masks.

    The bundled model knows the objects of `maskwise world` and no others.

    Example: maskwise ask scene.png "Show the whole mug, hidden part included." --out answer
    """
    if not question.strip():
        raise MaskwiseError('the question is empty; expected words such as "the red mug"')
    opened = load_model(model, **parse_options(model_option or []))
    if not isinstance(opened, Predictor):
        raise MaskwiseError(f"model {model!r} has to be told the truth and cannot be asked")
    pixels = open_image(image)
    asked = Sample(id=image.name, image_id=image.name, question=question)
    try:
        (prediction,) = call_model(opened, "predict", pixels, [asked])
    except MaskwiseError:
        raise
    except Exception as error:  # a model may raise anything
        raise ModelError(f"model {model!r} failed: {type(error).__name__}: {error}") from error
    encoded = msgspec.json.format(msgspec.json.encode(prediction))
    if out is not None:
        _write(
            out,
            encoded,
            draw_overlay(
                pixels,
                prediction.regions,
                mask_type=prediction.mask_type or "both",
                question=question,
                answer=prediction.answer,
            ),
        )
    typer.echo(encoded.decode() if as_json else _tell(prediction, out))


def _write(folder: Path, encoded: bytes, overlay: Image.Image) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "prediction.json").write_bytes(encoded + b"\n")
        overlay.save(folder / "overlay.png")
    except OSError as error:
        raise ImageError(f"cannot write to {folder}: {error}") from error


def _tell(prediction: Prediction, out: Path | None) -> str:
    """Answer, type, and a line a region."""
    lines = [
        prediction.answer.text if prediction.answer else "(no words)",
        f"mask type: {prediction.mask_type}",
    ]
    for region in prediction.regions:
        areas = [
            f"{name} {mask.area} px"
            for name, mask in (("visible", region.visible), ("amodal", region.amodal))
            if mask
        ]
        lines.append(f"  {region.name or 'region'}: {', '.join(areas)} ({region.score:.2f})")
    if out is not None:
        lines.append(f"drawn in {out / 'overlay.png'}; masks in {out / 'prediction.json'}")
    return "\n".join(lines)
