"""A twin: an image that differs from another by one thing, with questions whose truth is known."""

from typing import Literal, NamedTuple

from maskwise.schema import ImageInfo, Region, Sample

TwinKind = Literal["removed", "replaced", "absent question", "uncovered", "covered"]

ABSENT_KINDS: tuple[TwinKind, ...] = ("removed", "replaced", "absent question")
"""Twins in which the target is not there: a model has to say so."""

ORIGINAL = "original"
"""The change of a control that is not a sample of the probed dataset."""


class Twin(NamedTuple):
    """An image with all its regions and encoded bytes, and its changed samples."""

    image: ImageInfo
    regions: tuple[Region, ...]
    data: bytes
    samples: tuple[Sample, ...]
