"""Which parameters a stage trains, and with which learning rate."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")

from torch import nn

from maskwise.errors import ConfigError
from maskwise.training.vlm.freezing import (
    freeze,
    keep_float32,
    parameter_groups,
    trained_names,
)


def network() -> nn.Module:
    parts = {"encoder": nn.Linear(1, 1), "decoder": nn.Linear(1, 1)}
    return nn.ModuleDict(parts).to(torch.bfloat16)


def test_parameters_that_match_a_pattern_are_frozen() -> None:
    assert trained_names(network(), ["^encoder"]) == ["decoder.weight", "decoder.bias"]
    assert trained_names(network(), ["bias", "^encoder"]) == ["decoder.weight"]
    assert len(trained_names(network(), [])) == 4


def test_trained_parameters_are_kept_in_float32() -> None:
    model = network()
    freeze(model, ["^encoder"])
    keep_float32(model, trained_names(model, ["^encoder"]))
    assert model["decoder"].weight.dtype == torch.float32
    assert model["decoder"].weight.requires_grad
    assert model["encoder"].weight.dtype == torch.bfloat16
    assert not model["encoder"].weight.requires_grad


def test_what_was_frozen_before_stays_frozen() -> None:
    model = network()
    model["decoder"].bias.requires_grad = False
    assert "decoder.bias" not in trained_names(model, ["^encoder"])


def test_learning_rates_are_multiplied_by_all_factors_that_match() -> None:
    groups = parameter_groups(network(), 2.0, {"^decoder": 0.5, "bias": 0.1})
    rates = sorted(group["lr"] for group in groups)
    assert rates == pytest.approx([0.1, 0.2, 1.0, 2.0])


def test_a_pattern_without_a_match_names_the_modules() -> None:
    message = "no parameter matches 'head'.*one of encoder, decoder"
    with pytest.raises(ConfigError, match=f"freeze: {message}"):
        trained_names(network(), ["head"])
    with pytest.raises(ConfigError, match=f"rate_factors: {message}"):
        parameter_groups(network(), 1.0, {"head": 0.5})
