"""The command line: one program with the commands of `commands.py`, each loaded when it is given."""

import logging
import sys
from typing import Annotated, Any

import typer

import maskwise
from maskwise import logs
from maskwise.cli.commands import list_commands
from maskwise.cli.lazy import HelpfulGroup
from maskwise.errors import DISK_ERRORS, MaskwiseError
from maskwise.terminal import echo


class CommandLine(HelpfulGroup):
    """The group of all commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for command in list_commands():
            self.add_command(command)


app = typer.Typer(
    name="maskwise",
    cls=CommandLine,
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
    """Reasoning segmentation with visible and amodal masks: evaluate, read, build, train, ask.

    `maskwise COMMAND --help` describes a command and gives an example.

    Example: maskwise eval world --model tiny --out runs/tiny
    """
    level = "debug" if debug else "info" if verbose else None
    logs.configure(level)


def main() -> None:
    """Run the command line. An error that the user can fix is printed in one line, with exit code 2."""
    try:
        app()
    except MaskwiseError as error:
        logging.getLogger(__name__).debug("the command failed", exc_info=True)
        echo(f"maskwise: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        logging.getLogger(__name__).debug("the command failed", exc_info=True)
        echo(f"maskwise: {error}; make room or choose another place", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
