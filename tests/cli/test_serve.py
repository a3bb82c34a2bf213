"""`maskwise serve`: arguments are checked and passed on; the server itself is tested in tests/server."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("litestar")

import maskwise.server.serve
from maskwise.server.serve import ServeConfig
from tests.cli.commands import fail, run


@pytest.fixture
def configs(monkeypatch: pytest.MonkeyPatch) -> list[ServeConfig]:
    """What the server would be started with; it is ready at once and ends."""
    started: list[ServeConfig] = []

    def serve_model(config: ServeConfig, ready: Any) -> None:
        started.append(config)
        ready(config.model, f"http://{config.host}:{config.port}")

    monkeypatch.setattr(maskwise.server.serve, "serve_model", serve_model)
    monkeypatch.delenv("MASKWISE_TOKEN", raising=False)
    return started


def test_datasets_are_arguments_and_runs_are_options(
    configs: list[ServeConfig],
) -> None:
    result = run("serve", "world", "data/val", "--run", "a", "--run", "b")
    assert configs[0].datasets == (Path("world"), Path("data/val"))
    assert configs[0].runs == (Path("a"), Path("b"))
    assert configs[0].model == "tiny"
    assert "http://127.0.0.1:8000" in result.stderr
    assert result.stdout == ""


def test_nothing_has_to_be_given(configs: list[ServeConfig]) -> None:
    run("serve")
    assert configs[0].datasets == ()
    assert configs[0].runs == ()
    assert configs[0].token is None


def test_options_of_the_model_are_passed_on(configs: list[ServeConfig]) -> None:
    run("serve", "--model", "photo", "--model-option", "score=0.3", "--port", 0)
    assert configs[0].model == "photo"
    assert configs[0].options == {"score": 0.3}
    assert configs[0].port == 0


def test_the_token_comes_from_the_environment(
    configs: list[ServeConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWISE_TOKEN", "secret")
    result = run("serve")
    assert configs[0].token == "secret"
    assert "secret" not in result.output


@pytest.mark.parametrize("token", ["", " padded ", "naïve", "two\nlines"])
def test_a_token_that_no_header_can_carry_is_refused(
    token: str,
    configs: list[ServeConfig],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = fail(capsys, monkeypatch, "serve", "--token", token)
    assert "printable ASCII characters" in said
    assert not configs


def test_an_option_without_a_value_is_refused(
    configs: list[ServeConfig],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = fail(capsys, monkeypatch, "serve", "--model-option", "score")
    assert "score" in said
    assert not configs
