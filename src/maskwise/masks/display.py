"""Masks as small images, for notebooks."""

import io

import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray


def plane_to_png(plane: BoolArray) -> bytes:
    """A PNG of a plane (height, width), white on black; a plane without pixels is shown as one black pixel."""
    shown = plane if plane.size else np.zeros((1, 1), np.bool_)
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(shown)).save(out, "PNG")
    return out.getvalue()
