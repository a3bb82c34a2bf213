"""Twins of photographs: an object of another image is pasted, as `maskwise build occlude` does.

The pasted object is there in one image and not in the other, which is exact, and it covers
an object that was completely visible, whose amodal mask is therefore known.
"""

from collections.abc import Iterator
from typing import NamedTuple

from maskwise.builder.cutouts import CutoutSource
from maskwise.builder.occlude import CompositeMaker, ImagePair, OccludeOptions
from maskwise.formats import AnnotatedImage
from maskwise.language.category_names import find_category_name
from maskwise.probes.changed_data import changed_sample
from maskwise.probes.twin import ORIGINAL, Twin, TwinKind
from maskwise.schema import MaskType, Region, Sample

QUESTIONS: tuple[tuple[MaskType, str], ...] = (
    ("visible", "Segment the {name}."),
    ("amodal", "Segment the whole {name}, including any hidden part."),
)


class _Side(NamedTuple):
    """One image of a pair. control: the other image has what it is compared with."""

    image: AnnotatedImage
    kind: TwinKind | None
    targets: tuple[Region, ...]


def make_pasted_twins(
    cutouts: CutoutSource, row: int, options: OccludeOptions
) -> Iterator[Twin]:
    """Both images of the pair of an image, with questions about the covered and the pasted object."""
    maker = CompositeMaker(cutouts.dataset, cutouts)
    pairs, _ = maker.occlude(row, options)
    for pair in pairs:
        samples: dict[str, list[Sample]] = {"original": [], "composite": []}
        for sample in _pair_samples(pair):
            samples[sample.image_id.rsplit("-", 1)[1]].append(sample)
        for image in pair:
            about_it = samples[image.image.id.rsplit("-", 1)[1]]
            if about_it:
                assert image.data is not None
                yield Twin(image.image, image.regions, image.data, tuple(about_it))


def _pair_samples(pair: ImagePair) -> Iterator[Sample]:
    original, composite = pair
    before = original.samples[0]
    after = composite.samples[0]
    if before.tags["name"] == "unique":
        name = before.targets[0].name
        covered = _Side(composite, "covered", after.targets)
        uncovered = _Side(original, None, before.targets)
        yield from _ask(name, uncovered, covered)
    pasted = composite.regions[0]
    names = [region.name for region in original.regions]
    if not any(find_category_name(name, pasted.name) for name in names):
        present = _Side(composite, None, (pasted,))
        absent = _Side(original, "removed", ())
        yield from _ask(pasted.name, present, absent)


def _ask(name: str, control: _Side, twin: _Side) -> Iterator[Sample]:
    """The same questions about both images of a pair."""
    pair = control.image.samples[0].tags["pair"]
    for mask_type, template in QUESTIONS:
        ids: dict[str, str] = {}
        for side in (control, twin):
            change = side.kind or ORIGINAL
            image = side.image.image
            sample = Sample(
                id=f"{pair}-{twin.kind}-{mask_type}",
                image_id=image.id,
                question=template.format(name=name),
                mask_type=mask_type,
                targets=side.targets,
            )
            control_id = ids.get(ORIGINAL, f"{sample.id}~{ORIGINAL}")
            made = changed_sample(
                sample, image, change, change=change, control=control_id, source=pair
            )
            ids[change] = made.id
            yield made
