"""From what an annotation file says of an image to records: masks drawn together, contradictions reported.

A reader parses its format into drafts; `finish` draws each image's masks as one batch and yields scenes.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from maskwise.errors import MaskError
from maskwise.formats.problems import Problems
from maskwise.formats.shapes import Drawn, draw
from maskwise.masks import Mask
from maskwise.schema import Answer, ImageInfo, MaskType, Region, Sample

Pair = tuple[Drawn | MaskError | None, Drawn | MaskError | None]
"""The visible and the amodal mask of an outline, or why it has none."""

BATCH = 512
"""How many outlines, or images, are drawn together."""

MAX_ORDER = 2**31 - 1
"""The deepest order a dataset folder holds."""


class Outline(NamedTuple):
    """A region before its masks are drawn.

    A mask is a segmentation (raw JSON or decoded), a `Mask`, or None where the source does not tell. Visible and
    amodal being one object says that nothing is hidden. `record` names it in problems.
    """

    id: str
    name: str
    record: str
    visible: object = None
    amodal: object = None
    part_of: str | None = None
    order: int | None = None
    crowd: bool = False


class Question(NamedTuple):
    """A sample before its targets are drawn; `targets` are ids of the draft's outlines, in order."""

    id: str
    text: str
    record: str
    targets: tuple[str, ...] = ()
    mask_type: MaskType = "visible"
    answer: Answer | None = None
    ignore: Mask | None = None
    tags: dict[str, str] | None = None


class Draft(NamedTuple):
    """An image as its annotation file tells it.

    `file` is the annotation file, for problems. `data`: the encoded image where the file itself holds it.
    """

    image: ImageInfo
    file: str
    outlines: tuple[Outline, ...] = ()
    questions: tuple[Question, ...] = ()
    data: bytes | None = None


class Scene(NamedTuple):
    """What readers yield: an image, its regions, the questions about it, its encoded bytes where it is no file."""

    image: ImageInfo
    regions: tuple[Region, ...]
    samples: tuple[Sample, ...] = ()
    data: bytes | None = None


def finish(drafts: Iterable[Draft], problems: Problems, *, overlaps: bool = False) -> Iterator[Scene]:
    """Drafts as scenes, in order. What cannot be drawn is skipped, and every question about it too.

    Image and sample ids come out once each: a second image or question of the same id is skipped. overlaps:
    whether official protocols need the pixels that several parts of one outline cover.
    """
    questions: set[str] = set()
    # Strict reading stops at the first bad record of the file, so nothing may be drawn after its turn.
    for batch in _batches(_unique(drafts, problems), 1 if problems.strict else BATCH):
        drawn = _draw([outline for draft in batch for outline in draft.outlines], _sizes(batch), overlaps)
        for draft in batch:
            regions = _to_regions(draft, drawn, problems)
            samples = tuple(_to_samples(draft, regions, questions, problems=problems))
            yield Scene(draft.image, tuple(regions.values()), samples, draft.data)


def _unique(drafts: Iterable[Draft], problems: Problems) -> Iterator[Draft]:
    """The drafts, each image id once."""
    seen: set[str] = set()
    for draft in drafts:
        id = draft.image.id
        if id in seen:
            problems.skip(
                "duplicate image id", file=draft.file, record=f"image {id}", expected="one", found=id
            )
            continue
        seen.add(id)
        yield draft


def _batches(drafts: Iterable[Draft], count: int) -> Iterator[list[Draft]]:
    """Drafts that are drawn together: as many as have `count` outlines, at most `count`."""
    batch: list[Draft] = []
    outlines = 0
    for draft in drafts:
        batch.append(draft)
        outlines += len(draft.outlines)
        if outlines >= count or len(batch) >= count:
            yield batch
            batch, outlines = [], 0
    if batch:
        yield batch


def _sizes(batch: list[Draft]) -> list[tuple[int, int]]:
    """Height and width of the image of every outline."""
    return [(draft.image.height, draft.image.width) for draft in batch for _ in draft.outlines]


def _draw(outlines: list[Outline], sizes: list[tuple[int, int]], overlaps: bool) -> Iterator[Pair]:
    """The visible and the amodal mask of every outline."""
    amodals = draw([outline.amodal for outline in outlines], sizes, overlaps=overlaps)
    apart = [outline.visible is not outline.amodal for outline in outlines]
    shown = [outline.visible if hidden else None for outline, hidden in zip(outlines, apart)]
    visibles = draw(shown, sizes, overlaps=overlaps)
    return iter(
        [(visible if hidden else amodal, amodal) for hidden, visible, amodal in zip(apart, visibles, amodals)]
    )


