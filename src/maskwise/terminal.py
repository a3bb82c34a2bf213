"""Text from datasets and models, made safe for terminals: control characters are shown escaped.

Without this a question or a name could clear the screen, set the window title or forge lines of output. `echo` is
what the command line prints with, and `console.py` where it prints tables and progress. `safe_cell` and
`safe_markdown` do the same for what spreadsheets and readers of Markdown would take for more than text.
"""

import re

import typer

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""C0 and C1 controls except tab and newline, marks that reverse the direction of writing, lone surrogates."""

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|!&~]")
"""What Markdown takes for markup: emphasis, code, links and images, HTML and its entities, headings, cells."""


def safe_text(text: str) -> str:
    r"""The text with control characters as \u001b and the like, which in JSON is the same string."""
    return _UNSAFE.sub(_escape, text)


def safe_cell(text: str) -> str:
    """The text as a cell of a CSV file, which a spreadsheet does not take for a formula."""
    is_formula = text.startswith(("=", "+", "-", "@", "\t", "\r"))
    return safe_text(f"'{text}" if is_formula else text)


def safe_markdown(text: str) -> str:
    """The text on one line of a Markdown file, where it is no markup: no link, image, HTML or cell of its own."""
    return _MARKUP.sub(r"\\\g<0>", safe_text(" ".join(text.split())))


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def count_noun(count: int, noun: str) -> str:
    """A number with its noun: `1 question`, `1,200 questions`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text safely to standard output, or to standard error."""
    typer.echo(safe_text(text), err=err, nl=nl)
