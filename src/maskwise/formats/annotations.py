"""Annotations of one image as a file gives them, and their conversion to regions and samples.

A reader parses its format into `ImageAnnotation`s. `decode_annotations` decodes the segmentations of many images as one
batch, reports contradictions, and yields `AnnotatedImage`s, which hold the records of `maskwise.schema`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from maskwise.errors import MaskError
from maskwise.formats.diagnostics import Diagnostics
from maskwise.formats.segmentations import DecodedMask, decode_segmentations
from maskwise.masks import Mask
from maskwise.schema import Answer, ImageInfo, MaskType, Region, Sample, Turn

MaskPair = tuple[DecodedMask | MaskError | None, DecodedMask | MaskError | None]
"""The visible and the amodal mask of a region annotation, or the reason why it cannot be decoded."""

BATCH = 512
"""How many regions, or images, are decoded together."""

BATCH_BYTES = 2**25
"""A batch ends earlier at this many bytes of embedded images, so that memory does not depend on their size."""

MAX_ORDER = 2**31 - 1
"""The largest depth order that a dataset folder can store."""


class RegionAnnotation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A region before its masks are decoded.

    A mask is a segmentation (raw JSON or decoded JSON), a `Mask`, or None if the format
    does not provide it. If `visible` and `amodal` are the same Python object, nothing
    of the region is occluded. `record` names the annotation in diagnostics. Files that
    `write_dataset` writes hold these records without `record` and masks.
    """

    id: str
    name: str
    record: str = ""
    visible: Any = None
    amodal: Any = None
    part_of: str | None = None
    order: int | None = None
    crowd: bool = False
    overlap: Mask | None = None


