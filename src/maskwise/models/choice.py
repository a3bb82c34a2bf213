"""The ear and the choice: which objects or parts of the image a question means."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from maskwise.models.descriptions import PAIR
from maskwise.models.words import MOST_WORDS, TRIPLE_BUCKETS, WORD_BUCKETS

WIDTH, HEADS = 128, 4


class Attention(nn.Module):
    """Multi-head attention from some rows to others, with a bias per head and pair added to the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = nn.Linear(WIDTH, WIDTH)
        self.tell = nn.Linear(WIDTH, 2 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, rows: Tensor, others: Tensor, bias: Tensor) -> Tensor:
        """rows: [b, r, WIDTH]; others: [b, o, WIDTH]; bias: [b, HEADS or 1, r or 1, o]."""
        b, r, o = rows.shape[0], rows.shape[1], others.shape[1]
        asked = self.ask(rows).reshape(b, r, HEADS, -1).transpose(1, 2)
        key, value = self.tell(others).reshape(b, o, 2, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = asked @ key.transpose(2, 3) * (WIDTH // HEADS) ** -0.5 + bias
        return self.out((scores.softmax(3) @ value).transpose(1, 2).reshape(b, r, WIDTH))


class Block(nn.Module):
    """Self-attention, attention to the words where given, and two linear layers, each beside the identity."""

    def __init__(self, *, hears: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3 if hears else 2))
        self.among = Attention()
        self.hear = Attention() if hears else None
        self.think = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(
        self, rows: Tensor, bias: Tensor, words: Tensor | None = None, silence: Tensor | None = None
    ) -> Tensor:
        x = self.norms[0](rows)
        rows = rows + self.among(x, x, bias)
        if self.hear is not None and words is not None and silence is not None:
            rows = rows + self.hear(self.norms[2](rows), words, silence)
        return rows + self.think(self.norms[1](rows))


class Chooser(nn.Module):
    """Words pass two blocks; objects, which know each other by `pair`, listen to them in three.

    Every word also says outright which kinds of things, and which parts of which category, it speaks of. Objects listen
    first to the words that speak of them, and what the words say of them is added up: a mug is meant by "mug" long
    before the blocks have learnt to compare.
    """

    def __init__(self, single: int, kinds: Sequence[int], parts: int) -> None:
        super().__init__()
        self.kinds, self.categories, self.parts = sum(kinds), kinds[0], parts
        self.word = nn.Embedding(WORD_BUCKETS, WIDTH, padding_idx=0)
        self.triple = nn.Embedding(TRIPLE_BUCKETS, WIDTH, padding_idx=0)
        self.place = nn.Parameter(torch.randn(MOST_WORDS, WIDTH) * 0.02)
        self.ear = nn.ModuleList(Block(hears=False) for _ in range(2))
        self.speaks = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, self.kinds + self.categories * parts + 2)
        )
        self.prick = nn.Parameter(torch.ones(HEADS))
        self.thing = nn.Sequential(nn.Linear(single, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.relation = nn.Sequential(nn.Linear(PAIR, 32), nn.GELU(), nn.Linear(32, 3 * HEADS))
        self.choose = nn.ModuleList(Block(hears=True) for _ in range(3))
        self.last = nn.LayerNorm(WIDTH)
        self.meant = nn.Linear(WIDTH, 1 + parts)
        nn.init.normal_(self.word.weight, std=0.3)
        nn.init.normal_(self.triple.weight, std=0.3)

    def forward(self, words: Tensor, single: Tensor, pair: Tensor, present: Tensor) -> Tensor:
        """Logits [q, n, 1 + parts] of what is meant, the whole object first.

        words: int64 [q, l, 1 + triples]; single: [q, n, d]; pair: [q, n, n, PAIR]; present: [q, n], 1 or 0.
        """
        heard = (words[:, :, 0] > 0).float()
        silence = ((1 - heard) * -1e4)[:, None, None]
        x = (
            self.word(words[:, :, 0])
            + self.triple(words[:, :, 1:]).mean(2) * 2
            + self.place[: words.shape[1]]
        )
        for block in self.ear:
            x = block(x, silence)
        spoken, outright = self._speak(x, heard, single)
        hearing = silence + self.prick[None, :, None, None] * spoken[:, None]
        things = self.thing(single)
        absent = ((1 - present.float()) * -1e4)[:, None, None]
        relations = self.relation(pair).permute(0, 3, 1, 2).chunk(3, 1)
        for block, relation in zip(self.choose, relations):
            things = block(things, relation + absent, x, hearing)
        meant: Tensor = self.meant(self.last(things)) + outright
        return meant

    def _speak(self, x: Tensor, heard: Tensor, single: Tensor) -> tuple[Tensor, Tensor]:
        """How much each word speaks of each object [q, n, l]; what all say of it and its parts [q, n, 1 + parts]."""
        q, length, n = x.shape[0], x.shape[1], single.shape[1]
        said, parts, weight = self.speaks(x).split([self.kinds, self.categories * self.parts, 2], 2)
        weight = weight.sigmoid() * heard[:, :, None]
        spoken = single[:, :, : self.kinds] @ said.transpose(1, 2)
        # A word speaks of part k of category c: for an object, of its part k as far as it is a c.
        parts = parts.reshape(q, length, self.categories, self.parts).permute(0, 2, 3, 1)
        of_parts = single[:, :, : self.categories] @ parts.reshape(q, self.categories, self.parts * length)
        of_parts = of_parts.reshape(q, n, self.parts, length)
        whole = spoken @ weight[:, :, :1]
        return spoken, torch.cat([whole, (of_parts * weight[:, None, None, :, 1]).sum(3)], 2)
