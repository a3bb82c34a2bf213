"""Occlusion head: the occlusion rate of a target, and the amodal decoder's prompt conditioned on it.

After the Occlusion Condition Encoder of AURA, which maps the prompt of the visible decoder to that of the amodal one
and predicts the rate by Linear and Sigmoid. Layer sizes are not published; these are ours.
"""

import torch
from torch import nn


class OcclusionHead(nn.Module):
    """Prompts [n, k, width] to amodal prompts of the same shape and occlusion rates [n] in [0, 1]."""

    def __init__(self, width: int, vectors: int) -> None:
        super().__init__()
        self.condition = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, width),
        )
        self.rate = nn.Linear(vectors * width, 1)

    def forward(self, prompts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The amodal prompt and the occlusion rate."""
        amodal = prompts + self.condition(prompts)
        return amodal, torch.sigmoid(self.rate(amodal.flatten(1))).squeeze(1)


def unite_masks(visible: torch.Tensor, amodal: torch.Tensor) -> torch.Tensor:
    """Amodal logits that are positive wherever the visible logits are: the union of the two as independent events.

    p = 1 - (1 - p_visible)(1 - p_amodal). Its logit is log(e^v + e^a + e^(v+a)), which is at least max(v, a). The
    visible logits get no gradient, so that the amodal loss does not change the visible mask.
    """
    visible = visible.detach()
    return torch.logaddexp(torch.logaddexp(visible, amodal), visible + amodal)