class QuestionAnnotation(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sample before its targets are decoded.

    `targets` are ids of the image's region annotations, in order; `other_targets` are
    those of further annotators, one tuple for each. `record` names the
    annotation in diagnostics. Files that `write_dataset` writes hold these records
    without `record`.
    """

    id: str
    question: str
    record: str = ""
    mask_type: MaskType = "visible"
    targets: tuple[str, ...] = ()
    answer: Answer | None = None
    ignore: Mask | None = None
    tags: dict[str, str] = {}
    other_targets: tuple[tuple[str, ...], ...] = ()
    turns: tuple[Turn, ...] = ()


class ImageAnnotation(NamedTuple):
    """Everything an annotation file says about one image.

    `file` is the name of the annotation file, for diagnostics. `data` holds the encoded image if the file embeds it.
    """

    image: ImageInfo
    file: str
    regions: tuple[RegionAnnotation, ...] = ()
    questions: tuple[QuestionAnnotation, ...] = ()
    data: bytes | None = None


class AnnotatedImage(NamedTuple):
    """An image with its regions and samples; `data` holds the encoded image if it is not a file."""

    image: ImageInfo
    regions: tuple[Region, ...]
    samples: tuple[Sample, ...] = ()
    data: bytes | None = None


def decode_annotations(
    annotations: Iterable[ImageAnnotation],
    diagnostics: Diagnostics,
    *,
    overlaps: bool = False,
    exact: bool = False,
) -> Iterator[AnnotatedImage]:
    """Decode annotations in order. Regions that cannot be decoded are skipped, with every question about them.

    A second image or question with the same id is skipped. overlaps: also compute the pixels that several parts of
    one segmentation cover, which some official protocols need. exact: keep names, orders and questions unchanged, for
    files written by `write_dataset`.
    """
    questions: set[str] = set()
    # With `strict`, reading stops at the first bad record, so nothing after that record may be decoded.
    for batch in _batches(
        _unique(annotations, diagnostics), 1 if diagnostics.strict else BATCH
    ):
        masks = _decode_masks(
            [region for image in batch for region in image.regions],
            _sizes(batch),
            overlaps,
        )
        for annotation in batch:
            regions = _to_regions(annotation, masks, diagnostics, exact=exact)
            samples = tuple(
                _to_samples(
                    annotation, regions, questions, diagnostics=diagnostics, exact=exact
                )
            )
            yield AnnotatedImage(
                annotation.image, tuple(regions.values()), samples, annotation.data
            )


def _unique(
    annotations: Iterable[ImageAnnotation], diagnostics: Diagnostics
) -> Iterator[ImageAnnotation]:
    """The annotations without those that repeat an image id."""
    seen: set[str] = set()
    for annotation in annotations:
        id = annotation.image.id
        if id in seen:
            diagnostics.skip(
                "duplicate image id",
                file=annotation.file,
                record=f"image {id}",
                expected="a unique id",
                found=id,
            )
            continue
        seen.add(id)
        yield annotation


def _batches(
    annotations: Iterable[ImageAnnotation], count: int
) -> Iterator[list[ImageAnnotation]]:
    """Images that are decoded together: a batch ends at `count` regions or `count` images."""
    batch: list[ImageAnnotation] = []
    regions = 0
    embedded = 0
    for annotation in annotations:
        batch.append(annotation)
        regions += len(annotation.regions)
        embedded += len(annotation.data or b"")
        if regions >= count or len(batch) >= count or embedded >= BATCH_BYTES:
            yield batch
            batch = []
            regions = 0
            embedded = 0
    if batch:
        yield batch


def _sizes(batch: list[ImageAnnotation]) -> list[tuple[int, int]]:
    """Height and width of the image of every region annotation."""
    return [
        (image.image.height, image.image.width)
        for image in batch
        for _ in image.regions
    ]


def _decode_masks(
    regions: list[RegionAnnotation], sizes: list[tuple[int, int]], overlaps: bool
) -> Iterator[MaskPair]:
    """The visible and the amodal mask of every region annotation."""
    amodals = decode_segmentations(
        [region.amodal for region in regions], sizes, overlaps=overlaps
    )
    different = [region.visible is not region.amodal for region in regions]
    segmentations = [
        region.visible if differs else None
        for region, differs in zip(regions, different)
    ]
    visibles = decode_segmentations(segmentations, sizes, overlaps=overlaps)
    return iter(
        [
            (visible if differs else amodal, amodal)
            for differs, visible, amodal in zip(different, visibles, amodals)
        ]
    )


def _to_regions(
    annotation: ImageAnnotation,
    masks: Iterator[MaskPair],
    diagnostics: Diagnostics,
    *,
    exact: bool,
) -> dict[str, Region]:
    """The regions by id, without those that cannot be decoded or repeat an id.

    Takes as many pairs from `masks` as the image has region annotations.
    """
    decoded_regions: dict[
        str, tuple[RegionAnnotation, DecodedMask | None, DecodedMask | None]
    ] = {}
    for region, (visible, amodal) in zip(annotation.regions, masks):
        has_no_mask = visible is None and amodal is None
        if (
            isinstance(visible, MaskError)
            or isinstance(amodal, MaskError)
            or has_no_mask
        ):
            messages = [
                mask.message
                for mask in (visible, amodal)
                if isinstance(mask, MaskError)
            ]
            _skip(
                annotation,
                region,
                diagnostics,
                reason="invalid mask",
                expected="a segmentation",
                found=messages[0] if messages else "none",
            )
        elif region.id in decoded_regions:
            _skip(
                annotation,
                region,
                diagnostics,
                reason="duplicate region id",
                expected="a unique id",
                found=region.id,
            )
        else:
            decoded_regions[region.id] = (region, visible, amodal)
    wholes = {id: region.part_of for id, (region, _, _) in decoded_regions.items()}
    return {
        id: _to_region(
            annotation, *decoded, wholes=wholes, diagnostics=diagnostics, exact=exact
        )
        for id, decoded in decoded_regions.items()
    }


def _to_region(
    annotation: ImageAnnotation,
    region: RegionAnnotation,
    visible: DecodedMask | None,
    amodal: DecodedMask | None,
    *,
    wholes: dict[str, str | None],
    diagnostics: Diagnostics,
    exact: bool,
) -> Region:
    """The region, with its contradictions reported. Masks are never changed.

    What a dataset cannot store is dropped: spaces around a name, an order below 1, a `part_of` that is not a region.
    """

    def warn(reason: str, expected: str, found: object) -> None:
        diagnostics.warn(
            reason,
            file=annotation.file,
            record=region.record,
            expected=expected,
            found=found,
        )

    for mask in (visible, amodal):
        if mask is not None and mask.irregularity:
            warn("irregular polygon", "x, y of three points or more", mask.irregularity)
    if visible is not None and amodal is not None and visible is not amodal:
        inside, area, _ = visible.mask.areas_with(amodal.mask)
        if inside < area:
            warn(
                "visible not inside amodal",
                "every pixel",
                f"{area - inside} of {area} pixels outside",
            )
    name = region.name if exact else region.name.strip()
    order = region.order
    part_of = region.part_of
    if name != region.name:
        warn("spaces around a name", repr(name), repr(region.name))
    if order is not None and not exact and not 1 <= order <= MAX_ORDER:
        warn("order is not a depth", "1 or more", order)
        order = None
    if not _reaches_a_whole(region.id, wholes):
        warn(
            "part of an unknown region",
            "another region of this image, without a cycle",
            part_of,
        )
        part_of = None
    overlap = next(
        (mask.overlap for mask in (visible, amodal) if mask is not None), None
    )
    return Region(
        id=region.id,
        name=name,
        visible=visible and visible.mask,
        amodal=amodal and amodal.mask,
        part_of=part_of,
        order=order,
        crowd=region.crowd,
        overlap=overlap if region.overlap is None else region.overlap,
    )


def _reaches_a_whole(id: str, wholes: dict[str, str | None]) -> bool:
    """Whether following `part_of` ends at a region that is not a part, without a missing region or a cycle."""
    seen = {id}
    while (whole := wholes[id]) is not None:
        if whole in seen or whole not in wholes:
            return False
        seen.add(whole)
        id = whole
    return True


def _to_samples(
    annotation: ImageAnnotation,
    regions: dict[str, Region],
    seen: set[str],
    *,
    diagnostics: Diagnostics,
    exact: bool,
) -> Iterator[Sample]:
    for question in annotation.questions:
        fault = _fault(question, regions, seen, exact=exact)
        if fault is not None:
            reason, expected, found = fault
            _skip(
                annotation,
                question,
                diagnostics,
                reason=reason,
                expected=expected,
                found=found,
            )
            continue
        seen.add(question.id)
        yield Sample(
            id=question.id,
            image_id=annotation.image.id,
            question=question.question,
            mask_type=question.mask_type,
            targets=tuple(regions[target] for target in question.targets),
            answer=question.answer,
            ignore=question.ignore,
            tags=question.tags,
            other_targets=tuple(
                tuple(regions[target] for target in targets)
                for targets in question.other_targets
            ),
            turns=question.turns,
        )


def _fault(
    question: QuestionAnnotation,
    regions: dict[str, Region],
    seen: set[str],
    *,
    exact: bool,
) -> tuple[str, str, str] | None:
    """Why a question cannot be used: the reason, what was expected, what was found."""
    if question.id in seen:
        return "duplicate sample id", "a unique id", question.id
    others = [target for targets in question.other_targets for target in targets]
    for target in (*question.targets, *others):
        if target not in regions:
            return "question about a skipped region", "regions that can be read", target
    if not exact and not question.question.strip():
        return "empty question", "a question", repr(question.question)
    return None


def _skip(
    annotation: ImageAnnotation,
    item: RegionAnnotation | QuestionAnnotation,
    diagnostics: Diagnostics,
    *,
    reason: str,
    expected: str,
    found: object,
) -> None:
    diagnostics.skip(
        reason, file=annotation.file, record=item.record, expected=expected, found=found
    )
