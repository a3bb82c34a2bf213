"""Rich consoles that print every text safely; their own colors and cursor movements stay."""

from collections.abc import Iterable
from typing import Any

from rich.console import (
    Console,
    ConsoleOptions,
    ConsoleRenderable,
    RenderableType,
    RenderHook,
    RenderResult,
)
from rich.segment import Segment

from maskwise.terminal import safe_text


def make_console(**options: Any) -> Console:
    """A console with these options of rich. Control characters in texts are escaped."""
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
        if segment.control:
            yield segment
        else:
            yield Segment(safe_text(segment.text), segment.style)
