"""Commands whose module is imported when they run, so that the program itself starts at once."""

import importlib
import re
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup, TyperOption

from maskwise.errors import did_you_mean

NOT_A_CHOICE = re.compile(r"'(?P<given>[^']*)' is not one of (?P<choices>'.*')")
"""How typer words a value that is not among the choices of an option."""


class HelpfulCommand(TyperCommand):
    """A command without `<bool>` behind its flags, and with hints at misspelt values."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters with `--help`, as shown in the help."""
        return hide_flag_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and name the nearest choice when a value is none of the choices."""
        given = list(args)  # the parser empties its list
        # Extra arguments are refused below, with a hint.
        ctx.allow_extra_args = True
        try:
            extra = super().parse_args(ctx, args)
        except typer.BadParameter as error:
            # The prefix is pydantic's, for a Literal.
            message = error.message.removeprefix("Value error, ")
            error.message = message + nearest_choice(message)
            raise
        if extra and not ctx.resilient_parsing:
            hint = repeated_option(self.get_params(ctx), given, extra[0])
            ctx.fail(f"Got unexpected extra argument(s) ({' '.join(extra)}){hint}")
        return extra


class HelpfulGroup(TyperGroup):
    """A group of commands without `<bool>` behind its flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters with `--help`, as shown in the help."""
        return hide_flag_types(super().get_params(ctx))


class DefaultGroup(HelpfulGroup):
    """A group in which anything that is not a subcommand is given to the command `default`."""

    default: str

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default before anything but a subcommand or a request for help."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


class LazyCommand(TyperCommand):
    """What the list of commands shows of a command, and where the command itself is.

    location: `module:name` of a function, or of a typer.Typer with subcommands.
    group: the heading below which the list shows it.
    """

    def __init__(self, name: str, location: str, summary: str, *, group: str) -> None:
        super().__init__(name, help=summary, rich_help_panel=group)
        self.location = location
        self.summary = summary

    def load(self) -> TyperCommand | TyperGroup:
        """Import the module and make the command."""
        module, _, attribute = self.location.partition(":")
        target = getattr(importlib.import_module(module), attribute)
        if isinstance(target, typer.Typer):
            command = typer.main.get_group(target)
            command.name = self.name
            return command
        program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        program.command(self.name, cls=HelpfulCommand)(target)
        single = typer.main.get_command(program)
        assert isinstance(single, TyperCommand)
        return single

    def make_context(self, *args: Any, **options: Any) -> Any:
        """The context of the command itself: what is invoked is not this placeholder."""
        return self.load().make_context(*args, **options)


def hide_flag_types(parameters: list[Any]) -> list[Any]:
    """The same parameters; flags show no type in the help, as they take no value."""
    for parameter in parameters:
        if isinstance(parameter, TyperOption) and parameter.is_flag:
            parameter.metavar = ""
    return parameters


def nearest_choice(message: str) -> str:
    """The hint to append to typer's message about a value that is not a choice."""
    match = NOT_A_CHOICE.search(message)
    if match is None:
        return ""
    choices = re.findall(r"'([^']*)'", match["choices"])
    return did_you_mean(match["given"], choices)


def repeated_option(parameters: list[Any], given: list[str], extra: str) -> str:
    """The hint to append where several values were given to an option that takes one each time.

    given: all arguments; extra: the first that no parameter takes.
    """
    names = {
        name
        for parameter in parameters
        if isinstance(parameter, TyperOption) and parameter.multiple
        for name in parameter.opts
    }
    # The last place: `--runs a a` has a value and an extra argument that are equal.
    place = len(given) - 1 - given[::-1].index(extra)
    option = given[place - 2] if place >= 2 else ""
    if option not in names:
        return ""
    return f". Repeat the option for each value: {option} {given[place - 1]} {option} {extra}"
