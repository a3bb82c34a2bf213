"""What changed between two datasets: images, regions and samples added, removed or changed, masks with their IoU.

Images and samples are identified by their ids, regions by image and id. Tables whose files have the same sha256 are not
compared.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maskwise.builder.release.card import MEASURED
from maskwise.masks import pair_areas
from maskwise.store import MASK_KINDS, Dataset, MaskKind

Key = tuple[str, ...]

BLOCK = 1024
"""Images whose bytes are compared at once."""


class MaskChange(msgspec.Struct, frozen=True, kw_only=True):
    """A mask that changed. `iou` of the old and the new one; None if only one of the two exists."""

    image: str
    region: str
    kind: MaskKind
    iou: float | None


class SplitMove(msgspec.Struct, frozen=True, kw_only=True):
    """An image that is now in another split."""

    image: str
    old: str
    new: str


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """A field of the card, or of what the dataset says about itself. None: it is not there."""

    field: str
    old: Any
    new: Any


class RecordChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Ids that were added or removed, and the changed fields of those that stayed. A region's id is `IMAGE REGION`."""

    added: list[str] = []
    removed: list[str] = []
    changed: dict[str, list[str]] = {}

    @property
    def count(self) -> int:
        """How many records differ."""
        return len(self.added) + len(self.removed) + len(self.changed)

    @property
    def fields(self) -> dict[str, int]:
        """How many records differ in each field."""
        return dict(
            Counter(
                field for fields in self.changed.values() for field in fields
            ).most_common()
        )


class DatasetDiff(msgspec.Struct, frozen=True, kw_only=True):
    """All differences between two datasets. `measured`: card fields that nobody filled in, statistics by name."""

    old: str
    new: str
    images: RecordChanges
    regions: RecordChanges
    samples: RecordChanges
    masks: list[MaskChange]
    moves: list[SplitMove]
    card: list[FieldChange]
    measured: list[FieldChange]

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        records = self.images.count + self.regions.count + self.samples.count
        return not (records or self.moves or self.card or self.measured)


def diff_datasets(
    old: Dataset,
    new: Dataset,
    *,
    cards: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None,
    threads: int = 1,
) -> DatasetDiff:
    """Compare two datasets. cards: their cards; if None, what their manifests say about them is compared."""
    images = _Changes({})
    regions = _Changes({})
    samples = _Changes({})
    if not _same_files(old, new, "images"):
        images = _compare(_image_columns(old), _image_columns(new))
        _add_changed_bytes(images.changed, old, new)
    if not _same_files(old, new, "images", "regions"):
        regions = _compare(_region_columns(old), _region_columns(new))
    masks = {
        key: kinds
        for key, fields in regions.changed.items()
        if (kinds := _mask_kinds(fields))
    }
    if not _same_files(old, new, "images", "regions", "samples"):
        samples = _compare(_sample_columns(old), _sample_columns(new))
        _add_changed_masks(samples, new, masks.keys())
    about = (old.manifest.about, new.manifest.about)
    fields = list(
        _field_changes(*(about if cards is None else map(_name_statistics, cards)))
    )
    return DatasetDiff(
        old=old.name,
        new=new.name,
        images=images.to_records(),
        regions=regions.to_records(),
        samples=samples.to_records(),
        masks=_mask_changes(old, new, masks, threads),
        moves=_moves(old, new),
        card=[change for change in fields if not change.field.startswith(MEASURED)],
        measured=[change for change in fields if change.field.startswith(MEASURED)],
    )


class _Columns(NamedTuple):
    """The rows of a table by key, and its columns as lists."""

    rows: dict[Key, int]
    fields: dict[str, list[Any]]


class _Changes(NamedTuple):
    """The changed fields of each key that both tables have, and the keys that only one has."""

    changed: dict[Key, list[str]]
    added: tuple[Key, ...] = ()
    removed: tuple[Key, ...] = ()

    def to_records(self) -> RecordChanges:
        return RecordChanges(
            added=[" ".join(key) for key in self.added],
            removed=[" ".join(key) for key in self.removed],
            changed={" ".join(key): fields for key, fields in self.changed.items()},
        )


