"""A control that does not read the question: what is salient in the image, by U2-Net (small).

    maskwise eval reasonseg_val --model bench.saliency:SaliencyControl --out runs/saliency

The weights are `u2netp.onnx` of `maskwise get`, or of the folder that MASKWISE_WEIGHTS names.
"""

from collections.abc import Sequence

import numpy as np
from PIL import Image

from maskwise.downloads.local_files import find_weights
from maskwise.masks import Mask
from maskwise.models.photo.saliency import SaliencyNetwork
from maskwise.schema import PredictedRegion, Prediction

INSIDE = 0.5
"""The least saliency of a pixel that is inside: the middle of the range. It was not tuned."""


class SaliencyControl:
    """One mask for every question about an image."""

    name = "saliency"

    def __init__(self) -> None:
        self.network = SaliencyNetwork(find_weights("u2netp.onnx"))

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question, in order; an image without a salient pixel gives a prediction without target."""
        saliency = Image.fromarray(self.network.predict(image))
        scaled = saliency.resize(image.size, Image.Resampling.BILINEAR)
        mask = Mask.from_dense(np.asarray(scaled) >= INSIDE)
        prediction = Prediction(no_target=True)
        if mask.area:
            region = PredictedRegion(visible=mask, amodal=mask)
            prediction = Prediction(mask_type="visible", regions=(region,))
        return [prediction] * len(questions)
