"""Lists of different lengths in one flat array: row i is values[offsets[i]:offsets[i + 1]]."""

from collections.abc import Sequence

import numpy as np

from maskwise.arrays import Int64Array


def counts_to_offsets(counts: Sequence[int] | Int64Array) -> Int64Array:
    """Where lists of these lengths begin and the last one ends, int64 [n + 1]."""
    return np.concatenate(
        [[0], np.cumsum(np.asarray(counts, np.int64), dtype=np.int64)]
    )


def flatten(offsets: Int64Array, order: Int64Array) -> Int64Array:
    """Positions of all regions when their samples are put in another order; samples may be left out.

    offsets: int64 [samples + 1]; order: int64, samples.
    """
    counts = np.diff(offsets)[order]
    starts = offsets[:-1][order]
    return np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(
        int(counts.sum())
    )
