"""Recipe `occlude`: amodal data with exact ground truth from any instance segmentation.

A real object of another image is pasted in front of an object that is completely visible. What the target showed before
is its amodal mask; what still shows is its visible mask. Every composite is paired with its untouched original, in
which the visible and the amodal mask of the target are equal, so that a model learns when not to complete.

The dataset written holds, per pair, the original image and the composite with all regions, and one sample about each:
`mask_type` is "both", and the tags are `pair` (shared by the two), `variant` ("original" or "composite"), `occlusion`
(the rate, two decimals), `occluder` and `name` ("unique" or "shared", whether other regions have the target's name).
"""

import io
import itertools
import os
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from PIL import Image

from maskwise.arrays import BoolArray
from maskwise.builder.composite import CutoutPlacement, paste, place
from maskwise.builder.cutouts import AnnotatedObjects, CutoutSource
from maskwise.builder.source_images import SourceFolder
from maskwise.engines import EngineOptions, map_chunks
from maskwise.errors import RecordError, StoreError
from maskwise.formats import AnnotatedImage
from maskwise.formats.exported_dataset import read_encoded_image
from maskwise.masks import Mask
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset, DatasetWriter

TRIES = 24
"""Cut-outs that are tried for one target: most do not fit in size or place."""

JPEG = {"quality": 95, "subsampling": 0}
"""High quality and full color resolution, so that a composite differs from its original
by the pasted object only."""


@dataclass(frozen=True)
class OccludeOptions:
    """rates: lowest and highest occlusion rate; per_image: targets per image at most; min_area: smallest target, as a
    share of the image; seed: another seed gives other composites.
    """

    rates: tuple[float, float] = (0.1, 0.6)
    per_image: int = 1
    min_area: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        low, high = self.rates
        if not 0 < low < high < 1:
            raise RecordError(
                f"occlusion rates {low} to {high}: expected 0 < lowest < highest < 1"
            )
        if self.per_image < 1 or not 0 < self.min_area < 1:
            raise RecordError(
                f"expected 1 or more targets per image and a smallest area between 0 and 1; got {self.per_image} and "
                f"{self.min_area}"
            )


ImagePair = tuple[AnnotatedImage, AnnotatedImage]
"""The original and the composite, each with the sample about its target."""


def occlude(
    source: Dataset,
    out: str | os.PathLike[str],
    options: OccludeOptions | None = None,
    *,
    limit: int | None = None,
    engine: EngineOptions | None = None,
    overwrite: bool = False,
    done: Callable[[], None] = lambda: None,
) -> dict[str, int]:
    """Write composites of a dataset's images and their originals as a dataset folder.

    Returns the number of `images` read and of `pairs` made, and how many images are missing because they are
    `without_target` or `without_occluder`. The result is the same for any engine. limit: read that many images only.
    done: called after each.
    """
    chosen = options or OccludeOptions()
    images = range(
        len(source.images) if limit is None else min(limit, len(source.images))
    )
    pair_count = 0
    without_target = 0
    without_occluder = 0
    about = dict(source.manifest.about) | {
        "recipe": "occlude",
        "recipe_source": source.name,
        "recipe_options": f"rates {chosen.rates[0]} to {chosen.rates[1]}, {chosen.per_image} per image, "
        f"smallest target {chosen.min_area}, seed {chosen.seed}",
    }
    with DatasetWriter(
        out, name=f"{source.name}-occluded", about=about, overwrite=overwrite
    ) as writer:
        work = partial(_occlude_images, SourceFolder.of(source), chosen)
        made = map_chunks(work, images, engine or EngineOptions())
        for pairs, targets in made:
            for image in itertools.chain.from_iterable(pairs):
                writer.add_image(image.image, image.regions, image.data)
                writer.add_sample(image.samples[0])
            pair_count += len(pairs)
            if not targets:
                without_target += 1
            elif not pairs:
                without_occluder += 1
            done()
        if not pair_count:
            raise StoreError(
                f"{source.path}: no composite could be made from {len(images)} images: {without_target} have no "
                f"completely visible object, for {without_occluder} no occluder fits"
            )
    return {
        "images": len(images),
        "pairs": pair_count,
        "without_target": without_target,
        "without_occluder": without_occluder,
    }


def _occlude_images(
    source: SourceFolder, options: OccludeOptions, rows: Sequence[int]
) -> list[tuple[list[ImagePair], int]]:
    cutouts = _open_cutouts(source)
    return [occlude_image(cutouts, row, options) for row in rows]


@lru_cache(maxsize=1)
def _open_cutouts(source: SourceFolder) -> CutoutSource:
    """The objects to paste; finding them takes long, so a process does it once."""
    return CutoutSource(source.open())


