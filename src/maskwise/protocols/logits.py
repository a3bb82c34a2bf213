"""Logits to masks: the thresholds of the official codes, and the counts of logits that MUSE does not threshold."""

import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import Int64Array
from maskwise.errors import MaskError
from maskwise.masks import Masks


def threshold_logits(
    logits: NDArray[np.floating], *, zero_inside: bool = False
) -> tuple[Masks, Int64Array]:
    """Masks of logits (n, height, width) above 0, or from 0 on if `zero_inside` (GSVA), and int64 [n, 3] counts.

    The counts are numbers of pixels equal to 0, in [0, 0.5) and in [0.5, 1]: the bins of torch.histc(bins=2, min=0,
    max=1), which MUSE's raw-logit quirk uses.
    """
    if logits.ndim != 3 or not np.issubdtype(logits.dtype, np.floating):
        raise MaskError(
            f"logits must be floats (n, height, width), got {logits.dtype} {logits.shape}"
        )
    if np.isnan(logits).any():
        raise MaskError("logits hold NaN", int(np.isnan(logits).any((1, 2)).argmax()))
    inside = logits >= 0 if zero_inside else logits > 0
    bins = (
        logits == 0,
        (logits >= 0) & (logits < 0.5),
        (logits >= 0.5) & (logits <= 1),
    )
    return Masks.from_dense(inside), np.stack(
        [pixels.sum((1, 2)) for pixels in bins], 1
    ).astype(np.int64)
