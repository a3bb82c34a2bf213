"""Commands are consistent: one type per option, help with an example, the dataset first."""

from types import NoneType
from typing import get_args, get_type_hints

import typer.core

from docs.generate.commands import all_commands
from maskwise.cli.commands import list_commands
from maskwise.cli.options import SEVERAL


def parameters() -> list[tuple[str, typer.core.TyperArgument | typer.core.TyperOption]]:
    """The name of a command and one of its parameters, for all."""
    pairs = []
    for name, command in all_commands().items():
        pairs.extend((name, parameter) for parameter in command.params)
    return pairs


def test_an_option_has_one_type() -> None:
    types: dict[str, set[object]] = {}
    for command in all_commands().values():
        for name, hint in get_type_hints(command.callback).items():
            kinds = {kind for kind in get_args(hint) if kind is not NoneType} or {hint}
            types.setdefault(name, set()).add(
                frozenset(kinds) if hint is not str else frozenset({str})
            )
    for name in (
        "images",
        "out",
        "as_json",
        "seed",
        "limit",
        "overwrite",
        "samples",
        "protocol_option",
    ):
        assert len(types[name]) == 1, (name, types[name])


def test_flags_have_no_negative_twin() -> None:
    twins = [
        f"{command} {option}"
        for command, parameter in parameters()
        for option in parameter.secondary_opts
    ]
    assert not twins


def test_every_parameter_has_help() -> None:
    bare = [
        f"{command} {parameter.name}"
        for command, parameter in parameters()
        if not parameter.help
    ]
    assert not [name for name in bare if not name.endswith(" help")]


def test_the_dataset_comes_first() -> None:
    arguments: dict[str, list[str]] = {}
    for command, parameter in parameters():
        if isinstance(parameter, typer.core.TyperArgument):
            arguments.setdefault(command, []).append(str(parameter.name))
    for command in ("validate", "stats", "show", "eval", "build mmr", "review start"):
        assert arguments[command][0] == "dataset", command
    # What is judged comes before the dataset, as in Python.
    assert arguments["score"] == ["predictions", "dataset"]
    assert arguments["report"] == ["run", "dataset"]


def test_no_option_names_the_dataset() -> None:
    options = {
        f"{command} {option}"
        for command, parameter in parameters()
        for option in parameter.opts
        if option in ("--dataset", "--data", "--source")
    }
    assert not options


def test_every_command_has_an_example() -> None:
    for name, command in all_commands().items():
        assert f"Example: maskwise {name}" in (command.help or ""), name


def test_the_list_of_commands_has_one_row_per_command() -> None:
    """In 80 columns the frame and the longest name leave 63 for the summary."""
    wide = [command.name for command in list_commands() if len(command.summary) > 63]
    assert not wide


def test_arguments_are_written_in_capitals() -> None:
    small = [
        f"{command} {parameter.metavar or parameter.name}"
        for command, parameter in parameters()
        if isinstance(parameter, typer.core.TyperArgument)
        and not (parameter.metavar or str(parameter.name)).isupper()
    ]
    assert not small


def test_repeatable_options_say_so_in_the_same_words() -> None:
    silent = [
        f"{command} {parameter.name}"
        for command, parameter in parameters()
        if isinstance(parameter, typer.core.TyperOption)
        and parameter.multiple
        and not (parameter.help or "").endswith(SEVERAL)
    ]
    assert not silent


def test_defaults_are_not_lost_as_markup() -> None:
    """Help is printed by rich, which takes words in brackets for markup."""
    assert not [
        f"{command} {parameter.name}"
        for command, parameter in parameters()
        if "[" in (parameter.help or "")
    ]
