"""Arguments and options that several commands share, with the same help everywhere."""

from pathlib import Path
from typing import Annotated, Any

import typer

SEVERAL = "Can be given several times."


def argument(metavar: str, help: str) -> Any:
    """An argument with its name in capital letters, as usage lines and help show it."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


DatasetFolder = Annotated[Path, argument("DATASET", "A dataset folder, or `world`.")]
RunFolder = Annotated[
    Path, argument("RUN", "A run folder of `maskwise eval` or `maskwise score --out`.")
]
ImagesFolder = Annotated[
    Path | None,
    typer.Option(
        "--images", help="Folder of the images, if they were moved.", show_default=False
    ),
]
ModelSpec = Annotated[
    str,
    typer.Option(
        "--model",
        help="A name (`maskwise ls models`), package.module:factory, 'command: ...' or http://...",
    ),
]
ModelOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--model-option",
        metavar="NAME=VALUE",
        help=f"An option of the model. {SEVERAL}",
    ),
]
ProtocolNames = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help=f"A scoring rule; `maskwise ls protocols` lists them. {SEVERAL}",
        show_default="all",
    ),
]
ShowAll = Annotated[
    bool,
    typer.Option(
        "--all", help="Print every protocol and metric, not the headline metrics alone."
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing dataset.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
