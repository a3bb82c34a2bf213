"""The optimizer: AdamW, with Muon for weight matrices if wanted.

Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon) replaces the update of a matrix by the nearest
orthogonal matrix, so that rare directions of a gradient are learned as fast as frequent ones. Models with random
weights learn in fewer steps with it; embeddings, convolutions, norms and biases stay with AdamW, as its authors advise.

torch.optim.Muon computes in bfloat16, which takes longer on most CPUs than the rest of a step; this one uses float32,
treats matrices of one shape together, and is one optimizer for all parameters, so that checkpoints need no second one.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from maskwise.models.vlm.model import VlmModel
from maskwise.training.vlm.config import Optimization, Stage
from maskwise.training.vlm.freezing import parameter_groups

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the Newton-Schulz iteration, as published."""

ITERATIONS = 5
"""Of Newton-Schulz, as published: singular values are then within .7 to 1.2, which is near enough."""

MOMENTUM = 0.95
"""As published."""

MIN_NORM = 1e-7
"""A gradient of zero stays zero."""


def make_optimizer(
    model: VlmModel, stage: Stage, optimization: Optimization
) -> torch.optim.AdamW:
    """The optimizer of the parameters that a stage trains."""
    rate = optimization.learning_rate
    matrix_rate = optimization.matrix_rate
    groups = parameter_groups(model, rate, stage.rate_factors)
    if matrix_rate is not None:
        matrices = find_matrices(model)
        split_groups = []
        for group in groups:
            split_groups += _split(group, matrices, matrix_rate / rate)
        groups = split_groups
    optimizer_class = torch.optim.AdamW if matrix_rate is None else Muon
    return optimizer_class(
        groups,
        betas=optimization.betas,
        weight_decay=optimization.weight_decay,
        foreach=False,
    )


def find_matrices(model: VlmModel) -> set[torch.Tensor]:
    """The weights of linear layers, without that of the language model's output and those of one row."""
    output = model.vision_language.model.get_output_embeddings()
    layers = [
        module
        for module in model.modules()
        if isinstance(module, nn.Linear) and module is not output
    ]
    return {layer.weight for layer in layers if min(layer.weight.shape) > 1}


def _split(
    group: dict[str, Any], matrices: set[torch.Tensor], factor: float
) -> list[dict[str, Any]]:
    """A parameter group as two: matrices with another learning rate, and the rest."""
    own = [parameter for parameter in group["params"] if parameter in matrices]
    rest = [parameter for parameter in group["params"] if parameter not in matrices]
    parts = [
        {"params": own, "lr": group["lr"] * factor, "matrices": True},
        group | {"params": rest},
    ]
    return [part for part in parts if part["params"]]


class Muon(torch.optim.AdamW):
    """AdamW that treats parameter groups with `matrices` by Muon."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One update of all parameters."""
        for group in self.param_groups:
            if group.get("matrices"):
                self._step_matrices(group)
        loss: float | None = super().step(closure)
        return loss

    def _step_matrices(self, group: dict[str, Any]) -> None:
        shapes: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
        for parameter in group["params"]:
            if parameter.grad is not None:
                shapes[parameter.shape].append(parameter)
        for (rows, columns), parameters in shapes.items():
            gradients = [self._direction(parameter) for parameter in parameters]
            directions = orthogonalize(torch.stack(gradients))
            # Tall matrices get larger steps, so that the size of their outputs changes as much, as published.
            rate = group["lr"] * max(1, rows / columns) ** 0.5
            decay = 1 - group["lr"] * group["weight_decay"]
            for parameter, direction in zip(parameters, directions):
                parameter.mul_(decay).sub_(direction, alpha=rate)
                # AdamW passes over parameters without a gradient.
                parameter.grad = None

    def _direction(self, parameter: nn.Parameter) -> torch.Tensor:
        """The gradient with Nesterov momentum."""
        state = self.state[parameter]
        gradient = parameter.grad
        assert gradient is not None
        if "momentum" not in state:
            # AdamW expects the number of steps in every state that it loads.
            state.update(step=torch.zeros(()), momentum=torch.zeros_like(parameter))
        state["step"] += 1
        momentum: torch.Tensor = state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        return gradient.lerp(momentum, MOMENTUM)


def orthogonalize(matrices: torch.Tensor) -> torch.Tensor:
    """Matrices [n, rows, columns] with singular values near 1 and their singular vectors unchanged."""
    tall = matrices.shape[1] > matrices.shape[2]
    wide = matrices.float().mT if tall else matrices.float()
    norms = wide.norm(dim=(1, 2), keepdim=True)
    wide = wide / norms.clamp(min=MIN_NORM)
    first, second, third = COEFFICIENTS
    for _ in range(ITERATIONS):
        # The smaller of the two products: rows are at most as many as columns.
        gram = wide @ wide.mT
        wide = first * wide + (second * gram + third * gram @ gram) @ wide
    orthogonal: torch.Tensor = wide.mT if tall else wide
    return orthogonal
