"""Baselines: `tiny` with one input removed or one stage replaced by the ground truth.

    load_model("text-blind"), load_model("oracle-grounder"), ...      see `maskwise ls models`

A metric of `tiny` says little alone. The blind baselines show what can be scored without the image or the question;
the oracle baselines show how much each stage loses.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from PIL import Image

from maskwise.errors import ModelError
from maskwise.language.intent import classify_intent
from maskwise.masks import Mask
from maskwise.models.convex_hull import fill_hull
from maskwise.models.tiny.encoded_image import EncodedImage
from maskwise.models.tiny.greedy_matching import (
    match_masks,
    match_targets,
    resized_mask,
)
from maskwise.models.tiny.model import Tiny, load
from maskwise.models.tiny.spec import IMAGE_SIZE
from maskwise.schema import PredictedRegion, Prediction, Sample
from maskwise.training.tiny.scene_dataset import scene_to_example
from maskwise.world import Scene, make_scene
from maskwise.world.catalogue import SPLITS


class Baseline:
    """A predictor that calls the bundled model in another way."""

    def __init__(
        self,
        name: str,
        answer: Callable[[Tiny, Image.Image, Sequence[str]], list[Prediction]],
    ) -> None:
        self.name = name
        self.answer = answer
        self.model = load()
        self.weights_hash = self.model.weights_hash

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question."""
        return self.answer(self.model, image, questions)


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
        return [self.correct(encoded, *pair) for pair in zip(predictions, samples)]


class DetectorOracle:
    """The bundled model with the ground-truth objects of a world scene in place of its detections."""

    name = "oracle-detector"

    def __init__(self) -> None:
        self.model = load()
        self.weights_hash = self.model.weights_hash

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        """One prediction per sample."""
        objects = scene_to_example(_find_scene(samples[0].image_id)).objects()
        encoded = EncodedImage(self.model.networks, objects, image.size)
        return encoded.answer([sample.question for sample in samples])


def _find_scene(image: str) -> Scene:
    """The scene that an image id names."""
    split, *numbers = image.split("-")
    if (
        split not in SPLITS
        or len(numbers) != 2
        or not all(number.isdecimal() for number in numbers)
    ):
        raise ModelError(
            f"oracle-detector needs an image of the world benchmark; {image!r} is not one"
        )
    return make_scene(int(numbers[0]), int(numbers[1]), split, IMAGE_SIZE)


def text_blind() -> Baseline:
    """The bundled model, every question replaced by an empty one."""
    return Baseline(
        "text-blind",
        lambda model, image, questions: model.predict(image, [""] * len(questions)),
    )


def image_blind() -> Baseline:
    """The bundled model, every image replaced by a grey one."""
    return Baseline(
        "image-blind",
        lambda model, image, questions: model.predict(
            Image.new("RGB", image.size, "grey"), questions
        ),
    )


def whole_image() -> Baseline:
    """One region, the whole image, with the mask type that the words want."""
    return Baseline("whole-image", _predict_whole_image)


def visible_copy() -> Baseline:
    """The bundled model, amodal masks replaced by its visible masks."""
    return Baseline("visible-copy", _predict_visible_copies)


def convex_hull() -> Baseline:
    """The bundled model, amodal masks replaced by the convex hulls of its visible masks, clipped to occluders."""
    return Baseline("convex-hull", _predict_hulls)


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


def _predict_whole_image(
    _: Tiny, image: Image.Image, questions: Sequence[str]
) -> list[Prediction]:
    width, height = image.size
    everything = Mask.from_dense(np.ones((height, width), np.bool_))
    regions = (PredictedRegion(visible=everything, amodal=everything),)
    return [
        Prediction(sample="", mask_type=one.mask_type, regions=regions)
        for one in classify_intent(questions)
    ]


def _predict_visible_copies(
    model: Tiny, image: Image.Image, questions: Sequence[str]
) -> list[Prediction]:
    return [
        _replace_amodal(one, lambda visible: visible)
        for one in model.predict(image, questions)
    ]


def _predict_hulls(
    model: Tiny, image: Image.Image, questions: Sequence[str]
) -> list[Prediction]:
    encoded = model.encode(image)
    objects = encoded.predict_targets(
        [key for key in encoded.candidates if key[1] == 0], "visible"
    ).regions
    visible_objects = [
        region.visible.to_dense() for region in objects if region.visible is not None
    ]

    def complete(visible: Mask) -> Mask:
        own = visible.to_dense()
        # An object does not occlude itself: the object that a mask lies on is left out.
        occluders = [plane for plane in visible_objects if not (plane & own).any()]
        return (
            Mask.from_dense(own | (fill_hull(own) & np.any(occluders, 0)))
            if occluders
            else visible
        )

    return [_replace_amodal(one, complete) for one in encoded.answer(questions)]


def _replace_amodal(
    prediction: Prediction, complete: Callable[[Mask], Mask]
) -> Prediction:
    """Every amodal mask computed from its visible one."""
    regions = [
        msgspec.structs.replace(region, amodal=complete(region.visible))
        for region in prediction.regions
        if region.visible is not None
    ]
    return msgspec.structs.replace(prediction, regions=tuple(regions))


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
    for part in (False, True):
        rows = [
            row
            for row, region in enumerate(regions)
            if (" of the " in (region.name or "")) == part
        ]
        targets = [
            region for region in sample.targets if (region.part_of is not None) == part
        ]
        if rows and targets:
            masks = np.stack([resized_mask(regions[row]) for row in rows])
            matches = match_masks(
                masks, np.stack([resized_mask(one) for one in targets])
            )
            for row, match in zip(rows, matches):
                if match >= 0:
                    target = targets[match]
                    regions[row] = msgspec.structs.replace(
                        regions[row], visible=target.visible, amodal=target.amodal
                    )
    return msgspec.structs.replace(prediction, regions=tuple(regions))
