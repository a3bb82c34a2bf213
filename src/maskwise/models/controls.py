"""Controls: what a figure is worth is seen beside what these reach.

    load_model("text-blind"), load_model("oracle-choice"), ...      see `maskwise ls models`

Each is the bundled model with something taken away or, for the oracles, with a part of the truth put in, so that what
the remaining stages cost is seen.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial import ConvexHull, QhullError

from maskwise.errors import ModelError
from maskwise.masks import Mask, Masks
from maskwise.models.intent import classify_intent
from maskwise.models.lessons import lesson_to_objects, scene_to_lesson
from maskwise.models.sight import match_masks
from maskwise.models.tiny import SIDE, Sight, Tiny, bundled_model, reply, sight_of
from maskwise.schema import PredictedRegion, Prediction, Region, Sample
from maskwise.world import Scene, scene
from maskwise.world.catalogue import SPLITS


class Control:
    """A model asked through another function than its own."""

    def __init__(
        self, name: str, answer: Callable[[Tiny, Image.Image, Sequence[str]], list[Prediction]]
    ) -> None:
        self.name, self.answer, self.model = name, answer, bundled_model()
        self.weights_hash = self.model.weights_hash

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction a question."""
        return self.answer(self.model, image, questions)


class StageOracle:
    """The bundled model, one of whose stages is told the truth."""

    def __init__(self, stage: str, tell: Callable[[Sight, Prediction, Sample], Prediction]) -> None:
        self.name, self.tell, self.model = f"oracle-{stage}", tell, bundled_model()
        self.weights_hash = self.model.weights_hash

    def predict_with_ground_truth(self, image: Image.Image, samples: Sequence[Sample]) -> list[Prediction]:
        """One prediction a sample."""
        sight = self.model.see(image)
        replies = self.model.answer(sight, [sample.question for sample in samples])
        return [self.tell(sight, one, sample) for one, sample in zip(replies, samples)]


class FindsOracle:
    """The bundled model, told what there is to see: an eye that never errs, in images of the world."""

    name = "oracle-finds"

    def __init__(self) -> None:
        self.model = bundled_model()
        self.weights_hash = self.model.weights_hash

    def predict_with_ground_truth(self, image: Image.Image, samples: Sequence[Sample]) -> list[Prediction]:
        """One prediction a sample."""
        objects = lesson_to_objects(scene_to_lesson(_scene_of(samples[0].image_id)))
        return self.model.answer(sight_of(objects, image.size), [sample.question for sample in samples])


def _scene_of(image: str) -> Scene:
    """The scene an image's id names."""
    split, *numbers = image.split("-")
    if split not in SPLITS or len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        raise ModelError(f"oracle-finds knows the scenes of the world alone, not image {image!r}")
    return scene(int(numbers[0]), int(numbers[1]), split, SIDE)


def text_blind() -> Control:
    """The bundled model, every question replaced by an empty one."""
    return Control("text-blind", lambda model, image, questions: model.predict(image, [""] * len(questions)))


def image_blind() -> Control:
    """The bundled model, every image replaced by a grey one."""
    return Control(
        "image-blind",
        lambda model, image, questions: model.predict(Image.new("RGB", image.size, "grey"), questions),
    )


def whole_image() -> Control:
    """One region, the whole image, of the type the words want."""
    return Control("whole-image", _answer_everything)


def visible_copy() -> Control:
    """The bundled model, its visible masks handed in as the amodal ones too."""
    return Control("visible-copy", _answer_with_copies)


def hull() -> Control:
    """The bundled model, its amodal masks the convex hulls of its visible ones, clipped to what may hide something."""
    return Control("hull", _answer_with_hulls)


def oracle_finds() -> "FindsOracle":
    """The bundled model, told every object of the image with its masks, its parts and what it is."""
    return FindsOracle()


def oracle_type() -> StageOracle:
    """The bundled model, told which mask type is wanted."""
    return StageOracle("type", _tell_type)


def oracle_choice() -> StageOracle:
    """The bundled model, told which of the things it found are meant."""
    return StageOracle("choice", _tell_choice)


