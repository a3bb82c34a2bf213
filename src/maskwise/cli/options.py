"""Arguments and options that several commands share, with the same help everywhere."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

EngineName = Literal["local", "ray"]
"""`maskwise.engines.EngineName`, which is not imported here because that takes 30 ms."""

SEVERAL = "Can be given several times."

MAX_SLUG = 60
"""Characters of a dataset or model in the name of a run folder."""


def argument(metavar: str, help: str) -> Any:
    """An argument with its name in capital letters, as usage lines and help show it."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def to_slug(text: str) -> str:
    """A name for a folder: what a path, a factory or an address ends with."""
    if "://" in text:
        ending = text.partition("://")[2]
    else:
        ending = Path(text.rstrip("/")).name
    slug = re.sub(r"[^\w.-]+", "-", ending).strip("-.")
    return slug[:MAX_SLUG] or "run"


DatasetName = Annotated[
    str,
    argument(
        "DATASET",
        "A dataset folder, a release, the name of a downloaded dataset, or `world`, which comes with maskwise.",
    ),
]
ReaderName = Annotated[
    str, argument("NAME", "A benchmark or format; `maskwise ls` lists them.")
]
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
TrackerNames = Annotated[
    list[str] | None,
    typer.Option(
        "--track",
        metavar="NAME",
        help=f"Also write to tensorboard, wandb, mlflow or trackio. {SEVERAL}",
        show_default=False,
    ),
]
ProbeFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--probes",
        metavar="FOLDER",
        help=f"Put the results of `maskwise probe` into the card. {SEVERAL}",
        show_default=False,
    ),
]
ShowAll = Annotated[
    bool,
    typer.Option(
        "--all", help="Print every protocol and metric, not the headline metrics alone."
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        help=f"A name by which requests may call this server. {SEVERAL}",
        show_default=False,
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing dataset.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

# -- the engine: `maskwise.engines.EngineOptions`, for eval, build and train -----------

ENGINE_HELP = "Who does the work: processes of this machine, or workers of Ray."
Engine = Annotated[EngineName, typer.Option("--engine", help=ENGINE_HELP)]
EngineOfEval = Annotated[
    EngineName | None,
    typer.Option(
        "--engine", help=ENGINE_HELP, show_default="local; with several --workers: ray"
    ),
]
EngineOfConfig = Annotated[
    EngineName | None,
    typer.Option("--engine", help=ENGINE_HELP, show_default="[execution] of CONFIG"),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="Workers side by side. For eval each has a model of its own and, if there are any, a GPU; "
        "several need no cluster.",
        show_default="local: 1; ray: as many as fit, for training 1",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="HOST:PORT",
        help="A Ray cluster.",
        show_default="one on this machine",
    ),
]
CpusPerWorker = Annotated[
    float | None,
    typer.Option(
        "--cpus-per-worker",
        min=0.0,
        help="Cores that each worker reserves (ray).",
        show_default="1",
    ),
]
GpusPerWorker = Annotated[
    float | None,
    typer.Option(
        "--gpus-per-worker",
        min=0.0,
        help="GPUs that each worker reserves (ray).",
        show_default="eval: 1, if there are any; otherwise 0",
    ),
]
