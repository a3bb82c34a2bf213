"""Collect the regions that the questions of one image refer to, each once."""

import msgspec

from maskwise.formats.annotations import RegionAnnotation


class RegionCollector:
    """Collects the region annotations of one image. The same name and segmentations are the same region."""

    def __init__(self) -> None:
        self._regions: dict[str, RegionAnnotation] = {}
        self._ids: dict[tuple[str, bytes, bytes], str] = {}

    def add(
        self, name: str, record: str, *, visible: object = None, amodal: object = None
    ) -> str:
        """The id of a region, new or added before."""
        key = (name, _to_bytes(visible), _to_bytes(amodal))
        if key not in self._ids:
            id = self._ids[key] = str(len(self._ids))
            self._regions[id] = RegionAnnotation(
                id, name, record, visible=visible, amodal=amodal
            )
        return self._ids[key]

    def link(self, part: str, whole: str) -> None:
        """Record that one region is a part of another."""
        if part != whole:
            self._regions[part] = msgspec.structs.replace(
                self._regions[part], part_of=whole
            )

    @property
    def regions(self) -> tuple[RegionAnnotation, ...]:
        """All regions, in order of first appearance."""
        return tuple(self._regions.values())


def _to_bytes(segmentation: object) -> bytes:
    if isinstance(segmentation, msgspec.Raw):
        return bytes(segmentation)
    return msgspec.json.encode(segmentation)
