"""Commands that load on use: the placeholder in the list, and the command that runs."""

import sys
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup
from typer.testing import CliRunner

from maskwise.cli.lazy import HelpfulGroup, LazyCommand


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    """A program with one lazy command `greet` of a module that says when it is loaded."""
    (tmp_path / "greeting.py").write_text(
        "import typer\n"
        "def greet(name: str, *, loud: bool = typer.Option(False, '--loud', help='Shout.')) -> None:\n"
        "    '''Greet somebody.'''\n"
        "    print(f'HELLO {name}' if loud else f'hello {name}')\n"
        "several = typer.Typer()\n"
        "@several.command()\n"
        "def one() -> None:\n"
        "    '''The first.'''\n"
        "    print('one')\n"
        "@several.command()\n"
        "def two() -> None:\n"
        "    '''The second.'''\n"
        "    print('two')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "greeting", raising=False)

    class Program(HelpfulGroup):
        def __init__(self, **attributes: object) -> None:
            super().__init__(**attributes)  # type: ignore[arg-type]
            greet = LazyCommand("greet", "greeting:greet", "Greet", group="Words")
            several = LazyCommand(
                "several", "greeting:several", "Several", group="Words"
            )
            self.add_command(greet)
            self.add_command(several)

    program = typer.Typer(cls=Program, add_completion=False)

    @program.callback()
    def callback() -> None:
        """A program."""

    return program


def test_the_list_shows_the_summary_without_loading_the_module(
    app: typer.Typer,
) -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert "Words" in result.output
    assert "Greet" in result.output
    assert "greeting" not in sys.modules


def test_the_command_is_loaded_and_runs(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["greet", "ada", "--loud"])
    assert result.output == "HELLO ada\n"
    assert "greeting" in sys.modules


def test_the_help_of_the_command_is_its_own(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["greet", "--help"])
    assert "Greet somebody." in result.output
    assert "Shout." in result.output
    assert "<bool>" not in result.output


def test_a_typer_becomes_a_group(app: typer.Typer) -> None:
    assert CliRunner().invoke(app, ["several", "two"]).output == "two\n"
    command = LazyCommand("several", "greeting:several", "", group="").load()
    assert isinstance(command, TyperGroup)
    assert command.name == "several"
    single = LazyCommand("greet", "greeting:greet", "", group="").load()
    assert isinstance(single, TyperCommand)
    assert single.name == "greet"


def test_a_wrong_place_is_an_error_of_the_program(app: typer.Typer) -> None:
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        LazyCommand("lost", "nowhere:lost", "", group="").load()
    with pytest.raises(AttributeError, match="lost"):
        LazyCommand("lost", "greeting:lost", "", group="").load()
