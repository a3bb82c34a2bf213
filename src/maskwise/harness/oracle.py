"""An oracle: it is told the truth and spoils it as asked, to see what a figure makes of one kind of fault.

    maskwise eval world --model oracle --model-option noise=2 --model-option drop=0.1

With no option it repeats the truth. What it says to a sample depends on the sample and the seed alone, not on what was
asked before.
"""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from maskwise.errors import ModelError
from maskwise.masks import Mask
from maskwise.schema import Answer, MaskType, Phrase, PredictedRegion, Prediction, Region, Sample
from maskwise.store import MASK_TYPES

GRAIN = 8
"""Pixels between the places where the jitter of a boundary is drawn; it is smooth between them."""


class Oracle:
    """The truth, spoiled.

    noise: how far boundaries wander, standard deviation in pixels, outwards and inwards alike. The visible mask stays
    inside the amodal one where it was. drop: chance that a target is left out. add: chance that a reply has a region
    too many, an ellipse anywhere. flip: chance that the mask type said is another one. seed: another draw.
    """

    name = "oracle"

    def __init__(
        self, *, noise: float = 0.0, drop: float = 0.0, add: float = 0.0, flip: float = 0.0, seed: int = 0
    ) -> None:
        for option, value in (("drop", drop), ("add", add), ("flip", flip)):
            if not 0 <= value <= 1:
                raise ModelError(f"oracle: {option}={value} is not a chance between 0 and 1")
        if not 0 <= noise < 1000:
            raise ModelError(f"oracle: noise={noise} is not a distance between 0 and 1000 pixels")
        if not isinstance(seed, int) or seed < 0:
            raise ModelError(f"oracle: seed={seed} is not a whole number, 0 or more")
        self.noise, self.drop, self.add, self.flip, self.seed = noise, drop, add, flip, seed

    def predict_with_ground_truth(self, image: Image.Image, samples: Sequence[Sample]) -> list[Prediction]:
        """One prediction a sample."""
        return [self._reply(image, sample) for sample in samples]

    def _reply(self, image: Image.Image, sample: Sample) -> Prediction:
        chance = np.random.Generator(
            np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(zlib.crc32(sample.id.encode()),)))
        )
        kept = [item for item in range(len(sample.targets)) if chance.random() >= self.drop]
        regions = [self._spoil(sample.targets[item], chance) for item in kept]
        if chance.random() < self.add:
            regions.append(_invent(image.height, image.width, chance))
        return Prediction(
            sample="",
            answer=_answer(sample.answer, kept),
            mask_type=self._say(sample.mask_type, chance),
            regions=tuple(regions),
            no_target=not regions,
        )

    def _say(self, mask_type: MaskType, chance: np.random.Generator) -> MaskType:
        others = [other for other in MASK_TYPES if other != mask_type]
        draw = chance.random(2)
        return others[int(draw[1] * len(others))] if draw[0] < self.flip else mask_type

    def _spoil(self, region: Region, chance: np.random.Generator) -> PredictedRegion:
        if not self.noise:
            return PredictedRegion(visible=region.visible, amodal=region.amodal, name=region.name)
        # One field for both masks: where one lies inside the other, it still does.
        field = self.noise * _draw_field(*region.size, chance)
        visible, amodal = (mask and _shift(mask, field) for mask in (region.visible, region.amodal))
        return PredictedRegion(visible=visible, amodal=amodal, name=region.name)


def _shift(mask: Mask, field: NDArray[np.float64]) -> Mask:
    """Move the boundary outwards by `field` pixels, inwards where that is negative; an empty mask stays empty."""
    from scipy.ndimage import distance_transform_edt  # noqa: PLC0415

    out = mask.to_dense()
    if not out.any():
        return mask
    reach = int(np.ceil(field.max(initial=0))) + 1
    window = tuple(_widen(np.flatnonzero(out.any(axis)), reach) for axis in (1, 0))
    inside = out[window]
    depth = distance_transform_edt(inside) - distance_transform_edt(~inside) if not inside.all() else np.inf
    # Half a pixel on either side is where the boundary runs.
    out[window] = depth - np.where(inside, 0.5, -0.5) + field[window] > 0
    return Mask.from_dense(out)


def _widen(places: NDArray[np.int64], reach: int) -> slice:
    return slice(max(int(places[0]) - reach, 0), int(places[-1]) + reach + 1)


def _draw_field(height: int, width: int, chance: np.random.Generator) -> NDArray[np.float64]:
    """A smooth random field (height, width) of mean 0 and, over many, standard deviation 1 at the places drawn."""
    rows, columns = height // GRAIN + 2, width // GRAIN + 2
    coarse = Image.fromarray(chance.standard_normal((rows, columns)).astype(np.float32))
    return np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.float64)


def _invent(height: int, width: int, chance: np.random.Generator) -> PredictedRegion:
    """An ellipse between a twentieth and a quarter of the image across, of low confidence."""
    top, left, tall, wide = chance.random(4) * (height, width, 0.1 * height, 0.1 * width)
    radius = 0.025 * height + tall + 0.5, 0.025 * width + wide + 0.5
    y, x = np.ogrid[:height, :width]
    mask = Mask.from_dense(((y - top) / radius[0]) ** 2 + ((x - left) / radius[1]) ** 2 <= 1)
    return PredictedRegion(visible=mask, amodal=mask, score=0.3, name="invented")


def _answer(answer: Answer | None, kept: list[int]) -> Answer | None:
    """The true words; phrases speak of the regions that were kept."""
    if answer is None:
        return None
    place = {target: item for item, target in enumerate(kept)}
    phrases = []
    for phrase in answer.phrases:
        regions = tuple(place[target] for target in phrase.regions if target in place)
        if regions:
            phrases.append(Phrase(start=phrase.start, stop=phrase.stop, regions=regions))
    return Answer(text=answer.text, phrases=tuple(phrases))
