"""Flip averaging: the detector and its heads also see the image mirrored, and the two outputs are averaged.

    maskwise ask scene.png "the red mug" --model tiny --model-option flip=true

Masks and answers get a little better, and a first question takes nearly twice as long (docs/results/model.md).
"""

import numpy as np

from maskwise.arrays import Float32Array, Int64Array
from maskwise.models.tiny.features import ObjectFeatures
from maskwise.models.tiny.networks import DetectorMaps, Networks, RoIPredictions

HALVES = np.float32(2)
"""The mean of two arrays divides by it; as float32, so that the mean is one too."""


class FlipAveragedNetworks:
    """Networks whose feature maps hold two images: the given one and its mirror image."""

    def __init__(self, networks: Networks) -> None:
        self.networks = networks
        # The weights are the same, so the hash is; networks that are being trained have none.
        self.hash: str | None = getattr(networks, "hash", None)

    def detect(self, image: Float32Array) -> DetectorMaps:
        """See Networks; fine and coarse have two rows."""
        own = self.networks.detect(image)
        mirrored = self.networks.detect(np.ascontiguousarray(image[..., ::-1]))
        # What was the distance to the left side is that to the right side.
        box = mirrored.box[:, [2, 1, 0, 3], :, ::-1]
        return DetectorMaps(
            fine=np.concatenate([own.fine, mirrored.fine]),
            coarse=np.concatenate([own.coarse, mirrored.coarse]),
            heatmap=(own.heatmap + mirrored.heatmap[..., ::-1]) / HALVES,
            box=(own.box + box) / HALVES,
        )

    def predict_rois(
        self, fine: Float32Array, coarse: Float32Array, boxes: Float32Array
    ) -> RoIPredictions:
        """See Networks."""
        own = self.networks.predict_rois(fine[:1], coarse[:1], boxes)
        mirrored = self.networks.predict_rois(fine[1:], coarse[1:], mirror_boxes(boxes))
        back = mirror_predictions(mirrored)
        return RoIPredictions(*((a + b) / HALVES for a, b in zip(own, back)))

    def predict_masks(
        self,
        image: Float32Array,
        fine: Float32Array,
        coarse: Float32Array,
        *,
        boxes: Float32Array,
        rois: RoIPredictions,
    ) -> Float32Array:
        """See Networks."""
        own = self.networks.predict_masks(
            image, fine[:1], coarse[:1], boxes=boxes, rois=rois
        )
        mirrored = self.networks.predict_masks(
            np.ascontiguousarray(image[..., ::-1]),
            fine[1:],
            coarse[1:],
            boxes=mirror_boxes(boxes),
            rois=mirror_predictions(rois),
        )
        return (own + mirrored[..., ::-1]) / HALVES

    def ground(self, tokens: Int64Array, features: ObjectFeatures) -> Float32Array:
        """See Networks."""
        return self.networks.ground(tokens, features)


def mirror_boxes(boxes: Float32Array) -> Float32Array:
    """Boxes [k, 4], fractions of the image, in the mirrored image."""
    left, top, right, bottom = boxes.T
    return np.stack([1 - right, top, 1 - left, bottom], 1)


def mirror_predictions(rois: RoIPredictions) -> RoIPredictions:
    """Predictions for a mirrored image as predictions for the image, and the other way round."""
    return rois._replace(
        masks=np.ascontiguousarray(rois.masks[..., ::-1]),
        boxes=mirror_boxes(rois.boxes),
    )