def oracle_masks() -> StageOracle:
    """The bundled model, told the masks of what it chose rightly."""
    return StageOracle("masks", _tell_masks)


def _answer_everything(_: Tiny, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
    width, height = image.size
    frame = Mask.from_dense(np.ones((height, width), np.bool_))
    regions = (PredictedRegion(visible=frame, amodal=frame),)
    return [
        Prediction(sample="", mask_type=one.mask_type, regions=regions) for one in classify_intent(questions)
    ]


def _answer_with_copies(model: Tiny, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
    return [_redrawn(one, lambda visible: visible) for one in model.predict(image, questions)]


def _answer_with_hulls(model: Tiny, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
    sight = model.see(image)
    objects = reply(sight, [place for place in sight.items if place[1] == 0], "visible").regions
    seen = [region.visible.to_dense() for region in objects if region.visible is not None]

    def complete(visible: Mask) -> Mask:
        own = visible.to_dense()
        # Nothing is hidden by itself: the object a mask lies on does not count.
        hiding = [plane for plane in seen if not (plane & own).any()]
        return Mask.from_dense(own | (convex_hull(own) & np.any(hiding, 0))) if hiding else visible

    return [_redrawn(one, complete) for one in model.answer(sight, questions)]


def convex_hull(plane: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The pixels whose middles lie in the convex hull of a mask's pixel middles; a mask on one line is its own hull."""
    points = np.argwhere(plane)
    try:
        equations = ConvexHull(points).equations
    except (QhullError, ValueError):
        return plane
    rows, columns = np.indices(plane.shape)
    inside = [a * rows + b * columns + c <= 1e-9 for a, b, c in equations]
    hull: NDArray[np.bool_] = np.all(inside, 0)
    return hull


def _redrawn(prediction: Prediction, complete: Callable[[Mask], Mask]) -> Prediction:
    """Every amodal mask made anew from its visible one."""
    regions = [
        msgspec.structs.replace(region, amodal=complete(region.visible))
        for region in prediction.regions
        if region.visible is not None
    ]
    return msgspec.structs.replace(prediction, regions=tuple(regions))


def _tell_type(_: Sight, prediction: Prediction, sample: Sample) -> Prediction:
    return msgspec.structs.replace(prediction, mask_type=sample.mask_type)


def _tell_choice(sight: Sight, prediction: Prediction, sample: Sample) -> Prediction:
    """Everything that was found of the targets, matched by the whole of it, objects and parts apart."""
    meant = []
    for part in (False, True):
        places = [place for place in sight.items if (place[1] > 0) == part]
        targets = [region for region in sample.targets if (region.part_of is not None) == part]
        if places and targets:
            objects = sight.objects
            planes = [objects.part[i] == k if part else objects.amodal[i] for i, k in places]
            matches = match_masks(np.stack(planes), np.stack([_whole(region) for region in targets]))
            meant += [place for place, match in zip(places, matches) if match >= 0]
    return reply(sight, meant, "amodal" if prediction.mask_type == "amodal" else "visible")


def _tell_masks(_: Sight, prediction: Prediction, sample: Sample) -> Prediction:
    """The masks of the targets that were chosen, objects and parts apart."""
    regions = list(prediction.regions)
    for part in (False, True):
        chosen = [row for row, region in enumerate(regions) if (" of the " in (region.name or "")) == part]
        targets = [region for region in sample.targets if (region.part_of is not None) == part]
        if chosen and targets:
            found = np.stack([_whole(regions[row]) for row in chosen])
            for row, match in zip(chosen, match_masks(found, np.stack([_whole(one) for one in targets]))):
                if match >= 0:
                    true = targets[match]
                    regions[row] = msgspec.structs.replace(
                        regions[row], visible=true.visible, amodal=true.amodal
                    )
    return msgspec.structs.replace(prediction, regions=tuple(regions))


def _whole(region: Region | PredictedRegion) -> NDArray[np.bool_]:
    """The amodal mask, or the visible one, in the model's frame."""
    mask = region.amodal if region.amodal is not None else region.visible
    assert mask is not None
    return Masks.from_masks([mask]).resize((SIDE, SIDE))[0].to_dense()
