"""An oracle: the ground truth with adjustable errors, to test how a metric reacts to one kind of error.

    maskwise eval world --model oracle --model-option noise=2 --model-option drop=0.1

Without options it returns the ground truth. Its prediction depends only on the sample and the seed, not on earlier
questions.
"""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.errors import ModelError
from maskwise.masks import Mask
from maskwise.schema import (
    Answer,
    MaskType,
    Phrase,
    PredictedRegion,
    Prediction,
    Region,
    Sample,
)
from maskwise.store import MASK_TYPES

GRAIN = 8
"""Pixels between the grid points at which the boundary noise is drawn; it is smooth between them."""


class Oracle:
    """The ground truth with errors.

    noise: boundary noise, standard deviation in pixels, outwards and inwards. A visible mask that is inside the amodal
    one stays inside. drop: probability that a target is left out. add: probability of an additional region, an ellipse
    at a random place. flip: probability of another mask type. seed: of the random draws.
    """

    name = "oracle"

    def __init__(
        self,
        *,
        noise: float = 0.0,
        drop: float = 0.0,
        add: float = 0.0,
        flip: float = 0.0,
        seed: int = 0,
    ) -> None:
        for option, value in (("drop", drop), ("add", add), ("flip", flip)):
            if not 0 <= value <= 1:
                raise ModelError(
                    f"oracle: {option}={value} is not a probability between 0 and 1"
                )
        if not 0 <= noise < 1000:
            raise ModelError(
                f"oracle: noise={noise} is not a distance between 0 and 1000 pixels"
            )
        if not isinstance(seed, int) or seed < 0:
            raise ModelError(f"oracle: seed={seed} is not an integer, 0 or more")
        self.noise = noise
        self.drop = drop
        self.add = add
        self.flip = flip
        self.seed = seed

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        """One prediction per sample."""
        return [self._predict(image, sample) for sample in samples]

    def _predict(self, image: Image.Image, sample: Sample) -> Prediction:
        # A stream of its own for every sample: it does not depend on the questions before.
        sample_key = zlib.crc32(sample.id.encode())
        sequence = np.random.SeedSequence(self.seed, spawn_key=(sample_key,))
        rng = np.random.Generator(np.random.PCG64(sequence))
        kept = [
            item for item in range(len(sample.targets)) if rng.random() >= self.drop
        ]
        regions = [self._perturb(sample.targets[item], rng) for item in kept]
        if rng.random() < self.add:
            regions.append(_invent(image.height, image.width, rng))
        return Prediction(
            sample="",
            answer=_answer(sample.answer, kept),
            mask_type=self._mask_type(sample.mask_type, rng),
            regions=tuple(regions),
            no_target=not regions,
        )

    def _mask_type(self, mask_type: MaskType, rng: np.random.Generator) -> MaskType:
        others = [other for other in MASK_TYPES if other != mask_type]
        # Both numbers are always drawn, so that `flip` does not change what is drawn afterwards.
        flip_draw, type_draw = rng.random(2)
        if flip_draw >= self.flip:
            return mask_type
        return others[int(type_draw * len(others))]

    def _perturb(self, region: Region, rng: np.random.Generator) -> PredictedRegion:
        if not self.noise:
            return PredictedRegion(
                visible=region.visible, amodal=region.amodal, name=region.name
            )
        # One noise field for both masks: if one is inside the other, it stays inside.
        field = self.noise * _draw_field(*region.size, rng)
        visible, amodal = (
            mask and _shift(mask, field) for mask in (region.visible, region.amodal)
        )
        return PredictedRegion(visible=visible, amodal=amodal, name=region.name)


def _shift(mask: Mask, field: NDArray[np.float64]) -> Mask:
    """Move the boundary outwards by `field` pixels, inwards where it is negative; an empty mask stays empty."""
    from scipy.ndimage import distance_transform_edt  # noqa: PLC0415

    out = mask.to_dense()
    if not out.any():
        return mask
    reach = int(np.ceil(field.max(initial=0))) + 1
    window = tuple(_widen(np.flatnonzero(out.any(axis)), reach) for axis in (1, 0))
    inside = out[window]
    depth = (
        distance_transform_edt(inside) - distance_transform_edt(~inside)
        if not inside.all()
        else np.inf
    )
    # The boundary is half a pixel away on either side.
    out[window] = depth - np.where(inside, 0.5, -0.5) + field[window] > 0
    return Mask.from_dense(out)


def _widen(positions: NDArray[np.int64], reach: int) -> slice:
    return slice(max(int(positions[0]) - reach, 0), int(positions[-1]) + reach + 1)


def _draw_field(
    height: int, width: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """A smooth random field (height, width) with mean 0 and standard deviation 1 at the grid points."""
    rows = height // GRAIN + 2
    columns = width // GRAIN + 2
    coarse = Image.fromarray(rng.standard_normal((rows, columns)).astype(np.float32))
    return np.asarray(
        coarse.resize((width, height), Image.Resampling.BICUBIC), np.float64
    )


def _invent(height: int, width: int, rng: np.random.Generator) -> PredictedRegion:
    """An ellipse with a diameter of 1/20 to 1/4 of the image, with a low score."""
    center_y, center_x, tall, wide = rng.random(4) * (
        height,
        width,
        0.1 * height,
        0.1 * width,
    )
    # Half a pixel more, so that the ellipse contains at least one pixel in a tiny image.
    radius_y = 0.025 * height + tall + 0.5
    radius_x = 0.025 * width + wide + 0.5
    y, x = np.ogrid[:height, :width]
    distance = ((y - center_y) / radius_y) ** 2 + ((x - center_x) / radius_x) ** 2
    mask = Mask.from_dense(distance <= 1)
    return PredictedRegion(visible=mask, amodal=mask, score=0.3, name="invented")


def _answer(answer: Answer | None, kept: list[int]) -> Answer | None:
    """The true answer; its phrases refer to the regions that were kept."""
    if answer is None:
        return None
    place = {target: item for item, target in enumerate(kept)}
    phrases = []
    for phrase in answer.phrases:
        regions = tuple(place[target] for target in phrase.regions if target in place)
        if regions:
            phrases.append(
                Phrase(start=phrase.start, stop=phrase.stop, regions=regions)
            )
    return Answer(text=answer.text, phrases=tuple(phrases))