def _same_files(old: Dataset, new: Dataset, *tables: str) -> bool:
    """Whether the files of these tables are equal, by the hashes in the manifests."""

    def hashes(dataset: Dataset) -> list[str | None]:
        facts = {
            name.partition(".")[0]: file.sha256
            for name, file in dataset.manifest.files.items()
        }
        return [facts.get(table) for table in tables]

    return hashes(old) == hashes(new)


def _compare(old: _Columns, new: _Columns) -> _Changes:
    changed: dict[Key, list[str]] = {}
    pairs = [
        (key, row, new.rows[key]) for key, row in old.rows.items() if key in new.rows
    ]
    for field, values in old.fields.items():
        others = new.fields[field]
        for key, one, two in pairs:
            if values[one] != others[two]:
                changed.setdefault(key, []).append(field)
    return _Changes(
        changed,
        tuple(key for key in new.rows if key not in old.rows),
        tuple(key for key in old.rows if key not in new.rows),
    )


def _image_columns(dataset: Dataset) -> _Columns:
    images = dataset.images
    fields = {
        "size": images.size.tolist(),
        "license": images.license,
        "attribution": images.attribution,
    }
    return _Columns({(id,): row for row, id in enumerate(images.id)}, fields)


def _add_changed_bytes(
    changed: dict[Key, list[str]], old: Dataset, new: Dataset
) -> None:
    """Add the images whose embedded files differ; files given by path are not read."""
    common = [id for id in old.images.id if id in new.images.row]
    for first in range(0, len(common), BLOCK):
        ids = common[first : first + BLOCK]
        one, two = (
            dataset.images.table["data"].take(
                pa.array([dataset.images.row[id] for id in ids])
            )
            for dataset in (old, new)
        )
        differ = pc.fill_null(pc.not_equal(one, two), False).to_pylist()
        for id, different in zip(ids, differ):
            if different:
                changed.setdefault((id,), []).append("file")


def _region_columns(dataset: Dataset) -> _Columns:
    regions = dataset.regions
    images = dataset.images.id
    ids = regions.id
    parents = regions.part_of.values.tolist()
    known = regions.part_of.present.tolist()
    fields: dict[str, list[Any]] = {
        "name": regions.table["name"].to_pylist(),
        "part_of": [
            ids[parent] if there else None for parent, there in zip(parents, known)
        ],
        "order": regions.table["order"].to_pylist(),
        "crowd": regions.table["crowd"].to_pylist(),
    }
    fields |= {
        kind: pc.struct_field(regions.table[kind], "counts").to_pylist()
        for kind in MASK_KINDS
    }
    keys = ((images[image], id) for image, id in zip(regions.image.tolist(), ids))
    return _Columns({key: row for row, key in enumerate(keys)}, fields)


def _sample_columns(dataset: Dataset) -> _Columns:
    samples = dataset.samples
    images = dataset.images.id
    regions = dataset.regions.id
    offsets = samples.targets.offsets.tolist()
    values = samples.targets.values.tolist()
    table = samples.table
    fields: dict[str, list[Any]] = {
        "image": [images[row] for row in samples.image.tolist()],
        "question": samples.question,
        "mask_type": table["mask_type"].to_pylist(),
        "answer": list(zip(table["answer"].to_pylist(), table["phrases"].to_pylist())),
        "targets": [
            [regions[row] for row in values[start:stop]]
            for start, stop in itertools.pairwise(offsets)
        ],
        "ignore": pc.struct_field(table["ignore"], "counts").to_pylist(),
        "tags": [
            sorted(pair for pair in tags if pair[0] != "split")
            for tags in table["tags"].to_pylist()
        ],
    }
    return _Columns({(id,): row for row, id in enumerate(samples.id)}, fields)


