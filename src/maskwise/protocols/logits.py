"""Logits to masks: where the official codes cut, and what they count of logits they forgot to cut."""

import numpy as np
from numpy.typing import NDArray

from maskwise.errors import MaskError
from maskwise.masks import Masks
from maskwise.protocols.metrics import Int64s


def cut_logits(planes: NDArray[np.floating], *, zero_inside: bool = False) -> tuple[Masks, Int64s]:
    """Masks of logits (n, height, width) above 0, or from 0 on if `zero_inside` (GSVA), and int64 [n, 3] counts.

    The counts are pixels equal to 0, in [0, 0.5) and in [0.5, 1]: the bins of torch.histc(bins=2, min=0, max=1) that
    MUSE's raw-logit quirk is made of.
    """
    if planes.ndim != 3 or not np.issubdtype(planes.dtype, np.floating):
        raise MaskError(f"logits must be floats (n, height, width), got {planes.dtype} {planes.shape}")
    if np.isnan(planes).any():
        raise MaskError("logits hold NaN", int(np.isnan(planes).any((1, 2)).argmax()))
    inside = planes >= 0 if zero_inside else planes > 0
    bins = (planes == 0, (planes >= 0) & (planes < 0.5), (planes >= 0.5) & (planes <= 1))
    return Masks.from_dense(inside), np.stack([pixels.sum((1, 2)) for pixels in bins], 1).astype(np.int64)
