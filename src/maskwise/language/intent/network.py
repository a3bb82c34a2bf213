"""The network that reads a question in word order: convolutions and self-attention over words, in numpy.

Per word it tells how likely the word belongs to a cue of each kind; per question, the log odds of amodal.
`training/intent/torch_network.py` is the same network in torch.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maskwise.arrays import Float32Array, Int64Array

HEADS = 4
"""Attention heads of every layer."""

KERNEL = 5
"""Words that a convolution sees at once: two on either side."""

EPSILON = 1e-5
"""Added to the variance by layer normalization, as in torch."""


class EncodedWords(NamedTuple):
    """Rows of the embedding tables for each word of a question: int64 [words] each; row 0 stands for an unknown word.

    vectors: of the vectors distilled from MiniLM. learnt: of the words frequent in training. concepts: of the lexicon.
    """

    vectors: Int64Array
    learnt: Int64Array
    concepts: Int64Array


class NetworkReading(NamedTuple):
    """log_odds: of amodal, not yet calibrated.

    cues: float32 [words, 1 + kinds]; each row sums to 1, and column 0 is no cue.
    """

    log_odds: float
    cues: Float32Array


class CueNetwork:
    """weights: float32 arrays by the names of the torch network."""

    def __init__(self, weights: Mapping[str, Float32Array]) -> None:
        self.weights = weights
        self.convolutions = _count_layers(weights, "convolutions.{}.weight")
        self.layers = _count_layers(weights, "layers.{}.norm1.weight")

    def read(self, words: EncodedWords) -> NetworkReading:
        """The reading of one question, which has at least one word."""
        weights = self.weights
        vectors = weights["vectors.weight"][words.vectors]
        states = self._linear(vectors, "projection")
        states = states + weights["learnt.weight"][words.learnt]
        states = states + weights["concepts.weight"][words.concepts]
        states = self._normalize(states, "input_norm")
        for index in range(self.convolutions):
            states = states + self._convolve(states, index)
        states = states + weights["places.weight"][: len(states)]
        for index in range(self.layers):
            states = self._attend(states, f"layers.{index}")
        states = self._normalize(states, "output_norm")
        pooled = np.concatenate([states.mean(axis=0), states.max(axis=0)])
        log_odds = self._linear(pooled, "mask_type")
        cues = _softmax(self._linear(states, "cues"))
        return NetworkReading(float(log_odds[0]), cues)

    def _linear(self, values: Float32Array, name: str) -> Float32Array:
        return values @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _normalize(self, values: Float32Array, name: str) -> Float32Array:
        centered = values - values.mean(axis=-1, keepdims=True)
        variance = np.square(centered).mean(axis=-1, keepdims=True)
        normalized = centered / np.sqrt(variance + np.float32(EPSILON))
        scaled: Float32Array = normalized * self.weights[f"{name}.weight"]
        return scaled + self.weights[f"{name}.bias"]

    def _convolve(self, states: Float32Array, index: int) -> Float32Array:
        """A gated convolution: one half of its outputs, times the sigmoid of the other."""
        normalized = self._normalize(states, f"convolution_norms.{index}")
        margin = KERNEL // 2
        padded = np.pad(normalized, ((margin, margin), (0, 0)))
        # [words, channels, KERNEL], like the weights [outputs, channels, KERNEL].
        windows = np.lib.stride_tricks.sliding_window_view(padded, KERNEL, axis=0)
        kernel = self.weights[f"convolutions.{index}.weight"]
        flat_windows = windows.reshape(len(states), -1)
        flat_kernel = kernel.reshape(len(kernel), -1)
        outputs = flat_windows @ flat_kernel.T
        outputs = outputs + self.weights[f"convolutions.{index}.bias"]
        values, gates = np.split(outputs, 2, axis=-1)
        gated: Float32Array = values / (1 + np.exp(-gates))
        return gated

    def _attend(self, states: Float32Array, layer: str) -> Float32Array:
        """One layer of a transformer encoder, normalized before each of its two parts."""
        count, channels = states.shape
        normalized = self._normalize(states, f"{layer}.norm1")
        projections = normalized @ self.weights[f"{layer}.self_attn.in_proj_weight"].T
        projections = projections + self.weights[f"{layer}.self_attn.in_proj_bias"]
        # [queries, keys and values; heads; words; channels per head].
        by_head = projections.reshape(count, 3, HEADS, -1).transpose(1, 2, 0, 3)
        queries, keys, values = by_head
        similarity = queries @ keys.transpose(0, 2, 1)
        scale = np.float32(1 / math.sqrt(channels // HEADS))
        attention = _softmax((similarity * scale).astype(np.float32))
        attended = (attention @ values).transpose(1, 0, 2).reshape(count, channels)
        states = states + self._linear(attended, f"{layer}.self_attn.out_proj")
        normalized = self._normalize(states, f"{layer}.norm2")
        hidden = np.maximum(self._linear(normalized, f"{layer}.linear1"), 0)
        return states + self._linear(hidden, f"{layer}.linear2")


def _softmax(values: Float32Array) -> Float32Array:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    shares: Float32Array = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _count_layers(names: Mapping[str, object] | Sequence[str], pattern: str) -> int:
    """How many names match a pattern with the numbers 0, 1, 2, ..."""
    count = 0
    while pattern.format(count) in names:
        count += 1
    return count
