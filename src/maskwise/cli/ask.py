"""`maskwise ask`: one or several questions about one image, for any model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwise.cli.hints import refuse_swapped
from maskwise.cli.options import ModelOptions, ModelSpec, argument
from maskwise.errors import ImageError, MaskwiseError
from maskwise.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PIL import Image

    from maskwise.language.intent import CueSpan
    from maskwise.schema import Prediction


def ask(
    image: Annotated[Path, argument("IMAGE", "An image file.")],
    questions: Annotated[
        list[str],
        argument(
            "QUESTION...",
            "What to look for, in words. Several questions share the work on the image.",
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for overlay.png and prediction.json; with several questions for overlay-1.png and so on.",
            show_default=False,
        ),
    ] = None,
    model: ModelSpec = "tiny",
    model_option: ModelOptions = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print the prediction as JSON, masks as COCO RLE; a list for several questions.",
        ),
    ] = False,
) -> None:
    """Ask a question about an image: an answer in words, the mask type it asks for, and the masks.

    A line per region has its name, the areas of its masks and, in brackets, its score: the model's confidence in the
    region, from 0 to 1. Scores of different models cannot be compared.

    The bundled model knows the objects of `maskwise world` and no others. It warns about most other images. For
    photographs use --model photo, which says what to download first.

    Example: maskwise ask scene.png "Show the whole mug, hidden part included." --out answer
    """
    import msgspec

    from maskwise.harness.loaded_model import load_model
    from maskwise.harness.registry import parse_options
    from maskwise.language.intent import classify_intent

    for question in questions:
        if not question.strip():
            raise MaskwiseError(
                'the question is empty; expected words such as "the red mug"'
            )
    refuse_swapped(
        "ask",
        "IMAGE QUESTION",
        f'"{image}"',
        questions[0],
        when=not image.exists() and Path(questions[0]).is_file(),
    )
    with load_model(model, **parse_options(model_option or [])) as loaded:
        encoding = loaded.encode(image)
        predictions = encoding.ask(questions)
        warning = encoding.domain_warning
    texts = []
    encoded_list = []
    for number, (question, prediction) in enumerate(zip(questions, predictions), 1):
        suffix = "" if len(questions) == 1 else f"-{number}"
        named_prediction = msgspec.structs.replace(prediction, sample=image.name)
        encoded = msgspec.json.encode(named_prediction)
        encoded_list.append(msgspec.Raw(encoded))
        if out is not None:
            _write(out, suffix, msgspec.json.format(encoded), prediction.plot())
        heading = "" if len(questions) == 1 else f"{question}\n"
        (intent,) = classify_intent([question])
        # A model may choose another mask type than the words ask for.
        spans = [span for span in intent.spans if span.polarity == prediction.mask_type]
        texts.append(heading + _describe(prediction, spans, out, suffix=suffix))
    if warning is not None:
        echo(f"maskwise: warning: {warning}", err=True)
    if not as_json:
        echo("\n\n".join(texts))
        return
    content = encoded_list[0] if len(questions) == 1 else encoded_list
    echo(msgspec.json.format(msgspec.json.encode(content)).decode())


def _write(folder: Path, suffix: str, encoded: bytes, overlay: "Image.Image") -> None:
    from maskwise.store.atomic import atomic_write

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / f"prediction{suffix}.json") as file:
            file.write(encoded + b"\n")
        with atomic_write(folder / f"overlay{suffix}.png") as file:
            overlay.save(file, "PNG")
    except OSError as error:
        raise ImageError(f"cannot write to {folder}: {error}") from error


def _describe(
    prediction: "Prediction",
    spans: "Sequence[CueSpan]",
    out: Path | None,
    *,
    suffix: str,
) -> str:
    """Answer, mask type with the words of the question that ask for it, and one line per region."""
    lines = [
        prediction.answer.text if prediction.answer else "(no answer in words)",
        f"mask type: {prediction.mask_type or 'not stated'}",
    ]
    for span in spans:
        lines.append(f'  because of "{span.text}" ({span.kind})')
    for region in prediction.regions:
        areas = []
        if region.visible:
            areas.append(f"visible {region.visible.area} px")
        if region.amodal:
            areas.append(f"amodal {region.amodal.area} px")
        name = region.name or "region"
        lines.append(f"  {name}: {', '.join(areas)} ({region.score:.2f})")
    if out is not None:
        overlay = out / f"overlay{suffix}.png"
        masks = out / f"prediction{suffix}.json"
        lines.append(f"drawn in {overlay}; masks in {masks}")
    return "\n".join(lines)
