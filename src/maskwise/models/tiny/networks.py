"""The four networks of the model, as ONNX sessions."""

import hashlib
from pathlib import Path
from typing import NamedTuple, Protocol

from maskwise.arrays import Float32Array, Int64Array
from maskwise.errors import MaskwiseError
from maskwise.models.onnx_session import open_session
from maskwise.models.tiny.features import ObjectFeatures

NETWORKS = ("detector", "roi_head", "mask_head", "grounder")


class DetectorMaps(NamedTuple):
    """Output of the detector for one image, s its size. fine: [1, FINE_CHANNELS, s/2, s/2] and coarse:
    [1, COARSE_CHANNELS, s/4, s/4], feature maps. heatmap: [1, 1, s/4, s/4] in 0..1. box: [1, 4, s/4, s/4], distances
    from the cell's center to the left, top, right and bottom of the amodal box, in pixels.
    """

    fine: Float32Array
    coarse: Float32Array
    heatmap: Float32Array
    box: Float32Array


class RoIPredictions(NamedTuple):
    """Output of the RoI head for k boxes, all logits but the boxes. masks: [k, 2 + MAX_PARTS, ROI_MASK_SIZE,
    ROI_MASK_SIZE]: visible, amodal, then one channel per part. category, color, material: [k, classes]. boxes: [k, 4],
    corrected, as fractions of the image.
    """

    masks: Float32Array
    category: Float32Array
    color: Float32Array
    material: Float32Array
    boxes: Float32Array


class Networks(Protocol):
    """The four networks for one image, in any runtime."""

    def detect(self, image: Float32Array) -> DetectorMaps:
        """image: [1, 3, s, s] in 0..1."""

    def predict_rois(
        self, fine: Float32Array, coarse: Float32Array, boxes: Float32Array
    ) -> RoIPredictions:
        """boxes: [k, 4] left, top, right, bottom as fractions of the image; k is at least 1."""

    def predict_masks(
        self,
        image: Float32Array,
        fine: Float32Array,
        coarse: Float32Array,
        *,
        boxes: Float32Array,
        rois: RoIPredictions,
    ) -> Float32Array:
        """Final masks [k, 2 + MAX_PARTS, MASK_SIZE, MASK_SIZE] of all objects of an image, logits inside `rois.boxes`.

        image: as in `detect`. boxes: those that `rois` were predicted for.
        """

    def ground(self, tokens: Int64Array, features: ObjectFeatures) -> Float32Array:
        """Logits [q, n, 1 + MAX_PARTS] for tokens [q, length, 1 + MAX_TRIGRAMS]; n is at least 1."""


class OnnxNetworks:
    """The networks of a folder: a file NAME.onnx for each of NETWORKS. threads: see `open_session`."""

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        paths = [folder / f"{name}.onnx" for name in NETWORKS]
        missing = [path.name for path in paths if not path.exists()]
        if missing:
            raise MaskwiseError(
                f"{folder} lacks {', '.join(missing)}; `maskwise export` writes them"
            )
        self.detector, self.roi_head, self.mask_head, self.grounder = (
            open_session(path, threads=threads) for path in paths
        )
        contents = b"".join(path.read_bytes() for path in paths)
        self.hash = hashlib.sha256(contents).hexdigest()

    def detect(self, image: Float32Array) -> DetectorMaps:
        """See Networks."""
        return DetectorMaps(*self.detector.run(None, {"image": image}))

    def predict_rois(
        self, fine: Float32Array, coarse: Float32Array, boxes: Float32Array
    ) -> RoIPredictions:
        """See Networks."""
        inputs = {"fine_features": fine, "coarse_features": coarse, "boxes": boxes}
        return RoIPredictions(*self.roi_head.run(None, inputs))

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
        inputs = {
            "image": image,
            "fine_features": fine,
            "coarse_features": coarse,
            "boxes": boxes,
            "first_mask_logits": rois.masks,
            "category_logits": rois.category,
            "color_logits": rois.color,
            "material_logits": rois.material,
            "corrected_boxes": rois.boxes,
        }
        masks: Float32Array = self.mask_head.run(None, inputs)[0]
        return masks

    def ground(self, tokens: Int64Array, features: ObjectFeatures) -> Float32Array:
        """See Networks."""
        inputs = {
            "tokens": tokens,
            "unary": features.unary[None],
            "pairwise": features.pairwise[None],
        }
        logits: Float32Array = self.grounder.run(None, inputs)[0]
        return logits
