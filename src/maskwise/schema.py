"""The records everything speaks in: Region, Sample, Prediction, Score. Checked once, at construction.

A record is its own JSON form (`msgspec.json`), masks as COCO RLE. Records are frozen; collections are tuples.
"""

from typing import Literal

import msgspec

from maskwise.errors import RecordError
from maskwise.masks import Mask

MaskType = Literal["visible", "amodal", "both"]
Status = Literal["scored", "failed", "missing", "excluded"]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What all records share: frozen, fields by name, unknown fields refused."""


class Region(Record, frozen=True, kw_only=True):
    """One thing in an image, object or part.

    At least one of `visible` and `amodal` is known; both have the image's size. A fully hidden thing has an empty
    visible mask. `part_of` is the id of the region this one is a part of. Visible is not always inside amodal in
    published data: that is reported by `maskwise validate`, never repaired.
    """

    id: str
    name: str
    visible: Mask | None = None
    amodal: Mask | None = None
    part_of: str | None = None
    order: int | None = None
    """Depth, 1 = front, where the source tells."""
    crowd: bool = False
    overlap: Mask | None = None
    """Where the source's own pieces of this region overlap: some official protocols count those pixels as neither."""

    def __post_init__(self) -> None:
        if not self.id:
            raise RecordError("a region needs an id")
        sizes = {mask.size for mask in (self.visible, self.amodal, self.overlap) if mask is not None}
        if len(sizes) > 1:
            raise RecordError(f"region {self.id!r}: its masks differ in size: {sorted(sizes)}")
        if self.visible is None and self.amodal is None:
            raise RecordError(f"region {self.id!r}: neither a visible nor an amodal mask")
        if self.part_of == self.id:
            raise RecordError(f"region {self.id!r} is a part of itself")

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the image."""
        mask = self.visible if self.visible is not None else self.amodal
        assert mask is not None
        return mask.size

    @property
    def occluded(self) -> Mask | None:
        """Amodal minus visible, where both are known."""
        if self.visible is None or self.amodal is None:
            return None
        return self.amodal - self.visible

    def mask(self, mask_type: Literal["visible", "amodal"]) -> Mask | None:
        """The mask of one type."""
        return self.visible if mask_type == "visible" else self.amodal


class Phrase(Record, frozen=True, kw_only=True):
    """Characters [start, stop) of an answer and the masks they speak of, by position among the sample's targets (or
    the prediction's regions).
    """

    start: int
    stop: int
    regions: tuple[int, ...]


class Answer(Record, frozen=True, kw_only=True):
    """Words, and which of them each mask belongs to. Phrases may be unknown (empty)."""

    text: str
    phrases: tuple[Phrase, ...] = ()

    def __post_init__(self) -> None:
        for phrase in self.phrases:
            if not 0 <= phrase.start < phrase.stop <= len(self.text):
                raise RecordError(
                    f"phrase [{phrase.start}, {phrase.stop}) lies outside the answer of {len(self.text)} characters"
                )


class ImageInfo(Record, frozen=True, kw_only=True):
    """An image of a dataset. `path` is relative to the dataset's image root, or None when it is embedded."""

    id: str
    width: int
    height: int
    path: str | None = None

    def __post_init__(self) -> None:
        if self.width <= 0 or self.height <= 0:
            raise RecordError(f"image {self.id!r}: size {self.width} x {self.height} is empty")


class Sample(Record, frozen=True, kw_only=True):
    """One question about one image and what a right reply is.

    `targets`: none, one or many regions, in the order the answer names them. `mask_type`: which mask the question
    wants. `ignore`: pixels that count for nothing. `tags`: what reports slice by (question_type, source, split, ...).
    """

    id: str
    image_id: str
    question: str
    mask_type: MaskType = "visible"
    targets: tuple[Region, ...] = ()
    answer: Answer | None = None
    ignore: Mask | None = None
    tags: dict[str, str] = {}

    def __post_init__(self) -> None:
        sizes = {region.size for region in self.targets} | ({self.ignore.size} if self.ignore else set())
        if len(sizes) > 1:
            raise RecordError(f"sample {self.id!r}: masks of different sizes: {sorted(sizes)}")
        _check_phrases(f"sample {self.id!r}", self.answer, len(self.targets))


class PredictedRegion(Record, frozen=True, kw_only=True):
    """One region a model found: either mask or both, with its confidence in [0, 1] and, if it says, a name."""

    visible: Mask | None = None
    amodal: Mask | None = None
    score: float = 1.0
    name: str | None = None

    def __post_init__(self) -> None:
        if self.visible is None and self.amodal is None:
            raise RecordError("a predicted region needs a visible or an amodal mask")
        if not 0.0 <= self.score <= 1.0:
            raise RecordError(f"score {self.score} is not within 0 and 1")


class Prediction(Record, frozen=True, kw_only=True):
    """What a model said to a sample. `no_target` says "nothing here"; `error` says why there is no reply at all.

    `mask_type` is the type the model decided on, or None when it does not decide. `forced` marks a reply made with
    the true answer in the prompt.
    """

    sample: str
    answer: Answer | None = None
    mask_type: MaskType | None = None
    regions: tuple[PredictedRegion, ...] = ()
    no_target: bool = False
    error: str | None = None
    forced: bool = False

    def __post_init__(self) -> None:
        _check_phrases(f"prediction for {self.sample!r}", self.answer, len(self.regions))


class Score(Record, frozen=True, kw_only=True):
    """One sample under one protocol. Sums, not averages, so that any group of rows can be averaged later.

    `value` is the sample's contribution to gIoU with `weight`; `intersection` and `union` its contribution to cIoU.
    A sample that failed or was not scored has no value, never a zero that looks like one.
    """

    sample: str
    protocol: str
    status: Status
    value: float | None = None
    weight: float = 1.0
    intersection: int = 0
    union: int = 0
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.status == "scored") != (self.value is not None):
            raise RecordError(f"score of {self.sample!r}: status {self.status} with value {self.value}")


def _check_phrases(where: str, answer: Answer | None, regions: int) -> None:
    for phrase in answer.phrases if answer else ():
        if any(not 0 <= index < regions for index in phrase.regions):
            raise RecordError(
                f"{where}: a phrase speaks of mask {max(phrase.regions)}, but there are {regions}"
            )
