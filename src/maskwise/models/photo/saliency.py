"""U2-Net (small): what stands out in an image (Qin et al. 2020). It does not read the question."""

from pathlib import Path

import numpy as np
from PIL import Image

from maskwise.arrays import Float32Array
from maskwise.models.onnx_session import open_session

INPUT_SIZE = 320
# Mean and standard deviation of ImageNet, as in the training of the network.
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


class SaliencyNetwork:
    """The network of an ONNX file."""

    def __init__(self, path: Path, *, threads: int | None = None) -> None:
        self.session = open_session(path, threads=threads, frugal=True)

    def predict(self, image: Image.Image) -> Float32Array:
        """float32 [INPUT_SIZE, INPUT_SIZE] in 0..1, of the whole image."""
        resized = image.resize((INPUT_SIZE, INPUT_SIZE), Image.Resampling.BILINEAR)
        pixels = np.asarray(resized, np.float32)
        brightest = max(1.0, float(pixels.max()))
        pixels = (pixels / brightest - MEAN) / STD
        input_name = self.session.get_inputs()[0].name
        outputs = self.session.run(None, {input_name: pixels.transpose(2, 0, 1)[None]})
        saliency: Float32Array = outputs[0][0, 0]
        lowest = float(saliency.min())
        highest = float(saliency.max())
        # As the authors do: the most salient pixel of every image gets 1. An image without any contrast stays at 0.
        return (saliency - lowest) / max(highest - lowest, 1e-6)
