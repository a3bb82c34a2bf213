"""Run-length masks, columnar: algebra, areas, boundaries and conversions without decoding.

`Masks` is a batch (what kernels work on), `Mask` its element (what records hold).
"""

from maskwise.masks.batch import Masks
from maskwise.masks.convert import as_mask, as_masks
from maskwise.masks.integers import MAX_PIXELS
from maskwise.masks.kernel import kernel_name
from maskwise.masks.mask import Mask
from maskwise.masks.measure import (
    PairAreas,
    boundary_areas,
    boundary_iou,
    boundary_width,
    iou,
    pair_areas,
    pairwise_boundary_iou,
    pairwise_intersection,
    pairwise_iou,
)

__all__ = [
    "MAX_PIXELS",
    "Mask",
    "Masks",
    "PairAreas",
    "as_mask",
    "as_masks",
    "boundary_areas",
    "boundary_iou",
    "boundary_width",
    "iou",
    "kernel_name",
    "pair_areas",
    "pairwise_boundary_iou",
    "pairwise_intersection",
    "pairwise_iou",
]
