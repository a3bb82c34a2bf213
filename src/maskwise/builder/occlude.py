"""Recipe `occlude`: amodal data with exact ground truth from any instance segmentation.

A real object of another image is pasted in front of an object that is completely visible, in a size and place that are
plausible (plausible.py). What the target showed before is its amodal mask; what still shows is its visible mask. Every
composite is paired with its untouched original, in which the visible and the amodal mask of the target are equal, so
that a model learns when not to complete.

The dataset written holds, per pair, the original image and the composite with all regions, and one sample about each:
`mask_type` is "both", and the tags are `pair` (shared by the two), `variant` ("original" or "composite"), `occlusion`
(the rate, two decimals), `occluder` and `name` ("unique" or "shared", whether other regions have the target's name).
"""

import io
import itertools
import logging
import os
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from PIL import Image

from maskwise.arrays import BoolArray, UInt8Array
from maskwise.builder.composite import CutoutPlacement, paste, place
from maskwise.builder.cutouts import AnnotatedObjects, CutoutSource
from maskwise.builder.plausible import (
    CategoryStatistics,
    TargetScene,
    find_occluder,
    find_room,
)
from maskwise.builder.source_images import SourceFolder
from maskwise.engines import EngineOptions, map_chunks
from maskwise.errors import ImageError, RecordError, StoreError
from maskwise.formats import AnnotatedImage
from maskwise.formats.exported_dataset import read_encoded_image
from maskwise.masks import Mask
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset, DatasetWriter

log = logging.getLogger(__name__)

TRIES = 48
"""Cut-outs of any category that are tried for one target: most do not fit in size or place."""

JPEG = {"quality": 95, "subsampling": 0}
"""High quality and full color resolution, so that a composite differs from its original
by the pasted object only."""


@dataclass(frozen=True)
class OccludeOptions:
    """rates: lowest and highest occlusion rate; per_image: targets per image at most; min_area: smallest target, as a
    share of the image; seed: another seed gives other composites; any_context: paste any object in any size that fits,
    which gives more composites and absurd ones.
    """

    rates: tuple[float, float] = (0.1, 0.6)
    per_image: int = 1
    min_area: float = 0.005
    seed: int = 0
    any_context: bool = False

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
    cutouts: Dataset | None = None,
    background: Dataset | None = None,
    limit: int | None = None,
    engine: EngineOptions | None = None,
    overwrite: bool = False,
    done: Callable[[], None] = lambda: None,
) -> dict[str, int]:
    """Write composites of a dataset's images and their originals as a dataset folder.

    Returns the number of `images` read and of `pairs` made, and how many images are missing because they are
    `without_target`, `without_occluder` or `unreadable`. The result is the same for any engine. cutouts: a dataset
    whose objects are pasted, if not those of the source. background: a dataset into whose images an object of the
    source is pasted, as the target. limit: read that many images only. done: called after each.
    """
    chosen = options or OccludeOptions()
    canvas = source if background is None else background
    images = range(
        len(canvas.images) if limit is None else min(limit, len(canvas.images))
    )
    pair_count = 0
    without_target = 0
    without_occluder = 0
    unreadable = 0
    about = dict(source.manifest.about) | {
        "recipe": "occlude",
        "recipe_source": source.name,
        "recipe_options": f"rates {chosen.rates[0]} to {chosen.rates[1]}, {chosen.per_image} per image, "
        f"smallest target {chosen.min_area}, seed {chosen.seed}"
        + (", any context" if chosen.any_context else ""),
    }
    others = {"cutouts": cutouts, "background": background}
    for role, other in others.items():
        if other is not None:
            about[f"recipe_{role}"] = other.name
            if "license" in other.manifest.about:
                about[f"license_{role}"] = other.manifest.about["license"]
    with DatasetWriter(
        out, name=f"{source.name}-occluded", about=about, overwrite=overwrite
    ) as writer:
        folders = _Folders(
            SourceFolder.of(source),
            SourceFolder.of(source if cutouts is None else cutouts),
            None if background is None else SourceFolder.of(background),
        )
        work = partial(_occlude_images, folders, chosen)
        made = map_chunks(work, images, engine or EngineOptions())
        for pairs, targets in made:
            for image in itertools.chain.from_iterable(pairs):
                writer.add_image(image.image, image.regions, image.data)
                writer.add_sample(image.samples[0])
            pair_count += len(pairs)
            if targets is None:
                unreadable += 1
            elif not targets:
                without_target += 1
            elif not pairs:
                without_occluder += 1
            done()
        if not pair_count:
            raise StoreError(
                f"{source.path}: no composite could be made from {len(images)} images: {without_target} have no "
                f"completely visible object, for {without_occluder} no occluder fits; a larger dataset, "
                "--cutouts OTHER or --any-context give more"
            )
    return {
        "images": len(images),
        "pairs": pair_count,
        "without_target": without_target,
        "without_occluder": without_occluder,
        "unreadable": unreadable,
    }


