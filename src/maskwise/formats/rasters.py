"""Masks that a dataset keeps as PNG images: their grey values, unchanged."""

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.errors import MaskError
from maskwise.formats.layout import Size

MODES = ("1", "L", "P", "RGB", "RGBA", "LA")
"""8-bit images. Alpha is dropped and colours become grey, as cv2.imread does."""


def read_raster(path: Path, size: Size) -> NDArray[np.uint8]:
    """The grey values (height, width) of a PNG of the given size; MaskError where it is none, or of another size."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path, formats=("PNG",)) as image:
                if (image.height, image.width) != size:
                    raise MaskError(
                        f"a mask of {image.height, image.width} in an image of height and width {size}"
                    )
                if image.mode not in MODES:
                    raise MaskError(f"a mask of mode {image.mode}; known: {', '.join(MODES)}")
                grey = image if image.mode in ("1", "L") else image.convert("RGB")
                return np.asarray(grey.convert("L"))
    except MaskError:
        raise
    except FileNotFoundError:
        raise MaskError(f"no file {path.name}") from None
    except Exception as error:
        # Decoders meet hostile bytes with any exception at all; a user needs the file's name, not its kind.
        raise MaskError(f"{path.name} cannot be read: {error}") from error
