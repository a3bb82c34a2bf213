"""What changed between two datasets: images, regions and samples added, removed or changed, masks with their IoU.

Images and samples are identified by their ids, regions by image and id. Tables whose files have the same sha256 are not
compared.
"""

import difflib
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maskwise.builder.image_hash import image_splits
from maskwise.builder.release.card import MEASURED
from maskwise.masks import pair_areas
from maskwise.store import MASK_KINDS, Dataset, MaskKind

Key = tuple[str, ...]

BLOCK = 1024
"""Images whose files are compared at once: some hundred megabytes at most."""


class MaskChange(msgspec.Struct, frozen=True, kw_only=True):
    """A mask that changed. `iou` of the old and the new one; None if only one of the two exists."""

    image: str
    region: str
    kind: MaskKind
    iou: float | None


class TextChange(msgspec.Struct, frozen=True, kw_only=True):
    """A question or answer in other words. None: it is not there."""

    sample: str
    field: str
    old: str | None
    new: str | None

    @property
    def marked(self) -> str:
        """The new words with the changes marked as git does: `[-old-]{+new+}`."""
        before = (self.old or "").split()
        after = (self.new or "").split()
        pieces = []
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        for kind, first, last, start, stop in matcher.get_opcodes():
            removed = " ".join(before[first:last])
            added = " ".join(after[start:stop])
            if kind == "equal":
                pieces.append(added)
                continue
            removed_mark = f"[-{removed}-]" if removed else ""
            added_mark = f"{{+{added}+}}" if added else ""
            pieces.append(removed_mark + added_mark)
        return " ".join(pieces)


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
    words: list[TextChange]
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
    images = TableChanges()
    regions = TableChanges()
    samples = TableChanges()
    if not _same_files(old, new, "images"):
        images = _compare(_image_table(old), _image_table(new))
        _add_changed_bytes(images, old, new)
    # Rows refer to rows of other tables, so those have to be equal too.
    if not _same_files(old, new, "images", "regions"):
        regions = _compare(_region_table(old), _region_table(new))
    masks: dict[Key, list[MaskKind]] = {}
    for key, fields in regions.changed.items():
        kinds = [kind for kind in MASK_KINDS if kind in fields]
        if kinds:
            masks[key] = kinds
    if not _same_files(old, new, "images", "regions", "samples"):
        samples = _compare(_sample_table(old), _sample_table(new))
        _add_changed_masks(samples, new, masks.keys())
    if cards is None:
        field_changes = list(_field_changes(old.manifest.about, new.manifest.about))
    else:
        old_card, new_card = map(_name_statistics, cards)
        field_changes = list(_field_changes(old_card, new_card))
    card: list[FieldChange] = []
    measured: list[FieldChange] = []
    for change in field_changes:
        is_measured = change.field.startswith(MEASURED)
        (measured if is_measured else card).append(change)
    return DatasetDiff(
        old=old.name,
        new=new.name,
        images=images.to_records(),
        regions=regions.to_records(),
        samples=samples.to_records(),
        masks=_mask_changes(old, new, masks, threads),
        words=_text_changes(old, new, samples),
        moves=_moves(old, new),
        card=card,
        measured=measured,
    )


Table = tuple[dict[Key, int], dict[str, list[Any]]]
"""The row of each key of a table, and the values of its columns in the order of the rows."""


@dataclass
class TableChanges:
    """The changed fields of each key that both tables have, and the keys that only one
    has.
    """

    changed: dict[Key, list[str]] = field(default_factory=dict)
    added: list[Key] = field(default_factory=list)
    removed: list[Key] = field(default_factory=list)

    def to_records(self) -> RecordChanges:
        """With ids instead of keys."""
        return RecordChanges(
            added=[" ".join(key) for key in self.added],
            removed=[" ".join(key) for key in self.removed],
            changed={" ".join(key): fields for key, fields in self.changed.items()},
        )


def _same_files(old: Dataset, new: Dataset, *tables: str) -> bool:
    """Whether the files of these tables are equal, by the hashes in the manifests."""

    def hashes(dataset: Dataset) -> list[str | None]:
        hash_of_table = {
            name.partition(".")[0]: file.sha256
            for name, file in dataset.manifest.files.items()
        }
        return [hash_of_table.get(table) for table in tables]

    return hashes(old) == hashes(new)


def _compare(old: Table, new: Table) -> TableChanges:
    old_rows, old_columns = old
    new_rows, new_columns = new
    changes = TableChanges(
        added=[key for key in new_rows if key not in old_rows],
        removed=[key for key in old_rows if key not in new_rows],
    )
    common = [key for key in old_rows if key in new_rows]
    for name, old_values in old_columns.items():
        new_values = new_columns[name]
        for key in common:
            if old_values[old_rows[key]] != new_values[new_rows[key]]:
                changes.changed.setdefault(key, []).append(name)
    return changes


def _image_table(dataset: Dataset) -> Table:
    images = dataset.images
    columns: dict[str, list[Any]] = {
        "size": images.size.tolist(),
        "license": images.license,
        "attribution": images.attribution,
    }
    rows: dict[Key, int] = {(id,): row for row, id in enumerate(images.id)}
    return rows, columns


