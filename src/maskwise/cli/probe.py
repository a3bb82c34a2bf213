"""`maskwise probe`: measure the risks that dataset cards name."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskwise.cli.lazy import DefaultGroup, HelpfulCommand
from maskwise.cli.options import (
    SEVERAL,
    AsJson,
    CpusPerWorker,
    DatasetName,
    EngineOfEval,
    GpusPerWorker,
    ImagesFolder,
    ModelOptions,
    RayAddress,
    Workers,
    to_slug,
)
from maskwise.errors import MaskwiseError
from maskwise.terminal import echo

if TYPE_CHECKING:
    from maskwise.runs.probe_results import ProbesFile

RUN = "run"


class _RunByDefault(DefaultGroup):
    """A group in which a dataset in place of a subcommand means `run`."""

    default = RUN


app = typer.Typer(
    cls=_RunByDefault,
    help="Measure the risks that dataset cards name. `maskwise probe DATASET` is "
    "`maskwise probe run DATASET`.\n\nExample: maskwise probe world --model tiny --quick",
    no_args_is_help=True,
)


@app.command(RUN, cls=HelpfulCommand)
def run(
    dataset: DatasetName,
    *,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="As for `maskwise eval`; without it only the dataset is probed.",
            show_default=False,
        ),
    ] = None,
    model_option: ModelOptions = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            "--probe",
            metavar="NAME",
            help=f"A probe; `maskwise probe ls` lists them. {SEVERAL}",
            show_default="all",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="PROBE.NAME=VALUE",
            help=f"An option of a probe. {SEVERAL}",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Fewer questions: at most 3 times the cost of one evaluation, not 30.",
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Only this many images, drawn at random."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of every random choice.")] = 0,
    engine: EngineOfEval = None,
    workers: Workers = None,
    ray_address: RayAddress = None,
    cpus_per_worker: CpusPerWorker = None,
    gpus_per_worker: GpusPerWorker = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.001, help="Seconds a question may take.", show_default="any time"
        ),
    ] = None,
    images: ImagesFolder = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder of the results.", show_default="probes/DATASET-MODEL"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Probe a dataset and a model: what was done, found and cannot be seen, for each risk.

    The folder keeps probes.json, the page probes.html and a run folder for every evaluation
    (docs/guides/probes.md). Repeat the command to continue probes that were stopped.

    Example: maskwise probe run world --model tiny --quick --out probes/tiny
    """
    from maskwise.cli.output import print_json
    from maskwise.cli.signals import ending_on_signals
    from maskwise.engines import EngineOptions
    from maskwise.harness.registry import parse_options
    from maskwise.probes.run_probes import probe as run_probes

    folder = out or Path("probes") / f"{to_slug(dataset)}-{to_slug(model or 'data')}"
    several = workers is not None and workers > 1
    engine_options = EngineOptions(
        engine=engine or ("ray" if several else "local"),
        workers=workers,
        ray_address=ray_address,
        cpus_per_worker=cpus_per_worker,
        gpus_per_worker=gpus_per_worker,
    )
    with ending_on_signals(folder):
        results = run_probes(
            model,
            dataset,
            folder,
            probes=probe,
            options=parse_options(model_option or []),
            probe_options=_parse_probe_options(option or []),
            images=images,
            quick=quick,
            limit=limit,
            seed=seed,
            engine=engine_options,
            timeout=timeout,
            progress=not as_json,
            command=shlex.join(["maskwise", *sys.argv[1:]]),
            on_probe=_print_nothing if as_json else _print_probe,
        )
    if as_json:
        print_json(results)
    else:
        _print_results(results, folder)


@app.command("ls", cls=HelpfulCommand)
def ls(as_json: AsJson = False) -> None:
    """List the probes: the risks they measure, their options, and what they cannot see.

    Example: maskwise probe ls
    """
    from rich.markup import escape
    from rich.padding import Padding

    from maskwise.cli.output import print_json
    from maskwise.console import make_console
    from maskwise.probes.probe import Probe
    from maskwise.registry import PROBES

    probes = PROBES.load_all(Probe)
    if as_json:
        print_json({name: _describe(probe) for name, probe in probes.items()})
        return
    console = make_console(highlight=False)
    for name, probe in probes.items():
        console.print(f"[bold]{escape(name)}[/bold]  {escape(', '.join(probe.risks))}")
        lines = [
            escape(probe.measured),
            f"[dim]cannot see:[/dim] {escape(probe.blind_spots)}",
        ]
        options = [f"{key}={value}" for key, value in probe.options.items()]
        if options:
            lines.append(f"[dim]options: {escape(', '.join(options))}[/dim]")
        if not probe.needs_model:
            lines.append("[dim]needs no model[/dim]")
        for line in lines:
            # Wrapped lines stay under the name of their probe.
            console.print(Padding(line, (0, 0, 0, 2), expand=False))


def _describe(probe: Any) -> dict[str, Any]:
    return {
        "title": probe.title,
        "risks": probe.risks,
        "measured": probe.measured,
        "blind_spots": probe.blind_spots,
        "thresholds": probe.thresholds,
        "options": probe.options,
        "needs_model": probe.needs_model,
    }


def _parse_probe_options(given: list[str]) -> dict[str, dict[str, Any]]:
    """Options written as PROBE.NAME=VALUE, by probe. Values stay text; the probe converts them."""
    options: dict[str, dict[str, Any]] = {}
    for text in given:
        place, sign, value = text.partition("=")
        # The name of a plug-in may contain dots itself: package.module:attribute.
        name, dot, option = place.rpartition(".")
        if not sign or not dot or not option.isidentifier():
            raise MaskwiseError(
                f"--option {text}: expected PROBE.NAME=VALUE, for example "
                "demographic.column=age_group"
            )
        options.setdefault(name, {})[option] = value
    return options


def _print_probe(name: str, number: int, count: int) -> None:
    echo(f"maskwise: {name}, probe {number} of {count}", err=True)


def _print_nothing(name: str, number: int, count: int) -> None:
    """Standard output is JSON, and nothing else is wanted."""


def _print_results(results: "ProbesFile", folder: Path) -> None:
    from rich.markup import escape
    from rich.table import Table

    from maskwise.console import make_console
    from maskwise.report.probe_page import PAGE, SEVERITY_LABELS

    colors = {"high": "red", "medium": "yellow", "low": "cyan"}
    console = make_console(highlight=False)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("risk")
    table.add_column("severity")
    table.add_column("finding")
    for result in results.results:
        label = SEVERITY_LABELS[result.severity]
        color = colors.get(result.severity, "dim")
        table.add_row(
            escape(result.title), f"[{color}]{label}[/]", escape(result.finding)
        )
    console.print(table)
    console.print(f"{results.cost:.1f} times the questions of one evaluation")
    console.print(f"Open {escape(str(folder / PAGE))} in a browser.")
