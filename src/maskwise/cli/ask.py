"""`maskwise ask`: one or several questions about one image, or a dialogue about it, for any model."""

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

    from maskwise.harness.loaded_model import ImageEncoding
    from maskwise.language.intent import CueSpan
    from maskwise.schema import Prediction, Turn


def ask(
    image: Annotated[Path, argument("IMAGE", "An image file.")],
    questions: Annotated[
        list[str] | None,
        argument(
            "[QUESTION...]",
            "What to look for, in words. Several questions share the work on the image. "
            "Without one, questions are read line by line, as a dialogue.",
        ),
    ] = None,
    *,
    dialogue: Annotated[
        bool,
        typer.Option(
            "--dialogue",
            help="The questions are turns of one dialogue: each may refer to those before it.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for overlay.png and prediction.json; with several questions for overlay-1.png and so on.",
            show_default=False,
        ),
    ] = None,
    model: ModelSpec = "tiny",
    model_option: ModelOptions = None,
    no_guess: Annotated[
        bool,
        typer.Option(
            "--no-guess",
            help="For --model photo: no region where no word of the question says what is meant, instead of a guess.",
        ),
    ] = False,
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

    In a dialogue a question may refer to the answers before it: "And the one behind it?", "Now its complete shape."
    Without QUESTION the command reads questions from standard input, one per line, until the end of the input.

    Example: maskwise ask scene.png "Show the whole mug, hidden part included." --out answer
    """
    from maskwise.harness.loaded_model import load_model
    from maskwise.harness.registry import parse_options

    options = parse_options(model_option or [])
    if no_guess:
        options["guess"] = False
    if not questions:
        if as_json or out is not None:
            raise MaskwiseError("--json and --out need a QUESTION")
        with load_model(model, **options) as loaded:
            _hold_dialogue(loaded.encode(image))
        return
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
    with load_model(model, **options) as loaded:
        encoding = loaded.encode(image)
        predictions = (
            _ask_in_turn(encoding, questions) if dialogue else encoding.ask(questions)
        )
        warning = encoding.domain_warning
    _print_predictions(image, questions, predictions, out=out, as_json=as_json)
    if warning is not None:
        echo(f"maskwise: warning: {warning}", err=True)


def _ask_in_turn(
    encoding: "ImageEncoding", questions: "Sequence[str]"
) -> "list[Prediction]":
    """Ask the questions of a dialogue one after another, each with the turns before it."""
    from maskwise.schema import Turn, continue_dialogue

    turns: list[Turn] = []
    predictions = []
    for question in questions:
        prediction = encoding.ask(continue_dialogue(question, turns))
        predictions.append(prediction)
        turns.append(_to_turn(question, prediction))
    return predictions


def _to_turn(question: str, prediction: "Prediction") -> "Turn":
    from maskwise.schema import Turn

    answer = None if prediction.answer is None else prediction.answer.text
    return Turn(question=question, answer=answer)


def _hold_dialogue(encoding: "ImageEncoding") -> None:
    """Read questions from standard input and print their answers, until the input ends."""
    import sys

    from maskwise.schema import Turn, continue_dialogue

    if encoding.domain_warning is not None:
        echo(f"maskwise: warning: {encoding.domain_warning}", err=True)
    if sys.stdin.isatty():
        echo("Ask about the image; an empty line ends the dialogue.", err=True)
    typed = sys.stdin.isatty()
    turns: list[Turn] = []
    for line in sys.stdin:
        question = line.strip()
        if not question and typed:
            break
        if not question:
            continue  # files of questions have blank lines between them
        prediction = encoding.ask(continue_dialogue(question, turns))
        turns.append(_to_turn(question, prediction))
        spans = _find_spans(question, prediction)
        echo(_describe(prediction, spans, None, suffix="") + "\n")


def _find_spans(question: str, prediction: "Prediction") -> "list[CueSpan]":
    """The words that ask for the mask type of a prediction; a model may choose another type than the words ask for."""
    from maskwise.language.intent import classify_intent

    (intent,) = classify_intent([question])
    return [span for span in intent.spans if span.polarity == prediction.mask_type]


def _print_predictions(
    image: Path,
    questions: "Sequence[str]",
    predictions: "Sequence[Prediction]",
    *,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print the answers, or all as JSON, and write files if a folder is given."""
    import msgspec

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
        spans = _find_spans(question, prediction)
        texts.append(heading + _describe(prediction, spans, out, suffix=suffix))
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
