"""Stage oracles: `tiny` with the output of one stage replaced by the ground truth.

    maskwise eval world --model oracle-grounder

The difference between a stage oracle and `tiny` is what that stage loses.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from PIL import Image

from maskwise.errors import ModelError
from maskwise.models.tiny.encoded_image import EncodedImage
from maskwise.models.tiny.greedy_matching import (
    match_masks,
    match_targets,
    resized_mask,
)
from maskwise.models.tiny.model import load
from maskwise.models.tiny.scene_example import scene_to_example
from maskwise.models.tiny.spec import IMAGE_SIZE
from maskwise.schema import Prediction, Sample
from maskwise.world import Scene, make_scene
from maskwise.world.catalogue import SPLITS


class StageOracle:
    """The bundled model with the output of one stage corrected by the ground truth."""

    def __init__(
        self,
        name: str,
        correct: Callable[[EncodedImage, Prediction, Sample], Prediction],
    ) -> None:
        self.name = name
        self.correct = correct
        self.model = load()
        self.weights_hash = self.model.weights_hash

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        """One prediction per sample."""
        encoded = self.model.encode(image)
        predictions = encoded.answer([sample.question for sample in samples])
        return [
            self.correct(encoded, prediction, sample)
            for prediction, sample in zip(predictions, samples)
        ]


class DetectorOracle:
    """The bundled model with the ground-truth objects of a world scene in place of its detections."""

    name = "oracle-detector"

    def __init__(self) -> None:
        self.model = load()
        self.weights_hash = self.model.weights_hash

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        """One prediction per sample. The scene is drawn again from the id of the image."""
        scene = _find_scene(samples[0].image_id)
        objects = scene_to_example(scene).objects()
        encoded = EncodedImage(self.model.networks, objects, image.size)
        return encoded.answer([sample.question for sample in samples])


def oracle_detector() -> DetectorOracle:
    """The bundled model with ground-truth objects, masks, parts and attributes."""
    return DetectorOracle()


def oracle_mask_type() -> StageOracle:
    """The bundled model with the ground-truth mask type."""
    return StageOracle("oracle-mask-type", _correct_mask_type)


def oracle_grounder() -> StageOracle:
    """The bundled model with the ground-truth targets among its detections."""
    return StageOracle("oracle-grounder", _correct_targets)


def oracle_masks() -> StageOracle:
    """The bundled model with ground-truth masks for the targets it selected correctly."""
    return StageOracle("oracle-masks", _correct_masks)


def _find_scene(image_id: str) -> Scene:
    """The scene that an image id names: SPLIT-SEED-INDEX."""
    split, *numbers = image_id.split("-")
    is_scene = (
        split in SPLITS
        and len(numbers) == 2
        and all(number.isdecimal() for number in numbers)
    )
    if not is_scene:
        raise ModelError(
            f"oracle-detector needs an image of the world benchmark; {image_id!r} is not one"
        )
    seed, index = map(int, numbers)
    return make_scene(seed, index, split, IMAGE_SIZE)


def _correct_mask_type(
    _: EncodedImage, prediction: Prediction, sample: Sample
) -> Prediction:
    return msgspec.structs.replace(prediction, mask_type=sample.mask_type)


def _correct_targets(
    encoded: EncodedImage, prediction: Prediction, sample: Sample
) -> Prediction:
    targets = match_targets(encoded, sample.targets)
    return encoded.predict_targets(
        targets, "amodal" if prediction.mask_type == "amodal" else "visible"
    )


def _correct_masks(
    _: EncodedImage, prediction: Prediction, sample: Sample
) -> Prediction:
    """Ground-truth masks for the regions that match a target, objects and parts separately."""
    regions = list(prediction.regions)
    for is_part in (False, True):
        # `tiny` names a part "the handle of the mug".
        rows = [
            row
            for row, region in enumerate(regions)
            if (" of the " in (region.name or "")) == is_part
        ]
        targets = [
            target
            for target in sample.targets
            if (target.part_of is not None) == is_part
        ]
        if not rows or not targets:
            continue
        masks = np.stack([resized_mask(regions[row]) for row in rows])
        target_masks = np.stack([resized_mask(target) for target in targets])
        for row, match in zip(rows, match_masks(masks, target_masks)):
            if match >= 0:  # -1: no target matches
                target = targets[match]
                regions[row] = msgspec.structs.replace(
                    regions[row], visible=target.visible, amodal=target.amodal
                )
    return msgspec.structs.replace(prediction, regions=tuple(regions))
