"""Annotation formats, one file per format: readers, and writers for the formats people export to.

    format = find_format("cocoa_cls")
    context, annotated_images = format.open(Path("/data/cocoa"), Diagnostics(), split="val")
    for annotated in annotated_images.images:      # an image, its regions, and its samples if the format has questions
        annotated.image, annotated.regions, annotated.samples

`convert_annotations` writes what a reader finds as a dataset folder; `write_dataset` writes a dataset in another
format. docs/extending.md shows how another package adds one.
"""

from maskwise.formats.annotation_format import (
    AnnotatedImages,
    AnnotationFormat,
    PublishedCount,
    find_format,
)
from maskwise.formats.annotations import AnnotatedImage
from maskwise.formats.diagnostics import Diagnostic, Diagnostics
from maskwise.formats.format_reader import ReadSummary, convert_annotations
from maskwise.formats.format_writer import list_writers, write_dataset

__all__ = [
    "AnnotatedImage",
    "AnnotatedImages",
    "AnnotationFormat",
    "Diagnostic",
    "Diagnostics",
    "PublishedCount",
    "ReadSummary",
    "convert_annotations",
    "find_format",
    "list_writers",
    "write_dataset",
]