class _Folders(NamedTuple):
    """The datasets of a build, as worker processes open them."""

    targets: SourceFolder
    cutouts: SourceFolder
    background: SourceFolder | None


def _occlude_images(
    folders: _Folders, options: OccludeOptions, rows: Sequence[int]
) -> list[tuple[list[ImagePair], int | None]]:
    """What `CompositeMaker.occlude` makes of each image; None targets for one that cannot be read."""
    maker = _open_maker(folders)
    results: list[tuple[list[ImagePair], int | None]] = []
    for row in rows:
        try:
            results.append(maker.occlude(row, options))
        except ImageError as error:
            log.warning("%s", error)
            results.append(([], None))
    return results


@lru_cache(maxsize=1)
def _open_maker(folders: _Folders) -> "CompositeMaker":
    """The open datasets; finding the objects to paste takes long, so a process does it once."""
    cutouts = CutoutSource(folders.cutouts.open())
    targets = (
        cutouts.dataset
        if folders.targets == folders.cutouts
        else folders.targets.open()
    )
    background = None if folders.background is None else folders.background.open()
    return CompositeMaker(targets, cutouts, background)


class CompositeMaker:
    """The datasets that composites are made of.

    targets: whose objects are occluded. cutouts: the objects to paste in front. background: whose images the objects
    of `targets` are pasted into; None to leave them in their own images.
    """

    def __init__(
        self,
        targets: Dataset,
        cutouts: CutoutSource,
        background: Dataset | None = None,
    ) -> None:
        self.targets = targets
        self.cutouts = cutouts
        self.background = background
        self.target_cutouts = cutouts
        if background is not None and targets is not cutouts.dataset:
            self.target_cutouts = CutoutSource(targets)

    @cached_property
    def statistics(self) -> CategoryStatistics:
        """Of all datasets; only plausible composites need them."""
        datasets = [self.targets, self.cutouts.dataset]
        if self.background is not None:
            datasets.append(self.background)
        unique = {id(dataset): dataset for dataset in datasets}
        return CategoryStatistics([*unique.values()])

    def occlude(self, row: int, options: OccludeOptions) -> tuple[list[ImagePair], int]:
        """The pairs of one image, and how many objects of the image could be targets.

        They depend on the datasets, the image's id and the seed only.
        """
        dataset = self.targets if self.background is None else self.background
        info = dataset.image(row)
        random = np.random.default_rng([options.seed, zlib.crc32(info.id.encode())])
        canvas = (
            self._own_image(row, options)
            if self.background is None
            else self._image_with_target(self.background, row, options, random)
        )
        if canvas is None:
            return [], 0
        pairs: list[ImagePair] = []
        for pick in random.permutation(len(canvas.targets)).tolist():
            if len(pairs) == options.per_image:
                break
            scene = TargetScene(
                canvas.pixels,
                canvas.row_in_cutouts,
                canvas.regions,
                canvas.masks,
                canvas.targets[pick],
            )
            placement = self._find_placement(scene, options, random)
            if placement is None:
                continue
            composite, covered = paste(canvas.pixels, placement)
            pair = _Pair(
                canvas.info,
                canvas.regions,
                canvas.complete,
                canvas.regions[scene.target],
                placement,
                len(pairs),
            )
            composite_image = pair.composite(_jpeg(composite), covered)
            pairs.append((pair.original(canvas.data), composite_image))
        return pairs, len(canvas.targets)

    def _own_image(self, row: int, options: OccludeOptions) -> "_Canvas | None":
        """An image as it is, with its complete objects as targets; None if it has none."""
        dataset = self.targets
        info = dataset.image(row)
        geometry = AnnotatedObjects(dataset.regions_of(row))
        complete = [
            item for item in range(len(geometry.regions)) if geometry.is_complete(item)
        ]
        smallest = options.min_area * info.width * info.height
        targets = [item for item in complete if geometry.areas[item] >= smallest]
        if not targets:
            return None
        return _Canvas(
            info,
            tuple(geometry.regions),
            [*geometry.masks.to_dense()],
            {geometry.regions[item].id for item in complete},
            targets,
            np.asarray(dataset.open_image(row)),
            read_encoded_image(dataset, row),
            self._find_row(info),
        )

    def _image_with_target(
        self,
        background: Dataset,
        row: int,
        options: OccludeOptions,
        random: np.random.Generator,
    ) -> "_Canvas | None":
        """An image of the background with a complete object pasted into it, the only target; None if none fits.

        An annotated object of the image tells the size of things and where they stand.
        """
        info = background.image(row)
        geometry = AnnotatedObjects(background.regions_of(row))
        smallest = options.min_area * info.width * info.height
        references = [
            item
            for item in range(len(geometry.regions))
            if geometry.is_complete(item, lenient=True)
        ]
        if not references:
            return None
        pixels = np.asarray(background.open_image(row))
        masks = [*geometry.masks.to_dense()]
        own_row = self.target_cutouts.dataset.images.row.get(info.id, -1)
        for item in random.permutation(references).tolist():
            scene = TargetScene(pixels, own_row, geometry.regions, masks, item)
            placement = find_room(scene, self.target_cutouts, self.statistics, random)
            if placement is None or placement.cutout.mask.sum() < smallest:
                continue
            pasted, covered = paste(pixels, placement)
            cutout = placement.cutout
            mask = Mask.from_dense(covered)
            target = Region(
                id=_free_id("target", geometry.regions),
                name=cutout.name,
                visible=mask,
                amodal=mask,
            )
            return _Canvas(
                _credit(info, cutout.image),
                (target, *geometry.regions),
                [covered, *masks],
                {target.id},
                [0],
                pasted,
                _jpeg(pasted),
                self._find_row(cutout.image),
            )
        return None

    def _find_row(self, image: ImageInfo | None) -> int:
        """The row of a target's photo among those of the cut-outs, -1 if it is not there.

        Another dataset may contain the same photo: an image of the same id is taken for it.
        """
        if image is None:
            return -1
        return self.cutouts.dataset.images.row.get(image.id, -1)

    def _find_placement(
        self, scene: TargetScene, options: OccludeOptions, random: np.random.Generator
    ) -> CutoutPlacement | None:
        """Where which cut-out hides a part of the target."""
        if not options.any_context:
            return find_occluder(
                scene, self.cutouts, self.statistics, rates=options.rates, random=random
            )
        for _ in range(TRIES):
            cutout = self.cutouts.draw(random, other_than=scene.row)
            if cutout is None:
                continue
            placement = place(cutout, scene.masks[scene.target], options.rates, random)
            if placement is not None:
                return placement
        return None