def occlude_image(
    cutouts: CutoutSource, row: int, options: OccludeOptions
) -> tuple[list[ImagePair], int]:
    """The pairs of one image, and how many objects of the image could be targets.

    They depend on the dataset, the image's id and the seed only.
    """
    dataset = cutouts.dataset
    info = dataset.image(row)
    regions = dataset.regions_of(row)
    random = np.random.default_rng([options.seed, zlib.crc32(info.id.encode())])
    if not regions:
        return [], 0
    geometry = AnnotatedObjects(regions)
    complete = {
        region.id for item, region in enumerate(regions) if geometry.is_complete(item)
    }
    large = geometry.areas >= options.min_area * info.width * info.height
    targets = [
        region
        for item, region in enumerate(regions)
        if large[item] and region.id in complete
    ]
    if not targets:
        return [], 0
    pixels = np.asarray(dataset.open_image(row))
    pairs: list[ImagePair] = []
    picks = random.permutation(len(targets))[: options.per_image].tolist()
    for number, pick in enumerate(picks):
        target = targets[pick]
        placement = _find_placement(
            cutouts, row, target, options=options, random=random
        )
        if placement is None:
            continue
        composite, covered = paste(pixels, placement)
        pair = _Pair(info, regions, complete, target, placement, number)
        original_image = pair.original(read_encoded_image(dataset, row))
        composite_image = pair.composite(_jpeg(composite), covered)
        pairs.append((original_image, composite_image))
    return pairs, len(targets)


def _find_placement(
    cutouts: CutoutSource,
    row: int,
    target: Region,
    *,
    options: OccludeOptions,
    random: np.random.Generator,
) -> CutoutPlacement | None:
    assert target.visible is not None
    dense = target.visible.to_dense()
    for _ in range(TRIES):
        cutout = cutouts.draw(random, other_than=row)
        if cutout is None:
            continue
        placement = place(cutout, dense, options.rates, random)
        if placement is not None:
            return placement
    return None


class _Pair(NamedTuple):
    """An original and what is pasted into it: makes the two images of a pair."""

    info: ImageInfo
    regions: tuple[Region, ...]
    complete: set[str]
    target: Region
    placement: CutoutPlacement
    number: int

    def original(self, data: bytes) -> AnnotatedImage:
        """The untouched image; complete objects have equal visible and amodal masks."""
        regions = tuple(
            replace(region, amodal=self._amodal(region)) for region in self.regions
        )
        return self._image(
            "original", regions, data, question=f"the {self.target.name}", rate=0.0
        )

    def composite(self, data: bytes, covered: BoolArray) -> AnnotatedImage:
        """The image with the occluder in front of everything."""
        front = Mask.from_dense(covered)
        occluder = Region(
            id=self._new_id(),
            name=self.placement.cutout.name,
            visible=front,
            amodal=front,
            order=1,
        )
        regions = tuple(self._behind(region, front) for region in self.regions)
        question = f"the {self.target.name} behind the {occluder.name}"
        return self._image(
            "composite",
            (occluder, *regions),
            data,
            question=question,
            rate=self._rate(front),
        )

    def _behind(self, region: Region, front: Mask) -> Region:
        # The occluder has order 1, so everything else moves back by one.
        order = region.order
        if order is not None:
            order += 1
        elif region.id == self.target.id:
            order = 2
        visible = None if region.visible is None else region.visible - front
        return replace(
            region, visible=visible, amodal=self._amodal(region), order=order
        )

    def _amodal(self, region: Region) -> Mask | None:
        return region.visible if region.id in self.complete else region.amodal

    def _rate(self, front: Mask) -> float:
        assert self.target.visible is not None
        return self.target.visible.areas_with(front)[0] / self.target.visible.area

    def _new_id(self) -> str:
        taken = {region.id for region in self.regions}
        id = "occluder"
        number = 0
        while id in taken:
            number += 1
            id = f"occluder{number}"
        return id

    def _image(
        self,
        variant: str,
        regions: tuple[Region, ...],
        data: bytes,
        *,
        question: str,
        rate: float,
    ) -> AnnotatedImage:
        pair = f"{self.info.id}#{self.number}"
        pasted = self.placement.cutout.image if variant == "composite" else None
        pasted_license = None if pasted is None else pasted.license
        pasted_attribution = None if pasted is None else pasted.attribution
        info = replace(
            self.info,
            id=f"{pair}-{variant}",
            path=None,
            license=_join(self.info.license, pasted_license),
            attribution=_join(self.info.attribution, pasted_attribution),
        )
        names = [region.name for region in self.regions]
        tags = {
            "pair": pair,
            "variant": variant,
            "occlusion": f"{rate:.2f}",
            "occluder": self.placement.cutout.name,
            "name": "unique" if names.count(self.target.name) == 1 else "shared",
        }
        target = next(region for region in regions if region.id == self.target.id)
        sample = Sample(
            id=info.id,
            image_id=info.id,
            question=question,
            mask_type="both",
            targets=(target,),
            tags=tags,
        )
        return AnnotatedImage(info, regions, (sample,), data)


def parse_pair_id(id: str) -> tuple[str, str] | None:
    """The id of the source image and the variant, from the id of an image that this recipe made; None for others."""
    match = re.fullmatch(r"(.+)#\d+-(original|composite)", id, re.DOTALL)
    return None if match is None else (match[1], match[2])


def _join(own: str | None, pasted: str | None) -> str | None:
    """What is said about an image and about the one that a part of it comes from."""
    return "; ".join(dict.fromkeys(text for text in (own, pasted) if text)) or None


def _jpeg(pixels: np.typing.NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **JPEG)
    return file.getvalue()
