"""Masks stored as image files: their grey values, unchanged."""

import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

from maskwise.arrays import UInt8Array
from maskwise.errors import MaskError
from maskwise.formats.file_layout import Size

MODES = ("1", "L", "P", "RGB", "RGBA", "LA")
"""8-bit images. Alpha is dropped and colors become grey, as cv2.imread does."""


def read_mask_image(image: Path | bytes, size: Size) -> UInt8Array:
    """The grey values (height, width) of a PNG, given by path or as bytes.

    MaskError if it is not a PNG or not of the given size (height, width).
    """
    name = image.name if isinstance(image, Path) else f"the PNG of {len(image)} bytes"
    source = io.BytesIO(image) if isinstance(image, bytes) else image
    try:
        with warnings.catch_warnings():
            # The size is compared before any pixel is decoded.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(source, formats=("PNG",)) as opened:
                if (opened.height, opened.width) != size:
                    raise MaskError(
                        f"a mask of {opened.height, opened.width} in an image of height and width {size}"
                    )
                if opened.mode not in MODES:
                    raise MaskError(
                        f"a mask of mode {opened.mode}; known: {', '.join(MODES)}"
                    )
                # Palette and alpha first become RGB: Pillow's direct conversion to
                # grey differs from that of cv2.imread.
                grey = opened if opened.mode in ("1", "L") else opened.convert("RGB")
                return np.asarray(grey.convert("L"))
    except MaskError:
        raise
    except FileNotFoundError:
        raise MaskError(f"no file {name}") from None
    except Exception as error:
        # Pillow raises many exception types for damaged files; a user needs the file's name, not the type.
        raise MaskError(f"{name} cannot be read: {error}") from error
