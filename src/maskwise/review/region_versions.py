"""Several samples may share a region of their image, and a reviewer may change it for one of them.

Where all samples of an image use the same version of a region, that version takes the place of the original. Where they
use different ones, the original (or the first) keeps the id and each other version becomes a region of its own.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from maskwise.schema import Region, Sample


class MergedRegions(NamedTuple):
    """Regions of an image and samples that fit them. renamed: new ids of regions, by sample id and old id."""

    regions: list[Region]
    samples: list[Sample]
    renamed: dict[str, dict[str, str]]


def merge_region_versions(
    regions: Sequence[Region], samples: Sequence[Sample]
) -> MergedRegions:
    """Give every version of a region that the samples use an id of its own."""
    originals = {region.id: region for region in regions}
    used: dict[str, list[Region]] = {}
    for target in (target for sample in samples for target in sample.targets):
        versions = used.setdefault(target.id, [])
        if target not in versions:
            versions.append(target)
    taken = set(originals) | set(used)
    final = dict(originals)
    place = dict[tuple[str, int], Region]()
    for id, versions in used.items():
        # The original version keeps its id, where it is used.
        versions.sort(key=lambda version: version != originals.get(id))
        for number, version in enumerate(versions):
            kept = (
                version
                if number == 0
                else msgspec.structs.replace(version, id=_new_id(id, taken))
            )
            final[kept.id] = place[id, number] = kept
    changed: list[Sample] = []
    renamed: dict[str, dict[str, str]] = {}
    for sample in samples:
        targets = tuple(
            place[target.id, used[target.id].index(target)] for target in sample.targets
        )
        names = {
            old.id: new.id
            for old, new in zip(sample.targets, targets)
            if old.id != new.id
        }
        changed.append(msgspec.structs.replace(sample, targets=targets))
        renamed |= {sample.id: names} if names else {}
    return MergedRegions(list(final.values()), changed, renamed)


def _new_id(id: str, taken: set[str]) -> str:
    """An id that no region has: the old one with a number."""
    found = next(
        name for number in itertools.count(2) if (name := f"{id}~{number}") not in taken
    )
    taken.add(found)
    return found
