"""The bundled predictor."""

import functools
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.models.intent import hash_classifier
from maskwise.models.tiny.detections import DetectedObjects, no_objects
from maskwise.models.tiny.encoded_image import EncodedImage
from maskwise.models.tiny.networks import Networks, OnnxNetworks
from maskwise.models.tiny.postprocess import assemble_objects, decode_boxes, expand_boxes
from maskwise.models.tiny.preprocess import resize_image, to_network_input
from maskwise.models.tiny.spec import IMAGE_SIZE
from maskwise.schema import Prediction

BUNDLED_WEIGHTS = Path(str(files("maskwise.models.tiny") / "weights"))


class Tiny:
    """A predictor made of three networks: detector, RoI head and grounder."""

    name = "tiny"

    def __init__(self, networks: Networks) -> None:
        self.networks = networks
        own: str | None = getattr(networks, "hash", None)
        # The mask type is decided by a classifier with weights of its own, which belong to the model.
        self.weights_hash = own and hashlib.sha256(f"{own} {hash_classifier()}".encode()).hexdigest()

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question, in order; `sample` is empty, for the caller to fill."""
        return self.encode(image).answer(questions)

    def encode(self, image: Image.Image) -> EncodedImage:
        """Detect the objects of an image of any size; questions about it are then cheap."""
        return EncodedImage(self.networks, self.detect(resize_image(image)), image.size)

    def detect(self, pixels: NDArray[np.generic]) -> DetectedObjects:
        """The objects in pixels [IMAGE_SIZE, IMAGE_SIZE, 3] of 0..255."""
        maps = self.networks.detect(to_network_input(pixels))
        boxes = decode_boxes(maps.heatmap[0, 0], maps.box[0], IMAGE_SIZE)
        if not len(boxes):
            return no_objects()
        boxes = expand_boxes(boxes)
        rois = self.networks.predict_rois(maps.fine, maps.coarse, boxes / np.float32(IMAGE_SIZE))
        return assemble_objects(rois, boxes, IMAGE_SIZE)


@functools.cache
def load(folder: str | None = None) -> Tiny:
    """The bundled model, or one whose ONNX files `maskwise train` or `maskwise export` wrote to a folder."""
    return Tiny(OnnxNetworks(BUNDLED_WEIGHTS if folder is None else Path(folder)))
