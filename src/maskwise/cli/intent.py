"""`maskwise intent`: which mask a question wants."""

import json
from collections.abc import Iterator
from typing import Annotated

import typer

STANDARD_INPUT = "-"


def intent(
    questions: Annotated[
        list[str],
        typer.Argument(metavar="QUESTION", help="Questions; - reads standard input, one a line."),
    ],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")] = False,
) -> None:
    """Tell from words alone whether a question wants the visible or the amodal mask, and how sure that is.

    Example: maskwise intent "the cup behind the teapot" "the cup, even the part behind the teapot"
    """
    from maskwise.models.intent import decide  # noqa: PLC0415 - other commands need no weights

    for question in _each(questions):
        (wanted,) = decide([question])
        if as_json:
            typer.echo(json.dumps({"question": question, **wanted._asdict()}, ensure_ascii=False))
        else:
            typer.echo(f"{wanted.mask_type}\t{wanted.probability:.3f}\t{question}")


def _each(questions: list[str]) -> Iterator[str]:
    """The questions in order, those of standard input as they come; its blank lines are skipped."""
    for question in questions:
        if question == STANDARD_INPUT:
            lines = typer.get_text_stream("stdin", encoding="utf-8", errors="replace")
            yield from filter(None, (line.strip() for line in lines))
        else:
            yield question
