"""The command line: registers every command; each module of this package defines one or a few."""

import logging
import sys
from typing import Annotated

import typer

import maskwise
from maskwise import logs
from maskwise.cli import (
    adapters,
    ask,
    build,
    datasets,
    evaluate,
    get,
    info,
    intent,
    leaderboard,
    read,
    release,
    report,
    review,
    score,
    serve,
    train,
    world,
    write,
)
from maskwise.errors import MaskwiseError
from maskwise.terminal import echo

app = typer.Typer(
    name="maskwise",
    help="Reasoning segmentation with visible and amodal masks: read, evaluate, score, train, ask.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        echo(f"maskwise {maskwise.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", help="Log the steps of the work. Also: MASKWISE_LOG=info."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Log details, and the traceback of an error. Also: MASKWISE_LOG=debug.",
        ),
    ] = False,
) -> None:
    """Reasoning segmentation with visible and amodal masks: read, evaluate, score, train, ask."""
    level = "debug" if debug else "info" if verbose else None
    logs.configure(level)


app.command()(info.info)
app.command()(datasets.validate)
app.command()(datasets.stats)
app.command()(datasets.show)
app.command()(read.ls)
app.command()(adapters.adapters)
app.command()(read.card)
app.command()(read.read)
app.command()(write.write)
app.command()(release.release)
app.command()(release.diff)
app.command()(get.get)
app.command()(world.world)
app.add_typer(build.app, name="build")
app.add_typer(review.app, name="review")
app.command()(ask.ask)
app.command()(intent.intent)
app.command()(train.train)
app.command()(train.export)
app.command("eval")(evaluate.evaluate_model)
app.command("score")(score.score_predictions)
app.command()(report.report)
app.command()(report.compare)
app.command()(leaderboard.leaderboard)
app.command()(serve.serve)


def main() -> None:
    """Run the command line. An error that the user can fix is printed in one line, with exit code 2."""
    try:
        app()
    except MaskwiseError as error:
        logging.getLogger(__name__).debug("the command failed", exc_info=True)
        echo(f"maskwise: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
