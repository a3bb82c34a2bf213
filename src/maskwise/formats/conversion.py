"""Read a source or benchmark once and write it as a dataset folder."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from maskwise.errors import ImageError, SourceError
from maskwise.formats.draft import Scene
from maskwise.formats.layout import ImageFolder, Place
from maskwise.formats.problems import Problem, Problems
from maskwise.formats.source import Published, Source
from maskwise.store import DatasetWriter

PROBLEMS = "problems.jsonl"
"""Lies in the dataset's folder, one line a problem."""

MAX_IMAGE_BYTES = 2**28
"""The largest image file embedded."""


class Compared(msgspec.Struct, frozen=True):
    """A published size beside what was found; `found` is None where the figure is for all splits together."""

    published: Published
    found: int | None


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversion kept, what it skipped and why, beside what is published. `odd` records are among the kept."""

    name: str
    split: str
    out: str
    kept: dict[str, int]
    skipped: dict[str, int]
    odd: dict[str, int]
    compared: tuple[Compared, ...]


def convert(
    source: Source,
    path: Path,
    out: Path,
    *,
    split: str | None = None,
    images: Path | None = None,
    with_images: bool = True,
    mapping: Path | None = None,
    strict: bool = False,
    embed: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Conversion:
    """Write one split as the dataset folder `out`, with `problems.jsonl` beside its tables.

    images: root of the images, if not `path`; they stay where they are unless `embed`. strict: stop at the first
    record that would be skipped. progress(done, total) is called for every image.
    """
    if embed and not with_images:
        raise SourceError("images cannot be embedded and left out at once")
    early: list[Problem] = []
    problems = Problems(early.append, strict=strict)
    place, reading = source.open(
        path, problems, split=split, images=images, with_images=with_images, mapping=mapping
    )
    kept = dict.fromkeys(("images", "regions", "questions", "targets"), 0)
    root = place.images.root.resolve() if place.images and not embed else None
    name, about = f"{source.name} {place.split}", _about(source, place)
    with DatasetWriter(out, name=name, image_root=root, about=about, overwrite=overwrite) as writer:
        with open(writer.folder / PROBLEMS, "wb") as lines:
            problems.sink = lambda problem: lines.write(msgspec.json.encode(problem) + b"\n")
            for problem in early:
                problems.sink(problem)
            for done, scene in enumerate(reading.scenes, 1):
                _add(writer, _embedded(scene, place.images) if embed and place.images else scene)
                _count(kept, scene)
                progress(done, reading.total)
        if not kept["images"]:
            raise SourceError(_nothing_kept(source, place))
    progress(reading.total, reading.total)
    return Conversion(
        name=source.name,
        split=place.split,
        out=str(out),
        kept=kept,
        skipped=dict(problems.skipped.most_common()),
        odd=dict(problems.odd.most_common()),
        compared=_compare(source, place.split, kept),
    )


def _add(writer: DatasetWriter, scene: Scene) -> None:
    writer.add_image(scene.image, scene.regions, scene.data)
    for sample in scene.samples:
        writer.add_sample(sample)


def _embedded(scene: Scene, folder: ImageFolder) -> Scene:
    """The scene with its image's bytes."""
    if scene.data is not None or scene.image.path is None:
        return scene
    path = folder.root / scene.image.path
    if path.stat().st_size > MAX_IMAGE_BYTES:
        raise ImageError(f"{path} has {path.stat().st_size} bytes; at most {MAX_IMAGE_BYTES} are embedded")
    image = msgspec.structs.replace(scene.image, path=None)
    return scene._replace(image=image, data=path.read_bytes())


def _count(kept: dict[str, int], scene: Scene) -> None:
    kept["images"] += 1
    kept["regions"] += len(scene.regions)
    kept["questions"] += len(scene.samples)
    kept["targets"] += sum(len(sample.targets) for sample in scene.samples)


def _about(source: Source, place: Place) -> dict[str, str]:
    return {"format": source.name, "split": place.split, "title": source.title} | source.facts


def _compare(source: Source, split: str, kept: dict[str, int]) -> tuple[Compared, ...]:
    return tuple(
        Compared(figure, kept[figure.what] if figure.split else None)
        for figure in source.published
        if figure.split in (None, split)
    )


def _nothing_kept(source: Source, place: Place) -> str:
    reasons = ", ".join(f"{reason} ({count})" for reason, count in place.problems.skipped.most_common(3))
    where = f" below {place.images.root}" if place.images else ""
    hint = "; name the images' folder with --images, or do without with --no-images"
    lost = {"missing image", "image outside its folder"} & set(place.problems.skipped)
    return (
        f"{place.annotations}: no image could be used: {reasons or 'the file lists none'}"
        f"{where + hint if lost else ''}.\n"
        f"Expected of {source.name}:\n{source.layout.text}"
    )
