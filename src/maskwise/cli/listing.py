"""`maskwise ls`: what maskwise knows by name."""

from typing import Annotated, Literal

from maskwise.cli.options import AsJson, argument

Listed = Literal[
    "benchmarks",
    "formats",
    "protocols",
    "models",
    "recipes",
    "filters",
    "judges",
    "probes",
    "trainers",
    "trackers",
    "writers",
    "downloads",
    "plugins",
]


def ls(
    what: Annotated[Listed | None, argument("KIND", "Only these.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what maskwise knows by name: benchmarks, formats, protocols, models and more.

    `maskwise ls plugins` imports every plug-in and says which ones cannot be used.

    Example: maskwise ls benchmarks
    """
    from maskwise.cli.output import print_json
    from maskwise.registry import MODELS

    if what == "plugins":
        listed = {"plugins": _check_plug_ins()}
    else:
        everything = _list_all()
        listed = everything if what is None else {what: everything[what]}
    if what == "models":
        # Only where models alone are asked for: importing those of others may take seconds.
        listed["models"] |= MODELS.describe_plug_ins()
    if as_json:
        print_json(listed)
    else:
        _print_lists(listed)


def _print_lists(listed: dict[str, dict[str, str]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from maskwise.console import make_console

    console = make_console(highlight=False)
    for kind, names in listed.items():
        console.print(f"[bold]{kind}[/bold]")
        table = Table.grid(padding=(0, 3))
        for name, line in names.items():
            table.add_row(f"  {escape(name)}", escape(line))
        console.print(table if names else "  none")


def _list_all() -> dict[str, dict[str, str]]:
    """Descriptions by kind and name."""
    from maskwise.downloads.table import list_downloads
    from maskwise.registry import REGISTRIES

    listed = {kind: registry.list() for kind, registry in REGISTRIES.items()}
    downloads = {name: download.title for name, download in list_downloads().items()}
    return listed | {"downloads": downloads}


def _check_plug_ins() -> dict[str, str]:
    """Every plug-in as KIND/NAME: its description, or why it cannot be imported."""
    from maskwise.registry import REGISTRIES

    listed = {}
    for kind, registry in REGISTRIES.items():
        descriptions = registry.list()
        for name, problem in registry.check_plug_ins().items():
            listed[f"{kind}/{name}"] = problem or descriptions[name]
    return listed
