"""The network of `language/intent/network.py` in torch, for training."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from maskwise.language.intent.cues import KINDS
from maskwise.language.intent.network import HEADS, KERNEL
from maskwise.language.intent.words import MAX_WORDS

CHANNELS = 96
CONVOLUTIONS = 2
LAYERS = 2
"""Larger networks are no better on the set for choosing, and the file has to stay small."""

DROPOUT = 0.2


class TorchCueNetwork(nn.Module):
    """vectors: float32 [rows, dimensions], fixed. learnt_rows, concept_rows: sizes of the trained tables."""

    def __init__(self, vectors: Tensor, learnt_rows: int, concept_rows: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(*vectors.shape)
        self.vectors.weight = nn.Parameter(vectors, requires_grad=False)
        self.projection = nn.Linear(vectors.shape[1], CHANNELS)
        self.learnt = nn.Embedding(learnt_rows, CHANNELS)
        self.concepts = nn.Embedding(concept_rows, CHANNELS)
        self.places = nn.Embedding(MAX_WORDS, CHANNELS)
        # Small at first, so that the vectors speak until there is something to add.
        nn.init.normal_(self.learnt.weight, std=0.05)
        nn.init.normal_(self.concepts.weight, std=0.3)
        nn.init.normal_(self.places.weight, std=0.1)
        self.input_norm = nn.LayerNorm(CHANNELS)
        self.dropout = nn.Dropout(DROPOUT)
        self.convolutions = nn.ModuleList()
        self.convolution_norms = nn.ModuleList()
        for _ in range(CONVOLUTIONS):
            convolution = nn.Conv1d(CHANNELS, 2 * CHANNELS, KERNEL, padding=KERNEL // 2)
            self.convolutions.append(convolution)
            self.convolution_norms.append(nn.LayerNorm(CHANNELS))
        self.layers = nn.ModuleList()
        for _ in range(LAYERS):
            layer = nn.TransformerEncoderLayer(
                CHANNELS,
                HEADS,
                2 * CHANNELS,
                DROPOUT,
                batch_first=True,
                norm_first=True,
            )
            self.layers.append(layer)
        self.output_norm = nn.LayerNorm(CHANNELS)
        self.cues = nn.Linear(CHANNELS, 1 + len(KINDS))
        self.mask_type = nn.Linear(2 * CHANNELS, 1)
        # Only for training: the kind of the whole question's cue.
        self.kind = nn.Linear(2 * CHANNELS, 1 + len(KINDS))

    def forward(self, rows: Tensor, present: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log odds of amodal [batch], logits of the kind [batch, 1 + kinds] and of each word [batch, words, 1 + kinds].

        rows: int64 [3, batch, words], of vectors, learnt words and concepts. present: float [batch, words], 0 for
        padding.
        """
        mask = present[..., None]
        vectors, learnt, concepts = rows
        states = self.projection(self.vectors(vectors))
        states = states + self.learnt(learnt) + self.concepts(concepts)
        states = self.dropout(self.input_norm(states)) * mask
        for convolution, norm in zip(self.convolutions, self.convolution_norms):
            normalized = norm(states) * mask
            outputs = convolution(normalized.transpose(1, 2))
            gated = functional.glu(outputs, dim=1).transpose(1, 2)
            states = (states + self.dropout(gated)) * mask
        states = states + self.places.weight[: states.shape[1]]
        for layer in self.layers:
            states = layer(states, src_key_padding_mask=present == 0)
        states = self.output_norm(states)
        mean = (states * mask).sum(1) / mask.sum(1)
        # Padding must not be the largest.
        largest = (states - 1e4 * (1 - mask)).amax(1)
        pooled = torch.cat([mean, largest], dim=1)
        return self.mask_type(pooled)[:, 0], self.kind(pooled), self.cues(states)
