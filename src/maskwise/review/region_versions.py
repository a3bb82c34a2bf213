"""Several samples may share a region of their image, and a reviewer may change it for one of them.

Where the samples of an image use one changed version of a region, that version takes the place of the original, also in
samples that were accepted with the original: a region is one thing, and its corrected mask is the mask of that thing.
Where reviewers changed it in different ways, the original (or the first version) keeps the id and each other version
becomes a region of its own.
"""

from collections.abc import Iterable, Sequence

import msgspec

from maskwise.schema import Region, Sample


def merge_region_versions(
    regions: Sequence[Region], samples: Sequence[Sample]
) -> tuple[list[Region], list[Sample], dict[str, dict[str, str]]]:
    """Give every changed version of a region an id of its own; a single one keeps that of the original.

    Returns the regions of the image, the samples that fit them, and the new ids of regions by sample id and old id.
    """
    merged = {region.id: region for region in regions}
    versions = _collect_versions(merged, samples)
    taken = merged.keys() | versions.keys()
    final_versions: dict[str, list[Region]] = {}
    for id, used in versions.items():
        if len(used) == 2 and used[0] == merged.get(id):
            # Accepted as it was in one sample and corrected in another.
            final_versions[id] = [used[1], used[1]]
            merged[id] = used[1]
            continue
        kept = [used[0]]
        for version in used[1:]:
            new_id = _unused_id(id, taken)
            taken.add(new_id)
            kept.append(msgspec.structs.replace(version, id=new_id))
        final_versions[id] = kept
        merged |= {region.id: region for region in kept}
    fitting: list[Sample] = []
    renamed: dict[str, dict[str, str]] = {}
    for sample in samples:
        targets = []
        new_ids = {}
        for target in sample.targets:
            number = versions[target.id].index(target)
            final = final_versions[target.id][number]
            targets.append(final)
            if final.id != target.id:
                new_ids[target.id] = final.id
        fitting.append(msgspec.structs.replace(sample, targets=tuple(targets)))
        if new_ids:
            renamed[sample.id] = new_ids
    return list(merged.values()), fitting, renamed


def _collect_versions(
    originals: dict[str, Region], samples: Iterable[Sample]
) -> dict[str, list[Region]]:
    """The different versions of each region that samples use, by id; the first one keeps the id."""
    versions: dict[str, list[Region]] = {}
    for sample in samples:
        for target in sample.targets:
            known = versions.setdefault(target.id, [])
            if target not in known:
                known.append(target)
    for id, used in versions.items():
        # The original keeps its id, where it is used.
        if originals.get(id) in used:
            used.remove(originals[id])
            used.insert(0, originals[id])
    return versions


def _unused_id(id: str, taken: set[str]) -> str:
    """An id that no region has: the old one with a number."""
    number = 2
    while f"{id}~{number}" in taken:
        number += 1
    return f"{id}~{number}"
