"""The grounder: a small transformer that selects the objects and parts a question means."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    MAX_PARTS,
    MAX_TOKENS,
    PAIRWISE_FEATURES,
    TRIGRAM_BUCKETS,
    UNARY_FEATURES,
    WORD_BUCKETS,
)

WIDTH = 128
HEADS = 4
MASKED = -1e4
"""Attention bias of padding: zero after the softmax, and finite also in half precision."""

EMBEDDING_STD = 0.3
"""Of the first word and trigram embeddings: torch's 1 would hide the positions, whose scale is .02."""


class Attention(nn.Module):
    """Multi-head attention with an additive bias per head and pair."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, WIDTH)
        self.kv_proj = nn.Linear(WIDTH, 2 * WIDTH)
        self.out_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, queries: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
        """queries: [b, n, WIDTH]; keys: [b, m, WIDTH]; bias: [b, HEADS or 1, n or 1, m], MASKED at padding."""
        b = queries.shape[0]
        n = queries.shape[1]
        m = keys.shape[1]
        q = self.q_proj(queries).reshape(b, n, HEADS, -1).transpose(1, 2)
        k, v = (
            self.kv_proj(keys)
            .reshape(b, m, 2, HEADS, -1)
            .permute(2, 0, 3, 1, 4)
            .unbind(0)
        )
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        out: Tensor = self.out_proj(attended.transpose(1, 2).reshape(b, n, WIDTH))
        return out


class TransformerBlock(nn.Module):
    """Self-attention, cross-attention to the tokens (where `cross`), and a feed-forward network; pre-norm residuals."""

    def __init__(self, *, cross: bool) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(WIDTH)
        self.feed_forward_norm = nn.LayerNorm(WIDTH)
        self.self_attention = Attention()
        self.cross_norm = nn.LayerNorm(WIDTH) if cross else None
        self.cross_attention = Attention() if cross else None
        self.feed_forward = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(
        self,
        x: Tensor,
        bias: Tensor,
        tokens: Tensor | None = None,
        token_bias: Tensor | None = None,
    ) -> Tensor:
        """x: [b, n, WIDTH]; tokens: [b, m, WIDTH]; biases as in Attention."""
        normed = self.self_norm(x)
        x = x + self.self_attention(normed, normed, bias)
        if self.cross_attention is not None and self.cross_norm is not None:
            x = x + self.cross_attention(self.cross_norm(x), tokens, token_bias)
        out: Tensor = x + self.feed_forward(self.feed_forward_norm(x))
        return out


class Grounder(nn.Module):
    """A text encoder of two blocks, and an object decoder of three blocks with cross-attention to the tokens.

    A token head classifies every token: which categories, colors and materials, and which parts of which category it
    mentions. Its outputs, multiplied with the attributes of each object, bias the cross-attention towards the tokens
    that mention the object, and are added to the logits. Without this the loss stays on a plateau for a long time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.attributes = sum(ATTRIBUTE_SIZES)
        self.categories = ATTRIBUTE_SIZES[0]
        self.word_embedding = nn.Embedding(WORD_BUCKETS, WIDTH, padding_idx=0)
        self.trigram_embedding = nn.Embedding(TRIGRAM_BUCKETS, WIDTH, padding_idx=0)
        self.position_embedding = nn.Parameter(torch.randn(MAX_TOKENS, WIDTH) * 0.02)
        self.text_encoder = nn.ModuleList(
            TransformerBlock(cross=False) for _ in range(2)
        )
        self.token_head = nn.Sequential(
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, self.attributes + self.categories * MAX_PARTS + 2),
        )
        self.mention_scale = nn.Parameter(torch.ones(HEADS))
        self.object_encoder = nn.Sequential(
            nn.Linear(UNARY_FEATURES, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        self.pair_bias = nn.Sequential(
            nn.Linear(PAIRWISE_FEATURES, 32), nn.GELU(), nn.Linear(32, 3 * HEADS)
        )
        self.object_decoder = nn.ModuleList(
            TransformerBlock(cross=True) for _ in range(3)
        )
        self.final_norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, 1 + MAX_PARTS)
        nn.init.normal_(self.word_embedding.weight, std=EMBEDDING_STD)
        nn.init.normal_(self.trigram_embedding.weight, std=EMBEDDING_STD)

    def forward(
        self, tokens: Tensor, unary: Tensor, pairwise: Tensor, padding_mask: Tensor
    ) -> Tensor:
        """Logits [q, n, 1 + MAX_PARTS] of the targets, the whole object first.

        tokens: int64 [q, length, 1 + MAX_TRIGRAMS], 0 at padding. unary: [q, n, UNARY_FEATURES]. pairwise: [q, n, n,
        PAIRWISE_FEATURES]. padding_mask: [q, n], 1 where a row is padding and not an object, else 0.
        """
        token_padding = (tokens[:, :, 0] == 0).float()
        padding_bias = (token_padding * MASKED)[:, None, None]
        words = self.word_embedding(tokens[:, :, 0])
        # Twice the mean: most tokens have few trigrams, and padding counts in the mean.
        trigrams = self.trigram_embedding(tokens[:, :, 1:]).mean(2) * 2
        x = words + trigrams + self.position_embedding[: tokens.shape[1]]
        for block in self.text_encoder:
            x = block(x, padding_bias)
        mentions, mention_logits = self._mentions(x, token_padding, unary)
        token_bias = (
            padding_bias + self.mention_scale[None, :, None, None] * mentions[:, None]
        )
        objects = self.object_encoder(unary)
        object_bias = (padding_mask.float() * MASKED)[:, None, None]
        pair_biases = self.pair_bias(pairwise).permute(0, 3, 1, 2).chunk(3, 1)
        for block, pair_bias in zip(self.object_decoder, pair_biases):
            objects = block(objects, pair_bias + object_bias, x, token_bias)
        logits: Tensor = self.output(self.final_norm(objects)) + mention_logits
        return logits

    def _mentions(
        self, x: Tensor, token_padding: Tensor, unary: Tensor
    ) -> tuple[Tensor, Tensor]:
        """How much each token mentions each object [q, n, length]; the sums over tokens for each object and its parts
        [q, n, 1 + MAX_PARTS].
        """
        q = x.shape[0]
        length = x.shape[1]
        n = unary.shape[1]
        attributes, parts, weight = self.token_head(x).split(
            [self.attributes, self.categories * MAX_PARTS, 2], 2
        )
        weight = weight.sigmoid() * (1 - token_padding)[:, :, None]
        mentions = unary[:, :, : self.attributes] @ attributes.transpose(1, 2)
        # A token mentions part k of category c: for an object, its part k, weighted by its probability of c.
        parts = parts.reshape(q, length, self.categories, MAX_PARTS).permute(0, 2, 3, 1)
        part_mentions = unary[:, :, : self.categories] @ parts.reshape(
            q, self.categories, MAX_PARTS * length
        )
        part_mentions = part_mentions.reshape(q, n, MAX_PARTS, length)
        whole = mentions @ weight[:, :, :1]
        part_weight = weight[:, None, None, :, 1]
        part_sums = (part_mentions * part_weight).sum(3)
        return mentions, torch.cat([whole, part_sums], 2)
