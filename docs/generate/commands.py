"""The command table of the README: every command with the first line of its help, by group."""

from typer.core import TyperCommand, TyperGroup

from maskwise.cli.commands import list_commands


def command_table() -> str:
    """One row per command, below a row with the name of its group."""
    rows = ["| command | |", "|---|---|"]
    for group, commands in grouped_commands().items():
        rows.append(f"| **{group}** | |")
        for name, command in commands.items():
            rows.append(f"| `maskwise {name}` | {first_line(command)} |")
    return "\n".join(rows) + "\n"


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
