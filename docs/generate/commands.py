"""The reference of the command line, from the commands themselves: docs/reference/cli.md and a page for each group."""

import re
from typing import Literal, get_args, get_origin

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from maskwise.cli.commands import list_commands

Parameter = TyperArgument | TyperOption

DOCUMENT = re.compile(r"\bdocs/([\w/-]+)\.md\b")
"""How the help of a command names a document."""


def command_table() -> str:
    """One row per command, linked to its description, below a row with the name of its group."""
    rows = ["| command | |", "|---|---|"]
    for group, commands in grouped_commands().items():
        rows.append(f"| **[{group}](cli/{slug(group)}.md)** | |")
        for name, command in commands.items():
            link = f"cli/{slug(group)}.md#{slug(f'maskwise {name}')}"
            rows.append(f"| [`maskwise {name}`]({link}) | {first_line(command)} |")
    return "\n".join(rows) + "\n"


def group_pages() -> dict[str, str]:
    """Per group the page with its commands, by the name of the file in docs/reference/cli."""
    pages = {}
    for group, commands in grouped_commands().items():
        sections = [describe(name, command) for name, command in commands.items()]
        pages[f"{slug(group)}.md"] = f"# Commands: {group}\n\n" + "\n".join(sections)
    return pages


def all_commands() -> dict[str, TyperCommand]:
    """Every command by name; subcommands as `build mmr`."""
    return {
        name: command
        for commands in grouped_commands().values()
        for name, command in commands.items()
    }


def grouped_commands() -> dict[str, dict[str, TyperCommand]]:
    """The commands by group and name, in the order of the help."""
    groups: dict[str, dict[str, TyperCommand]] = {}
    for lazy_command in list_commands():
        commands = groups.setdefault(str(lazy_command.rich_help_panel), {})
        command = lazy_command.load()
        name = str(command.name)
        if isinstance(command, TyperGroup):
            for subcommand_name, subcommand in command.commands.items():
                assert isinstance(subcommand, TyperCommand)
                commands[f"{name} {subcommand_name}"] = subcommand
        else:
            commands[name] = command
    return groups


def first_line(command: TyperCommand) -> str:
    """The first line of the help of a command, without its full stop."""
    lines = (command.help or "").strip().split("\n")
    return lines[0].removesuffix(".")


def slug(text: str) -> str:
    """A heading as the anchor and the file name that a reader would guess."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def describe(name: str, command: TyperCommand) -> str:
    """A command: its help, its examples, then its arguments and options as a table."""
    paragraphs = (command.help or "").strip().split("\n\n")
    examples = [text for text in paragraphs if text.startswith("Example: ")]
    texts = [link_documents(text) for text in paragraphs if text not in examples]
    lines = [f"## `maskwise {name}`", "", "\n\n".join(texts), "", "```"]
    lines += [" ".join(text.split()).removeprefix("Example: ") for text in examples]
    lines.append("```")
    parameters = [parameter for parameter in command.params if is_shown(parameter)]
    if parameters:
        lines += ["", "| | |", "|---|---|"]
        lines += [parameter_row(parameter) for parameter in parameters]
    return "\n".join([*lines, ""])


def is_shown(parameter: object) -> bool:
    """Whether the help of a command lists a parameter."""
    return isinstance(parameter, Parameter) and not parameter.hidden


def parameter_row(parameter: Parameter) -> str:
    """How a parameter is given, and what it means."""
    help = link_documents(str(parameter.help or ""))
    if parameter.required:
        help += " Required." if isinstance(parameter, TyperOption) else ""
    elif default := default_text(parameter):
        help += f" Default: {default}."
    escaped = help.replace("|", "\\|")
    return f"| `{given_as(parameter)}` | {escaped} |".replace("\n", " ")


def given_as(parameter: Parameter) -> str:
    """An argument as `DATASET` or `[DATASET]`, an option as `--limit INT`."""
    if isinstance(parameter, TyperArgument):
        label = str(parameter.metavar or parameter.name).upper()
        is_bare = not parameter.required and not label.startswith("[")
        return f"[{label}]" if is_bare else label
    names = ", ".join(sorted(parameter.opts, key=len, reverse=True))
    if parameter.is_flag:
        return names
    return f"{names} {value_text(parameter)}"


def value_text(option: TyperOption) -> str:
    """What stands behind an option: its choices, or a word for its kind of value."""
    if option.metavar:
        return option.metavar
    annotation = option.type_descriptor.annotation
    if get_origin(annotation) is Literal:
        # A comma, since an upright line would end the cell of the table.
        return "{" + ",".join(map(str, get_args(annotation))) + "}"
    name = getattr(annotation, "__name__", "value")
    return "TEXT" if name == "str" else name.upper()


def default_text(parameter: Parameter) -> str:
    """The default as the help shows it; empty for none and for flags."""
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    is_flag = isinstance(parameter, TyperOption) and parameter.is_flag
    if parameter.default is None or is_flag or not parameter.show_default:
        return ""
    return f"`{parameter.default}`"


def link_documents(text: str) -> str:
    """The text with the names of documents as links from docs/reference/cli."""
    return DOCUMENT.sub(r"[docs/\1.md](../../\1.md)", text)
