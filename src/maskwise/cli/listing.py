"""`maskwise ls`: what maskwise knows by name."""

from typing import Annotated, Literal

import msgspec
from rich.markup import escape
from rich.table import Table

from maskwise.benchmarks import list_benchmarks
from maskwise.cli.options import AsJson, argument
from maskwise.console import make_console
from maskwise.downloads import list_downloads
from maskwise.formats import list_formats
from maskwise.harness.registry import list_models
from maskwise.protocols import PROTOCOLS
from maskwise.terminal import echo

Listed = Literal["benchmarks", "formats", "protocols", "models", "downloads"]


def ls(
    what: Annotated[Listed | None, argument("KIND", "Only these.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what maskwise knows by name: benchmarks, formats, protocols, models, downloads.

    Example: maskwise ls benchmarks
    """
    listed = {
        kind: names for kind, names in _list_all().items() if what in (None, kind)
    }
    if as_json:
        echo(msgspec.json.format(msgspec.json.encode(listed), indent=2).decode())
        return
    console = make_console(highlight=False)
    for kind, names in listed.items():
        console.print(f"[bold]{kind}[/bold]")
        table = Table.grid(padding=(0, 3))
        for name, line in names.items():
            table.add_row(f"  {escape(name)}", escape(line))
        console.print(table if names else "  none")


def _list_all() -> dict[str, dict[str, str]]:
    return {
        "benchmarks": {
            name: f"{benchmark.title}; protocol {benchmark.protocol}"
            for name, benchmark in list_benchmarks().items()
        },
        "formats": {name: format.title for name, format in list_formats().items()},
        "protocols": {
            name: protocol.description for name, protocol in PROTOCOLS.items()
        },
        "models": list_models(),
        "downloads": {
            name: download.title for name, download in list_downloads().items()
        },
    }
