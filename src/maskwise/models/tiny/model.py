"""The bundled predictor."""

import functools
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.arrays import Float32Array
from maskwise.language.dialogue import continues_request
from maskwise.language.intent import classify_intent, hash_classifier
from maskwise.models.tiny.detections import DetectedObjects, no_objects
from maskwise.models.tiny.domain import WARNING, Domain, domain_features, read_domain
from maskwise.models.tiny.encoded_image import EncodedImage
from maskwise.models.tiny.flip import FlipAveragedNetworks
from maskwise.models.tiny.networks import DetectorMaps, Networks, OnnxNetworks
from maskwise.models.tiny.postprocess import (
    assemble_objects,
    decode_boxes,
    drop_duplicates,
    expand_boxes,
)
from maskwise.models.tiny.preprocess import resize_image, to_network_input
from maskwise.models.tiny.spec import IMAGE_SIZE
from maskwise.schema import Prediction, earlier_turns

BUNDLED_WEIGHTS = Path(str(files("maskwise.models.tiny") / "weights"))
DOMAIN_FILE = "domain.npz"


class Tiny:
    """A predictor made of three networks: detector, RoI head and grounder."""

    name = "tiny"

    def __init__(self, networks: Networks, domain: Domain | None = None) -> None:
        self.networks = networks
        self.domain = domain
        # Networks that are being trained have no hash: then the run records none.
        networks_hash: str | None = getattr(networks, "hash", None)
        self.weights_hash: str | None = None
        if networks_hash:
            # The mask type is decided by a classifier with weights of its own, which belong to the model.
            hashes = f"{networks_hash} {hash_classifier()}"
            self.weights_hash = hashlib.sha256(hashes.encode()).hexdigest()

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question, in order; `sample` is empty, for the caller to fill."""
        return self.encode(image).answer(questions)

    def encode(self, image: Image.Image) -> EncodedImage:
        """Detect the objects of an image of any size; questions about it are then cheap."""
        pixels = to_network_input(resize_image(image))
        maps = self.networks.detect(pixels)
        objects = self._detect(pixels, maps)
        return EncodedImage(
            self.networks, objects, image.size, in_domain=self._in_domain(maps)
        )

    def detect(self, pixels: NDArray[np.generic]) -> DetectedObjects:
        """The objects in pixels [IMAGE_SIZE, IMAGE_SIZE, 3] of 0..255."""
        image = to_network_input(pixels)
        return self._detect(image, self.networks.detect(image))

    def domain_warning(self, image: Image.Image) -> str | None:
        """A warning if the image is unlike the images that the model was trained on."""
        maps = self.networks.detect(to_network_input(resize_image(image)))
        return None if self._in_domain(maps) else WARNING

    def mask_type_probability(self, question: str) -> float | None:
        """The probability of the mask type that the model chooses for a question; None if an earlier turn decides."""
        if earlier_turns(question) and continues_request(question):
            return None
        return classify_intent([question])[0].probability

    def _in_domain(self, maps: DetectorMaps) -> bool:
        """True if the domain is not known."""
        if self.domain is None:
            return True
        distance = self.domain.distance(domain_features(maps))
        return distance <= self.domain.threshold

    def _detect(self, image: Float32Array, maps: DetectorMaps) -> DetectedObjects:
        boxes = decode_boxes(maps.heatmap[0, 0], maps.box[0], IMAGE_SIZE)
        if not len(boxes):
            return no_objects()
        boxes = expand_boxes(boxes)
        rois = self.networks.predict_rois(
            maps.fine, maps.coarse, boxes / np.float32(IMAGE_SIZE)
        )
        rois, boxes = drop_duplicates(rois, boxes, IMAGE_SIZE)
        masks = self.networks.predict_masks(
            image,
            maps.fine,
            maps.coarse,
            boxes=boxes / np.float32(IMAGE_SIZE),
            rois=rois,
        )
        return assemble_objects(rois, masks, IMAGE_SIZE)


@functools.cache
def load(folder: str | None = None, *, flip: bool = False) -> Tiny:
    """The bundled model, or one whose ONNX files `maskwise train` or `maskwise export` wrote to a folder.

    flip: average with the mirrored image, see flip.py.
    """
    weights = BUNDLED_WEIGHTS if folder is None else Path(folder)
    networks: Networks = OnnxNetworks(weights)
    if flip:
        networks = FlipAveragedNetworks(networks)
    return Tiny(networks, read_domain(weights / DOMAIN_FILE))