class _Canvas(NamedTuple):
    """An image to occlude objects in.

    masks: visible masks of the regions, bool [height, width] each. complete: ids of regions that are completely
    visible. targets: numbers of those to occlude. data: the encoded image. row_in_cutouts: the photo of the targets,
    from which nothing is pasted; -1 if it is none of those of the cut-outs.
    """

    info: ImageInfo
    regions: tuple[Region, ...]
    masks: list[BoolArray]
    complete: set[str]
    targets: list[int]
    pixels: UInt8Array
    data: bytes
    row_in_cutouts: int


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
            id=_free_id("occluder", self.regions),
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
        credited = _credit(self.info, pasted)
        info = replace(credited, id=f"{pair}-{variant}", path=None)
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


def _free_id(wanted: str, regions: Sequence[Region]) -> str:
    """An id that no region has."""
    taken = {region.id for region in regions}
    id = wanted
    number = 0
    while id in taken:
        number += 1
        id = f"{wanted}{number}"
    return id


def _credit(info: ImageInfo, pasted: ImageInfo | None) -> ImageInfo:
    """The image with the license and the author of what was pasted into it."""
    if pasted is None:
        return info
    return replace(
        info,
        license=_join(info.license, pasted.license),
        attribution=_join(info.attribution, pasted.attribution),
    )


def _join(own: str | None, pasted: str | None) -> str | None:
    """What is said about an image and about the one that a part of it comes from."""
    return "; ".join(dict.fromkeys(text for text in (own, pasted) if text)) or None


def _jpeg(pixels: np.typing.NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **JPEG)
    return file.getvalue()
