"""Which parameters a stage trains, by patterns of their names, and with which learning rate."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from maskwise.errors import ConfigError


def trained_names(model: nn.Module, patterns: Sequence[str]) -> list[str]:
    """The parameters that are trained when those whose name contains a match of a pattern are frozen.

    Parameters that are frozen already stay frozen: those of a model with adapters, and heads that no loss trains.
    """
    for pattern in patterns:
        if not any(re.search(pattern, name) for name, _ in model.named_parameters()):
            raise _no_match("freeze", pattern, model)
    trained = [
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
        and not any(re.search(pattern, name) for pattern in patterns)
    ]
    if not trained:
        raise ConfigError(
            f"freeze: the patterns {', '.join(map(repr, patterns))} freeze every parameter"
        )
    return trained


def freeze(model: nn.Module, patterns: Sequence[str]) -> None:
    """Freeze all parameters but `trained_names`."""
    trained = set(trained_names(model, patterns))
    for name, parameter in model.named_parameters():
        parameter.requires_grad = name in trained


def keep_float32(model: nn.Module, names: Collection[str]) -> None:
    """Keep parameters in float32, whatever the dtype of the model: updates are smaller than steps of bfloat16."""
    chosen = set(names)
    for name, parameter in model.named_parameters():
        if name in chosen:
            parameter.data = parameter.data.to(torch.float32)


def parameter_groups(
    model: nn.Module, learning_rate: float, factors: Mapping[str, float]
) -> list[dict[str, Any]]:
    """The trained parameters for an optimizer, grouped by the product of the factors whose pattern matches."""
    for pattern in factors:
        if not any(re.search(pattern, name) for name, _ in model.named_parameters()):
            raise _no_match("rate_factors", pattern, model)
    groups: dict[float, list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            factor = 1.0
            for pattern, value in factors.items():
                factor *= value if re.search(pattern, name) else 1.0
            groups.setdefault(factor, []).append(parameter)
    return [
        {"params": group, "lr": learning_rate * factor}
        for factor, group in groups.items()
    ]


def _no_match(key: str, pattern: str, model: nn.Module) -> ConfigError:
    modules = ", ".join(name for name, _ in model.named_children())
    return ConfigError(
        f"{key}: no parameter matches {pattern!r}; names begin with one of {modules}"
    )
