"""`maskwise adapters`: models that people already use, and how each is called."""

from maskwise.cli.options import AsJson


def adapters(as_json: AsJson = False) -> None:
    """List the adapters for published models: weights, their license, what to install, how to call them.

    Example: maskwise adapters --json
    """
    from rich.markup import escape
    from rich.table import Table

    from maskwise.cli.output import print_json
    from maskwise.console import make_console
    from maskwise.models.adapters.catalog import ADAPTERS

    fields_of_adapters = {name: adapter._asdict() for name, adapter in ADAPTERS.items()}
    if as_json:
        print_json(fields_of_adapters)
        return
    console = make_console(highlight=False)
    for name, fields in fields_of_adapters.items():
        console.print(f"[bold]{escape(name)}[/bold]")
        table = Table.grid(padding=(0, 3))
        for field, value in fields.items():
            table.add_row(f"  {escape(field)}", escape(value))
        console.print(table)
