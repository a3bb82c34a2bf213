"""Commands as a user gives them, for tests."""

import pytest
from typer.testing import CliRunner, Result

from maskwise.cli import main as cli


def run(*arguments: object) -> Result:
    """A command that ends well."""
    result = CliRunner().invoke(
        cli.app, [str(argument) for argument in arguments], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return result


def fail(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *arguments: object,
) -> str:
    """What is said by a command that ends badly."""
    monkeypatch.setattr("sys.argv", ["maskwise", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    return capsys.readouterr().err