def _add_changed_bytes(images: TableChanges, old: Dataset, new: Dataset) -> None:
    """Add the images whose embedded files differ; files given by path are not read."""
    common = [id for id in old.images.id if id in new.images.row]
    for first in range(0, len(common), BLOCK):
        ids = common[first : first + BLOCK]
        old_rows = pa.array([old.images.row[id] for id in ids])
        new_rows = pa.array([new.images.row[id] for id in ids])
        old_files = old.images.table["data"].take(old_rows)
        new_files = new.images.table["data"].take(new_rows)
        # The comparison with a file that is given by path is null.
        differ = pc.fill_null(pc.not_equal(old_files, new_files), False).to_pylist()
        for id, is_different in zip(ids, differ):
            if is_different:
                images.changed.setdefault((id,), []).append("file")


def _region_table(dataset: Dataset) -> Table:
    regions = dataset.regions
    ids = regions.id
    parents = regions.part_of.values.tolist()
    known = regions.part_of.present.tolist()
    columns: dict[str, list[Any]] = {
        "name": regions.table["name"].to_pylist(),
        "part_of": [
            ids[parent] if there else None for parent, there in zip(parents, known)
        ],
        "order": regions.table["order"].to_pylist(),
        "crowd": regions.table["crowd"].to_pylist(),
    }
    for kind in MASK_KINDS:
        # Equal masks have equal run lengths, so these need not be decoded.
        columns[kind] = pc.struct_field(regions.table[kind], "counts").to_pylist()
    return _region_rows(dataset), columns


def _sample_table(dataset: Dataset) -> Table:
    samples = dataset.samples
    images = dataset.images.id
    regions = dataset.regions.id
    offsets = samples.targets.offsets.tolist()
    values = samples.targets.values.tolist()
    table = samples.table
    columns: dict[str, list[Any]] = {
        "image": [images[row] for row in samples.image.tolist()],
        "question": samples.question,
        "mask_type": table["mask_type"].to_pylist(),
        "answer": list(zip(table["answer"].to_pylist(), table["phrases"].to_pylist())),
        "targets": [
            [regions[row] for row in values[start:stop]]
            for start, stop in itertools.pairwise(offsets)
        ],
        "ignore": pc.struct_field(table["ignore"], "counts").to_pylist(),
        "turns": table["turns"].to_pylist(),
        "tags": [
            sorted(pair for pair in tags if pair[0] != "split")
            for tags in table["tags"].to_pylist()
        ],
    }
    rows: dict[Key, int] = {(id,): row for row, id in enumerate(samples.id)}
    return rows, columns


def _add_changed_masks(
    samples: TableChanges, new: Dataset, masks: Collection[Key]
) -> None:
    """Add the field `masks` to samples that have a target whose mask changed."""
    rows = {row for key, row in _region_rows(new).items() if key in masks}
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
    row_of_old = _region_rows(old)
    row_of_new = _region_rows(new)
    changes = []
    for kind in MASK_KINDS:
        keys = [key for key, kinds in masks.items() if kind in kinds]
        old_rows = np.array([row_of_old[key] for key in keys], np.int64)
        new_rows = np.array([row_of_new[key] for key in keys], np.int64)
        old_masks = old.regions.masks(kind)
        new_masks = new.regions.masks(kind)
        same_size = (old.regions.size[old_rows] == new.regions.size[new_rows]).all(1)
        comparable = old_masks.present[old_rows] & new_masks.present[new_rows]
        comparable &= same_size
        areas = pair_areas(
            old_masks.masks[old_rows[comparable]],
            new_masks.masks[new_rows[comparable]],
            threads=threads,
        )
        ious = iter(areas.iou(empty=1.0).tolist())
        for (image, region), is_comparable in zip(keys, comparable.tolist()):
            iou = next(ious) if is_comparable else None
            changes.append(MaskChange(image=image, region=region, kind=kind, iou=iou))
    # Masks that cannot be compared come first.
    return sorted(changes, key=lambda change: -1 if change.iou is None else change.iou)


def _text_changes(
    old: Dataset, new: Dataset, samples: TableChanges
) -> list[TextChange]:
    """The questions and answers of changed samples whose words differ."""
    rows = {id: row for row, id in enumerate(old.samples.id)}
    new_rows = {id: row for row, id in enumerate(new.samples.id)}
    changes = []
    for (id,), fields in samples.changed.items():
        for name in ("question", "answer"):
            if name not in fields:
                continue
            before = old.samples.table[name][rows[id]].as_py()
            after = new.samples.table[name][new_rows[id]].as_py()
            # The phrases of an answer may differ while its words stay.
            if before != after:
                changes.append(TextChange(sample=id, field=name, old=before, new=after))
    return changes


def _region_rows(dataset: Dataset) -> dict[Key, int]:
    """The row of each region, by the ids of its image and its own."""
    image_ids = dataset.images.id
    pairs = zip(dataset.regions.image.tolist(), dataset.regions.id)
    return {(image_ids[image], id): row for row, (image, id) in enumerate(pairs)}


def _moves(old: Dataset, new: Dataset) -> list[SplitMove]:
    before = image_splits(old)
    after = image_splits(new)
    return [
        SplitMove(image=image, old=split, new=after[image])
        for image, split in before.items()
        if after.get(image, split) != split
    ]


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
        old_value = old.get(name)
        new_value = new.get(name)
        if isinstance(old_value, Mapping) and isinstance(new_value, Mapping):
            yield from _field_changes(old_value, new_value, f"{before}{name}.")
        elif old_value != new_value:
            yield FieldChange(field=before + name, old=old_value, new=new_value)
