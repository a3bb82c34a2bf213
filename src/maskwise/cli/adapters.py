"""`maskwise adapters`: models that people already use, and how each is called."""

import json

from rich.markup import escape
from rich.table import Table

from maskwise.cli.options import AsJson
from maskwise.console import make_console
from maskwise.terminal import echo


def adapters(as_json: AsJson = False) -> None:
    """List the adapters for published models: weights, their license, what to install, how to call them.

    Example: maskwise adapters --json
    """
    from maskwise.models.adapters.catalog import ADAPTERS

    if as_json:
        echo(
            json.dumps(
                {name: one._asdict() for name, one in ADAPTERS.items()}, indent=2
            )
        )
        return
    console = make_console(highlight=False)
    for name, one in ADAPTERS.items():
        console.print(f"[bold]{escape(name)}[/bold]")
        table = Table.grid(padding=(0, 3))
        for field, value in one._asdict().items():
            table.add_row(f"  {escape(field)}", escape(value))
        console.print(table)
