"""Output of `maskwise adapters`."""

import json

import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.registry import MODELS


def run(*arguments: str) -> str:
    return (
        CliRunner().invoke(app, ["adapters", *arguments], catch_exceptions=False).stdout
    )


def test_every_adapter_is_listed_with_its_license_and_call() -> None:
    listed = json.loads(run("--json"))
    assert list(listed) == ["sam3", "visionreasoner", "sa2va", "lisa", "m2sa"]
    assert all(
        one["license"] and one["install"] and one["call"] for one in listed.values()
    )
    text = run()
    assert all(name in text for name in listed)


@pytest.mark.parametrize("name", ["sam3", "visionreasoner", "sa2va"])
def test_a_model_of_the_registry_is_called_by_its_name(name: str) -> None:
    assert name in MODELS.built_in
    assert json.loads(run("--json"))[name]["call"].startswith(f"--model {name} ")