def _mask_kinds(fields: list[str]) -> list[MaskKind]:
    return [kind for kind in MASK_KINDS if kind in fields]


def _add_changed_masks(samples: _Changes, new: Dataset, masks: Collection[Key]) -> None:
    """Add the field `masks` to samples that have a target whose mask changed."""
    rows = {
        row
        for row, (image, id) in enumerate(
            zip(new.regions.image.tolist(), new.regions.id)
        )
        if (new.images.id[image], id) in masks
    }
    offsets = new.samples.targets.offsets.tolist()
    values = new.samples.targets.values.tolist()
    added = set(samples.added)
    for id, (start, stop) in zip(new.samples.id, itertools.pairwise(offsets)):
        if (id,) not in added and not rows.isdisjoint(values[start:stop]):
            samples.changed.setdefault((id,), []).append("masks")


def _mask_changes(
    old: Dataset, new: Dataset, masks: dict[Key, list[MaskKind]], threads: int
) -> list[MaskChange]:
    """The changed masks with their IoU, the most different first."""
    rows = [_rows_of(dataset, masks.keys()) for dataset in (old, new)]
    found = []
    for kind in MASK_KINDS:
        keys = [key for key, kinds in masks.items() if kind in kinds]
        one, two = (
            (
                dataset.regions.masks(kind),
                np.array([row[key] for key in keys], np.int64),
            )
            for dataset, row in zip((old, new), rows)
        )
        same_size = (
            (old.regions.size[one[1]] == new.regions.size[two[1]]).all(1)
            if keys
            else np.empty(0, bool)
        )
        both = one[0].present[one[1]] & two[0].present[two[1]] & same_size
        areas = pair_areas(
            one[0].masks[one[1][both]], two[0].masks[two[1][both]], threads=threads
        )
        values = iter(areas.iou(empty=1.0).tolist())
        found += [
            MaskChange(
                image=image,
                region=region,
                kind=kind,
                iou=next(values) if pair else None,
            )
            for (image, region), pair in zip(keys, both.tolist())
        ]
    return sorted(found, key=lambda change: -1.0 if change.iou is None else change.iou)


def _rows_of(dataset: Dataset, keys: Collection[Key]) -> dict[Key, int]:
    """The region rows of these images and ids."""
    images = dataset.images.id
    pairs = (
        (images[image], id)
        for image, id in zip(dataset.regions.image.tolist(), dataset.regions.id)
    )
    return {key: row for row, key in enumerate(pairs) if key in keys}


def _moves(old: Dataset, new: Dataset) -> list[SplitMove]:
    before = image_splits(old)
    after = image_splits(new)
    return [
        SplitMove(image=image, old=split, new=after[image])
        for image, split in before.items()
        if after.get(image, split) != split
    ]


def image_splits(dataset: Dataset) -> dict[str, str]:
    """The split of each image whose samples have the tag `split`, by image id."""
    if "split" not in dataset.samples.tag_names:
        return {}
    codes, names = dataset.samples.tag("split")
    found = {}
    for row, code in zip(dataset.samples.image.tolist(), codes.tolist()):
        name = names[code]
        if name is not None:
            found[dataset.images.id[row]] = name
    return found


def _name_statistics(card: Mapping[str, Any]) -> dict[str, Any]:
    """The card with its statistics, lines of the form `NAME: VALUE`, as a mapping."""
    data = dict(card.get("data", {}))
    pairs = (str(line).partition(": ") for line in data.get("statistics", ()))
    data["statistics"] = {name: value for name, _, value in pairs}
    return dict(card) | {"data": data}


def _field_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], before: str = ""
) -> Iterator[FieldChange]:
    """Fields that differ; those of nested mappings by their paths."""
    for name in dict.fromkeys([*old, *new]):
        one = old.get(name)
        two = new.get(name)
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            yield from _field_changes(one, two, f"{before}{name}.")
        elif one != two:
            yield FieldChange(field=before + name, old=one, new=two)
