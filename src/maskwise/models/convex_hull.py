"""The convex hull of a mask, filled."""

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from maskwise.arrays import BoolArray


def fill_hull(mask: BoolArray) -> BoolArray:
    """The pixels whose centers lie in the convex hull of a mask's pixel centers; the mask itself if it is a line."""
    points = np.argwhere(mask)
    try:
        equations = ConvexHull(points).equations
    except (QhullError, ValueError):
        return mask
    rows, columns = np.indices(mask.shape)
    inside = [a * rows + b * columns + c <= 1e-9 for a, b, c in equations]
    hull: BoolArray = np.all(inside, 0)
    return hull
