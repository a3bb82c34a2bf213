"""Read a source or benchmark once and write it as a dataset folder."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from maskwise.errors import PictureError, SourceError
from maskwise.sources.draft import Scene
from maskwise.sources.layout import PictureFolder, Place
from maskwise.sources.problems import Problem, Problems
from maskwise.sources.source import Published, Source
from maskwise.store import DatasetWriter

PROBLEMS = "problems.jsonl"
"""Lies in the dataset's folder, one line a problem."""

MAX_PICTURE_BYTES = 2**28
"""The largest picture file embedded."""


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
    pictures: Path | None = None,
    with_pictures: bool = True,
    mapping: Path | None = None,
    strict: bool = False,
    embed: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Conversion:
    """Write one split as the dataset folder `out`, with `problems.jsonl` beside its tables.

    pictures: root of the pictures, if not `path`; they stay where they are unless `embed`. strict: stop at the first
    record that would be skipped. progress(done, total) is called for every picture.
    """
    if embed and not with_pictures:
        raise SourceError("pictures cannot be embedded and left out at once")
    early: list[Problem] = []
    problems = Problems(early.append, strict=strict)
    place, reading = source.open(
        path, problems, split=split, pictures=pictures, with_pictures=with_pictures, mapping=mapping
    )
    kept = dict.fromkeys(("pictures", "regions", "questions", "targets"), 0)
    root = place.pictures.root.resolve() if place.pictures and not embed else None
    name, about = f"{source.name} {place.split}", _about(source, place)
    with DatasetWriter(out, name=name, picture_root=root, about=about, overwrite=overwrite) as writer:
        with open(writer.folder / PROBLEMS, "wb") as lines:
            problems.sink = lambda problem: lines.write(msgspec.json.encode(problem) + b"\n")
            for problem in early:
                problems.sink(problem)
            for done, scene in enumerate(reading.scenes, 1):
                _add(writer, _embedded(scene, place.pictures) if embed and place.pictures else scene)
                _count(kept, scene)
                progress(done, reading.total)
        if not kept["pictures"]:
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
    writer.add_picture(scene.picture, scene.regions, scene.data)
    for sample in scene.samples:
        writer.add_sample(sample)


def _embedded(scene: Scene, folder: PictureFolder) -> Scene:
    """The scene with its picture's bytes."""
    if scene.data is not None or scene.picture.path is None:
        return scene
    path = folder.root / scene.picture.path
    if path.stat().st_size > MAX_PICTURE_BYTES:
        raise PictureError(
            f"{path} has {path.stat().st_size} bytes; at most {MAX_PICTURE_BYTES} are embedded"
        )
    picture = msgspec.structs.replace(scene.picture, path=None)
    return scene._replace(picture=picture, data=path.read_bytes())


def _count(kept: dict[str, int], scene: Scene) -> None:
    kept["pictures"] += 1
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
    where = f" below {place.pictures.root}" if place.pictures else ""
    hint = "; name the pictures' folder with --pictures, or do without with --no-pictures"
    lost = {"missing picture", "picture outside its folder"} & set(place.problems.skipped)
    return (
        f"{place.annotations}: no picture could be used: {reasons or 'the file lists none'}"
        f"{where + hint if lost else ''}.\n"
        f"Expected of {source.name}:\n{source.layout.text}"
    )
