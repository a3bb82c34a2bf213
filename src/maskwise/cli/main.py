"""The command line: one command a verb, each parsed here or beside, answered by one function."""

import sys
import warnings
from typing import Annotated

import typer

import maskwise
from maskwise.cli import (
    asking,
    build,
    datasets,
    evaluating,
    info,
    intent,
    leaderboards,
    readers,
    reports,
    scoring,
    serving,
    training,
    world,
)
from maskwise.errors import MaskwiseError

app = typer.Typer(
    name="maskwise",
    help="Ask for what you see, or for what is hidden: read, score and build for reasoning segmentation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"maskwise {maskwise.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ask for what you see, or for what is hidden: read, score and build for reasoning segmentation."""


app.command()(info.info)
app.command()(datasets.validate)
app.command()(datasets.stats)
app.command()(datasets.show)
app.command()(readers.ls)
app.command()(readers.card)
app.command()(readers.read)
app.command()(world.world)
app.add_typer(build.app, name="build")
app.command()(asking.ask)
app.command()(intent.intent)
app.command()(training.train)
app.command()(training.export)
app.command("eval")(evaluating.evaluate_model)
app.command("score")(scoring.score_predictions)
app.command()(reports.report)
app.command()(reports.compare)
app.command()(leaderboards.leaderboard)
app.command()(serving.serve)


def _print_warning(message: Warning | str, *_where: object, **_more: object) -> None:
    typer.echo(f"maskwise: warning: {message}", err=True)


def main() -> None:
    """Run the command line; what the user can mend is said in one line, without a traceback, with exit code 2."""
    warnings.showwarning = _print_warning
    try:
        app()
    except MaskwiseError as error:
        typer.echo(f"maskwise: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
