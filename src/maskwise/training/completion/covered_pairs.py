"""Training data without MobileSAM: a cut-out pasted over any annotated object.

What the object showed before tells where it continues behind the cut-out, even if the rest of it is hidden by something
else (Zhan et al. 2020, "Self-Supervised Scene De-Occlusion"). Nothing is in front of the cut-out itself.
"""

import zlib
from collections.abc import Iterator

import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray
from maskwise.builder.composite import CutoutPlacement, paste, place
from maskwise.builder.cutouts import CutoutSource
from maskwise.builder.occlude import OccludeOptions
from maskwise.training.completion.composites import MIN_AREA, ObjectCrop, crop_object

TRIES = 6
"""Cut-outs that are tried for one object."""


def cover_objects(
    cutouts: CutoutSource, row: int, options: OccludeOptions
) -> Iterator[ObjectCrop]:
    """For the objects of an image, large enough and `per_image` at most: the object behind a cut-out, and the cut-out.

    They depend on the dataset, the image's id and the seed only.
    """
    info = cutouts.dataset.image(row)
    random = np.random.default_rng([options.seed, zlib.crc32(info.id.encode())])
    masks = [
        region.visible.to_dense()
        for region in cutouts.dataset.regions_of(row)
        if region.visible is not None and not region.crowd
    ]
    smallest = max(MIN_AREA, options.min_area * info.width * info.height)
    large = [mask for mask in masks if mask.sum() >= smallest]
    pixels = np.asarray(cutouts.dataset.open_image(row))
    for pick in random.permutation(len(large))[: options.per_image].tolist():
        placement = _find_placement(
            cutouts, row, large[pick], options=options, random=random
        )
        if placement is None:
            continue
        composite, front = paste(pixels, placement)
        behind = large[pick] & ~front
        image = Image.fromarray(composite)
        if behind.sum() >= MIN_AREA:
            yield crop_object(image, None, behind, large[pick], [front])
            yield crop_object(image, None, front, front, [behind])


def _find_placement(
    cutouts: CutoutSource,
    row: int,
    target: BoolArray,
    *,
    options: OccludeOptions,
    random: np.random.Generator,
) -> CutoutPlacement | None:
    for _ in range(TRIES):
        cutout = cutouts.draw(random, other_than=row)
        placement = (
            None if cutout is None else place(cutout, target, options.rates, random)
        )
        if placement is not None:
            return placement
    return None
