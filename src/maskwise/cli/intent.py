"""`maskwise intent`: classify which mask type a question requests."""

import json
from collections.abc import Iterator
from typing import Annotated

import typer

from maskwise.terminal import echo

STANDARD_INPUT = "-"


def intent(
    questions: Annotated[
        list[str],
        typer.Argument(
            metavar="QUESTION", help="Questions; - reads standard input, one per line."
        ),
    ],
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one object per line.")
    ] = False,
) -> None:
    """Classify whether a question requests the visible or the amodal mask, with the words that decide.

    Example: maskwise intent "the cup behind the teapot" "the cup, even the part behind the teapot"
    """
    import msgspec

    from maskwise.language.intent import classify_intent

    for question in _read_questions(questions):
        (prediction,) = classify_intent([question])
        if not prediction.language_supported:
            echo(
                f"maskwise: not in English, so the mask type is a guess: {question}",
                err=True,
            )
        if as_json:
            fields = {"question": question, **prediction._asdict()}
            fields["spans"] = msgspec.to_builtins(prediction.spans)
            echo(json.dumps(fields, ensure_ascii=False))
            continue
        columns = [prediction.mask_type, f"{prediction.probability:.3f}", question]
        if prediction.spans:
            cues = [f'{span.kind} "{span.text}"' for span in prediction.spans]
            columns.append(", ".join(cues))
        echo("\t".join(columns))


def _read_questions(questions: list[str]) -> Iterator[str]:
    """The questions in order; standard input is read line by line, without blank lines."""
    for question in questions:
        if question == STANDARD_INPUT:
            lines = typer.get_text_stream("stdin", encoding="utf-8", errors="replace")
            yield from filter(None, (line.strip() for line in lines))
        else:
            yield question
