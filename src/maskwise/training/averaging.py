"""Averaged weights: the exponential moving average (EMA) of a network's weights over its steps."""

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

WARMUP_UPDATES = 9
"""The decay after n updates is at most n / (n + 9), .1 at first: the initial weights do not dominate short runs."""


def average_weights(network: nn.Module, decay: float) -> AveragedModel:
    """The average of a network's weights, to be updated after every step; integer buffers are copied.

    The decay rises from 0.1 to `decay` over the first updates.
    """

    def update(average: Tensor, current: Tensor, updates: Tensor | int) -> Tensor:
        if not average.dtype.is_floating_point:
            return current
        number = int(updates)
        keep = min(decay, number / (number + WARMUP_UPDATES))
        return torch.lerp(average, current, 1 - keep)

    averaged = AveragedModel(network, avg_fn=update, use_buffers=True)
    set_updates(averaged, 0)
    return averaged


def set_updates(averaged: AveragedModel, updates: int) -> None:
    """Set how many updates an average has had; torch does not store this with the weights."""
    # Counted from 1: at 0 torch would copy the network instead of averaging.
    averaged.n_averaged.fill_(updates + 1)
