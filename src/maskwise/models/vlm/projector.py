"""Project the hidden state of a segmentation token to the prompt of a mask decoder."""

import torch
from torch import nn


class PromptProjector(nn.Module):
    """Linear, ReLU, Linear as in LISA, behind a LayerNorm; k vectors per token instead of one.

    states: [n, width]; prompts: [n, k, prompt_width].
    """

    def __init__(
        self, width: int, hidden: int, prompt_width: int, vectors: int
    ) -> None:
        super().__init__()
        self.vectors = vectors
        self.prompt_width = prompt_width
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(
            nn.Linear(width, hidden),
            nn.ReLU(),
            nn.Linear(hidden, vectors * prompt_width),
        )

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Prompts [n, k, prompt_width] of hidden states [n, width]."""
        projected: torch.Tensor = self.layers(self.norm(states))
        return projected.view(-1, self.vectors, self.prompt_width)
