"""Configs are decoded in one way: a message names the file, the place and the key."""

from pathlib import Path

import msgspec
import pytest

from maskwise.errors import ConfigError, UnknownNameError
from maskwise.training.config_file import open_dataset, read_toml, to_config


class Inner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    steps: int
    rate: float = 0.1


class Outer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    seed: int = 0
    inner: Inner | None = None
    named: dict[str, Inner] = {}
    listed: tuple[Inner, ...] = ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "sed = 1",
            "config.toml: unknown key 'sed'; known: inner, listed, named, seed. Did you mean 'seed'?",
        ),
        (
            "[inner]\nzzz = 1",
            "config.toml, inner: unknown key 'zzz'; known: rate, steps",
        ),
        (
            "[named.one]\nstep = 1",
            "config.toml, named.one: unknown key 'step'; known: rate, steps. Did you mean 'steps'?",
        ),
        (
            "[[listed]]\nsteps = 1\n[[listed]]\nstepps = 1",
            "config.toml, listed[1]: unknown key 'stepps'; known: rate, steps. Did you mean 'steps'?",
        ),
    ],
)
def test_an_unknown_key_is_named_with_its_place_and_the_known_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("config.toml")
    path.write_text(text)
    with pytest.raises(UnknownNameError) as caught:
        to_config(read_toml(path), Outer, path)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = 'one'", r"config\.toml: Expected `int`, got `str` - at `\$\.seed`"),
        (
            "inner = 3",
            r"config\.toml: Expected `object \| null`, got `int` - at `\$\.inner`",
        ),
        ("listed = {}", r"config\.toml: Expected `array`, got `object`"),
        ("seed = ", r"config\.toml: "),
    ],
)
def test_an_invalid_value_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        to_config(read_toml(path), Outer, path)


def test_a_table_is_named_by_its_place() -> None:
    with pytest.raises(
        UnknownNameError,
        match=r"^a\.toml, vlm\.nano: unknown key 'x'; known: rate, steps",
    ):
        to_config({"x": 1}, Inner, Path("a.toml"), table="vlm.nano")


def test_a_missing_dataset_is_named_with_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"nowhere does not exist.*`maskwise read` and `maskwise build`",
    ):
        open_dataset(str(tmp_path / "nowhere"))