def _to_regions(draft: Draft, drawn: Iterator[Pair], problems: Problems) -> dict[str, Region]:
    """The regions by id; those that cannot be drawn, and second ones of an id, are left out. Takes as many masks from
    `drawn` as the draft has outlines.
    """
    found: dict[str, tuple[Outline, Drawn | None, Drawn | None]] = {}
    for outline, (visible, amodal) in zip(draft.outlines, drawn):
        if isinstance(visible, MaskError) or isinstance(amodal, MaskError) or visible is amodal is None:
            error = next((mask.message for mask in (visible, amodal) if isinstance(mask, MaskError)), "none")
            _skip(
                draft, outline, problems, reason="mask that is none", expected="a segmentation", found=error
            )
        elif outline.id in found:
            _skip(draft, outline, problems, reason="duplicate region id", expected="one", found=outline.id)
        else:
            found[outline.id] = (outline, visible, amodal)
    wholes = {id: outline.part_of for id, (outline, _, _) in found.items()}
    return {id: _to_region(draft, *masks, wholes=wholes, problems=problems) for id, masks in found.items()}


def _to_region(
    draft: Draft,
    outline: Outline,
    visible: Drawn | None,
    amodal: Drawn | None,
    *,
    wholes: dict[str, str | None],
    problems: Problems,
) -> Region:
    """The region, its contradictions reported. Masks stay as they are; what a dataset cannot hold is left out: spaces
    around a name, an order that is no depth, a whole that is not there.
    """

    def keep(reason: str, expected: str, found: object) -> None:
        problems.keep(reason, file=draft.file, record=outline.record, expected=expected, found=found)

    for drawn in (visible, amodal):
        if drawn is not None and drawn.oddity:
            keep("odd polygon", "x, y of three points or more", drawn.oddity)
    if visible is not None and amodal is not None and visible is not amodal:
        inside, area, _ = visible.mask.areas_with(amodal.mask)
        if inside < area:
            keep("visible not inside amodal", "every pixel", f"{area - inside} of {area} pixels outside")
    name, order, part_of = outline.name.strip(), outline.order, outline.part_of
    if name != outline.name:
        keep("spaces around a name", repr(name), repr(outline.name))
    if order is not None and not 1 <= order <= MAX_ORDER:
        keep("order is no depth", "1 or more", order)
        order = None
    if not _ends_at_a_whole(outline.id, wholes):
        keep("part of an unknown region", "a region of this image, not a part of this one", part_of)
        part_of = None
    return Region(
        id=outline.id,
        name=name,
        visible=visible and visible.mask,
        amodal=amodal and amodal.mask,
        part_of=part_of,
        order=order,
        crowd=outline.crowd,
        overlap=next((drawn.overlap for drawn in (visible, amodal) if drawn is not None), None),
    )


def _ends_at_a_whole(id: str, wholes: dict[str, str | None]) -> bool:
    """Whether going from part to whole ends, without missing a region or going in a circle."""
    seen = {id}
    while (whole := wholes[id]) is not None:
        if whole in seen or whole not in wholes:
            return False
        seen.add(whole)
        id = whole
    return True


def _to_samples(
    draft: Draft, regions: dict[str, Region], seen: set[str], *, problems: Problems
) -> Iterator[Sample]:
    for question in draft.questions:
        fault = _fault(question, regions, seen)
        if fault is not None:
            reason, expected, found = fault
            _skip(draft, question, problems, reason=reason, expected=expected, found=found)
            continue
        seen.add(question.id)
        yield Sample(
            id=question.id,
            image_id=draft.image.id,
            question=question.text,
            mask_type=question.mask_type,
            targets=tuple(regions[target] for target in question.targets),
            answer=question.answer,
            ignore=question.ignore,
            tags=question.tags or {},
        )


def _fault(question: Question, regions: dict[str, Region], seen: set[str]) -> tuple[str, str, str] | None:
    """Why a question cannot be used: reason, what was expected, what came."""
    if question.id in seen:
        return "duplicate sample id", "one", question.id
    for target in question.targets:
        if target not in regions:
            return "question about a region that was skipped", "regions that can be read", target
    return None if question.text.strip() else ("empty question", "words", repr(question.text))


def _skip(
    draft: Draft, item: Outline | Question, problems: Problems, *, reason: str, expected: str, found: object
) -> None:
    problems.skip(reason, file=draft.file, record=item.record, expected=expected, found=found)
