"""Text from datasets and models, made safe for terminals: control characters are shown escaped.

Without this a question or a name could clear the screen, set the window title or forge lines of output. `echo` and
`make_console` are what the command line prints with.
"""

import re
from collections.abc import Iterable
from typing import Any

import typer
from rich.console import (
    Console,
    ConsoleOptions,
    ConsoleRenderable,
    RenderableType,
    RenderHook,
    RenderResult,
)
from rich.segment import Segment

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""C0 and C1 controls except tab and newline, marks that reverse the direction of writing, lone surrogates."""


def safe_text(text: str) -> str:
    r"""The text with control characters as \u001b and the like, which in JSON is the same string."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text safely to standard output, or to standard error."""
    typer.echo(safe_text(text), err=err, nl=nl)


def make_console(**options: Any) -> Console:
    """A rich console that prints every text safely; its own colors and cursor movements stay."""
    console = Console(**options)
    console.push_render_hook(_SafeTexts())
    return console


class _SafeTexts(RenderHook):
    def process_renderables(
        self, renderables: list[ConsoleRenderable]
    ) -> list[ConsoleRenderable]:
        return [_Safe(renderable) for renderable in renderables]


class _Safe:
    """A renderable whose texts are made safe after it was rendered."""

    def __init__(self, renderable: RenderableType) -> None:
        self.renderable = renderable

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        yield from _safe_segments(console.render(self.renderable, options))


def _safe_segments(segments: Iterable[Segment]) -> Iterable[Segment]:
    for segment in segments:
        yield (
            segment
            if segment.control
            else Segment(safe_text(segment.text), segment.style)
        )
