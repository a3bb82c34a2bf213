"""From an image to the detector's input."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.arrays import Float32Array, UInt8Array
from maskwise.models.tiny.spec import IMAGE_SIZE


def resize_image(image: Image.Image) -> UInt8Array:
    """uint8 [IMAGE_SIZE, IMAGE_SIZE, 3], RGB; the aspect ratio is not kept."""
    return np.asarray(
        image.convert("RGB").resize((IMAGE_SIZE, IMAGE_SIZE), Image.Resampling.BILINEAR)
    )


def to_network_input(pixels: NDArray[np.generic]) -> Float32Array:
    """float32 [1, 3, h, w] in 0..1 from [h, w, 3] in 0..255."""
    batch: Float32Array = np.ascontiguousarray(
        pixels.transpose(2, 0, 1)[None], np.float32
    )
    return batch / np.float32(255)
