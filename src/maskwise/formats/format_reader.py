"""Read annotations of a format or benchmark and write them as a dataset folder."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from maskwise.errors import FormatError, ImageError
from maskwise.formats.annotation_format import (
    AnnotatedImages,
    AnnotationFormat,
    PublishedCount,
)
from maskwise.formats.annotations import AnnotatedImage
from maskwise.formats.diagnostics import Diagnostic, Diagnostics
from maskwise.formats.read_context import ImageFolder, ReadContext
from maskwise.images import check_complete
from maskwise.store import DatasetWriter

DIAGNOSTICS = "diagnostics.jsonl"
"""A file in the dataset folder with one line per diagnostic."""

MAX_IMAGE_BYTES = 2**28
"""The largest image file that is embedded."""


class CountComparison(msgspec.Struct, frozen=True):
    """A published count and the count found; `found` is None if the published count is for all splits together."""

    published: PublishedCount
    found: int | None


class ReadSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What was kept, and what was skipped or irregular and why, beside the published counts.

    Records with `warnings` are among the kept ones. `no_target`: how many of the questions have no target.
    """

    name: str
    split: str
    out: str
    kept: dict[str, int]
    no_target: int
    skipped: dict[str, int]
    warnings: dict[str, int]
    compared: tuple[CountComparison, ...]


def convert_annotations(
    format: AnnotationFormat,
    path: Path,
    out: Path,
    *,
    split: str | None = None,
    images: Path | None = None,
    with_images: bool = True,
    mapping: Path | None = None,
    options: Mapping[str, object] | None = None,
    strict: bool = False,
    embed: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> ReadSummary:
    """Write one split as the dataset folder `out`, with `diagnostics.jsonl` beside its tables.

    images: root of the images, if not `path`; they stay where they are unless `embed`. options: options of this
    reader. strict: stop at the first record that would be skipped. progress(done, total) is called after every image.
    """
    if embed and not with_images:
        raise FormatError("images cannot be embedded and left out at the same time")
    early: list[Diagnostic] = []
    diagnostics = Diagnostics(early.append, strict=strict)
    context, annotated_images = format.open(
        path,
        diagnostics,
        split=split,
        images=images,
        with_images=with_images,
        mapping=mapping,
        options=options,
    )
    kept = dict.fromkeys(("images", "regions", "questions", "targets", "no_target"), 0)
    root = context.images.root.resolve() if context.images and not embed else None
    name = annotated_images.name or f"{format.name} {context.split}"
    about = _about(format, context, annotated_images)
    with DatasetWriter(
        out, name=name, image_root=root, about=about, overwrite=overwrite
    ) as writer:
        with open(writer.folder / DIAGNOSTICS, "wb") as lines:
            diagnostics.sink = lambda diagnostic: lines.write(
                msgspec.json.encode(diagnostic) + b"\n"
            )
            for diagnostic in early:
                diagnostics.sink(diagnostic)
            for done, annotated in enumerate(annotated_images.images, 1):
                progress(done, annotated_images.total)
                if _is_damaged(annotated, context):
                    continue
                _add(
                    writer,
                    _embed(annotated, context.images)
                    if embed and context.images
                    else annotated,
                )
                _count(kept, annotated)
        _check_kept(format, context, kept)
    progress(annotated_images.total, annotated_images.total)
    return ReadSummary(
        name=format.name,
        split=context.split,
        out=str(out),
        no_target=kept.pop("no_target"),
        kept=kept,
        skipped=dict(diagnostics.skipped.most_common()),
        warnings=dict(diagnostics.warnings.most_common()),
        compared=_compare(format, context.split, kept),
    )


def _is_damaged(annotated: AnnotatedImage, context: ReadContext) -> bool:
    """Whether the file of an image is cut off; such an image is skipped, with its questions."""
    image = annotated.image
    source: bytes | Path | None = annotated.data
    if source is None and image.path is not None and context.images is not None:
        file = context.images.root / image.path
        # A missing file was reported already, where the format needs it.
        source = file if file.is_file() else None
    if source is None:
        return False
    try:
        check_complete(source)
    except ImageError as error:
        context.diagnostics.skip(
            "damaged image",
            file=str(image.path or context.annotations),
            record=f"image {image.id}",
            expected="a complete image file",
            found=str(error),
        )
        return True
    return False


def _add(writer: DatasetWriter, annotated: AnnotatedImage) -> None:
    writer.add_image(annotated.image, annotated.regions, annotated.data)
    for sample in annotated.samples:
        writer.add_sample(sample)


def _embed(annotated: AnnotatedImage, folder: ImageFolder) -> AnnotatedImage:
    """The same with the image's bytes."""
    if annotated.data is not None or annotated.image.path is None:
        return annotated
    path = folder.root / annotated.image.path
    if path.stat().st_size > MAX_IMAGE_BYTES:
        raise ImageError(
            f"{path} has {path.stat().st_size} bytes; at most {MAX_IMAGE_BYTES} are embedded"
        )
    image = msgspec.structs.replace(annotated.image, path=None)
    return annotated._replace(image=image, data=path.read_bytes())


def _count(kept: dict[str, int], annotated: AnnotatedImage) -> None:
    kept["images"] += 1
    kept["regions"] += len(annotated.regions)
    kept["questions"] += len(annotated.samples)
    kept["targets"] += sum(len(sample.targets) for sample in annotated.samples)
    kept["no_target"] += sum(not sample.targets for sample in annotated.samples)


def _about(
    format: AnnotationFormat, context: ReadContext, annotated_images: AnnotatedImages
) -> dict[str, str]:
    return {"split": context.split} | format.about | dict(annotated_images.about)


def _compare(
    format: AnnotationFormat, split: str, kept: dict[str, int]
) -> tuple[CountComparison, ...]:
    return tuple(
        CountComparison(published, kept[published.what] if published.split else None)
        for published in format.published
        if published.split in (None, split)
    )


def _check_kept(
    format: AnnotationFormat, context: ReadContext, kept: dict[str, int]
) -> None:
    """FormatError if nothing could be used."""
    skipped = context.diagnostics.skipped
    if kept["images"] and (kept["regions"] or kept["questions"] or not skipped):
        return
    reasons = ", ".join(
        f"{reason} ({count})" for reason, count in skipped.most_common(3)
    )
    where = f" below {context.images.root}" if context.images else ""
    hint = "; name the folder of the images with --images, or read without them with --no-images"
    missing = {"missing image", "image outside its folder"} & set(skipped)
    raise FormatError(
        f"{context.annotations}: no {'annotation' if kept['images'] else 'image'} could be used: "
        f"{reasons or 'the file lists none'}{where + hint if missing else ''}.\n"
        f"Expected by {format.name}:\n{format.layout.text}"
    )
