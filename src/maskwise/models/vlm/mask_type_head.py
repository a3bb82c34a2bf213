"""Mask-type head: which of the two segmentation tokens the words of a question ask for.

A convolution over the word embeddings of the question and the largest response of each filter (Kim, "Convolutional
Neural Networks for Sentence Classification", EMNLP 2014). A short phrase such as "even the hidden part" decides the
mask type wherever it stands, and a small language model from random weights learns that slowly (docs/results/vlm.md).
The head shifts the choice between the two tokens; whether a token is written at all stays with the language model.
"""

import torch
from torch import nn
from torch.nn import functional

WORDS = 3
"""Neighbouring tokens that a filter sees."""


class MaskTypeHead(nn.Module):
    """Questions to the log-odds of the amodal token against the visible one, which are added to the model's own.

    `corrections`: added to the language model's embeddings. With them the head can be trained alone.
    """

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.filters = nn.Conv1d(width, width, WORDS, padding=WORDS // 2)
        self.score = nn.Linear(width, 1)
        self.corrections = nn.Parameter(torch.zeros(vocabulary, width))

    def forward(
        self, input_ids: torch.Tensor, embeddings: torch.Tensor, asked: torch.Tensor
    ) -> torch.Tensor:
        """Log-odds [q]. embeddings: of input_ids, [q, tokens, width]. asked: bool [q, tokens], the question's words."""
        words = embeddings + functional.embedding(input_ids, self.corrections)
        words = functional.layer_norm(words, words.shape[-1:]) * asked.unsqueeze(-1)
        responses = functional.relu(self.filters(words.transpose(1, 2)))
        largest = (responses * asked.unsqueeze(1)).amax(2)
        log_odds: torch.Tensor = self.score(largest)[:, 0]
        return log_odds


def shift_mask_type(
    logits: torch.Tensor, log_odds: torch.Tensor, seg_token_ids: tuple[int, ...]
) -> torch.Tensor:
    """Logits [n, vocabulary] with probability moved between the two segmentation tokens; their sum stays."""
    ids = torch.tensor(seg_token_ids, device=logits.device)
    pair = logits[:, ids]
    shifted = pair + torch.stack([-log_odds, log_odds], 1) / 2
    shifted = shifted + (pair.logsumexp(1) - shifted.logsumexp(1)).unsqueeze(1)
    return logits.index_copy(1, ids, shifted)
