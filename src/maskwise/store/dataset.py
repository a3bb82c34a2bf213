"""A dataset folder, opened: samples one by one, grouped by image, and views of some of them."""

import itertools
import os
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any, overload

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike
from PIL import Image

from maskwise.arrays import BoolArray, UInt8Array
from maskwise.errors import ImageError, MaskError, RecordError, StoreError
from maskwise.images import open_image, resolve_inside
from maskwise.masks import Mask
from maskwise.schema import (
    MASK_TYPES,
    Answer,
    ImageInfo,
    MaskType,
    Phrase,
    Region,
    Sample,
    Turn,
    attach,
)
from maskwise.store.columns import (
    ImageColumns,
    MaskColumn,
    RegionColumns,
    SampleColumns,
)
from maskwise.store.folder import (
    MANIFEST,
    MASK_KINDS,
    TABLES,
    FileFacts,
    FileStamp,
    Manifest,
    check_files,
    check_hash,
    file_facts,
    open_table,
    read_manifest,
    staged,
    stamp_files,
    write_manifest,
)

BLOCK_ROWS = 256
"""How many samples iteration converts to records at once."""

SHOWN_ROWS = 5
"""How many samples the notebook display lists."""


class Dataset:
    """A dataset folder, or a view of some of its samples.

    A sequence of samples: `len(data)`, `data[0]`, `data[10:20]`, `for sample in data`. The text of `maskwise.store`
    describes columns and views.
    """

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        *,
        images: ImageColumns,
        regions: RegionColumns,
        samples: SampleColumns,
        image_root: Path | None,
        stamps: dict[str, FileStamp],
    ) -> None:
        self.path = path
        self.manifest = manifest
        self.image_root = image_root
        self.images = images
        self.regions = regions
        self.samples = samples
        self._stamps = stamps

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        image_root: str | os.PathLike[str] | None = None,
    ) -> "Dataset":
        """Open a folder. Checks manifest, schema version and file sizes; reads no mask.

        image_root: the folder of images given by path, if not the one in the manifest.
        """
        folder = Path(path)
        manifest = read_manifest(folder)
        suffix = check_files(folder, manifest)
        stamps = stamp_files(folder, manifest)
        tables = {
            name: open_table(folder / f"{name}{suffix}", schema)
            for name, schema in TABLES.items()
        }
        for name, (table, _) in tables.items():
            if table.num_rows != manifest.counts.get(name):
                raise StoreError(
                    f"{folder}: {table.num_rows} {name}, but the manifest counts {manifest.counts.get(name)}"
                )
        images = ImageColumns(
            tables["images"][0], folder / f"images{suffix}", tables["images"][1]
        )
        regions = RegionColumns(
            tables["regions"][0],
            folder / f"regions{suffix}",
            tables["regions"][1],
            images=images,
        )
        samples = SampleColumns(
            tables["samples"][0],
            folder / f"samples{suffix}",
            tables["samples"][1],
            images=images,
            regions=regions,
        )
        root = image_root if image_root is not None else manifest.image_root
        return cls(
            folder,
            manifest,
            images=images,
            regions=regions,
            samples=samples,
            image_root=None if root is None else folder / root,
            stamps=stamps,
        )

    @property
    def name(self) -> str:
        """The name in the manifest."""
        return self.manifest.name

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self)} samples, {len(self.images)} images, {str(self.path)!r})"

    def _repr_html_(self) -> str:
        """The first samples as a table, for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(sample.id)}</td><td>{escape(sample.question)}</td><td>{sample.mask_type}</td>"
            f"<td>{escape(', '.join(region.name for region in sample.targets))}</td></tr>"
            for sample in self[:SHOWN_ROWS]
        )
        more = (
            f"<p>and {len(self) - SHOWN_ROWS} more samples</p>"
            if len(self) > SHOWN_ROWS
            else ""
        )
        head = "<tr><th>id</th><th>question</th><th>mask type</th><th>targets</th></tr>"
        return f"<p>{escape(repr(self))}</p><table>{head}{rows}</table>{more}"

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> "Dataset": ...

    def __getitem__(self, index: int | slice) -> "Sample | Dataset":
        if isinstance(index, slice):
            return self._slice(index)
        if not isinstance(index, int | np.integer):
            raise StoreError(
                f"a dataset is indexed by number or slice, not by {type(index).__name__}; "
                "use sample(id) for the sample of an id"
            )
        row = int(index) + len(self) if index < 0 else int(index)
        if not 0 <= row < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        return next(self._read(row, row + 1))

    def __iter__(self) -> Iterator[Sample]:
        for first in range(0, len(self), BLOCK_ROWS):
            yield from self._read(first, min(first + BLOCK_ROWS, len(self)))

    def sample(self, id: str) -> Sample:
        """The sample with this id."""
        if id not in self.samples.row:
            raise StoreError(f"{self.path}: no sample {id!r} among {len(self)}")
        return self[self.samples.row[id]]

    def groups(self) -> Iterator[tuple[ImageInfo, list[Sample]]]:
        """Each image with all its samples, both in row order; images without samples are left out."""
        rows = self.samples.image
        view = (
            self
            if (np.diff(rows) >= 0).all()
            else self.take(np.argsort(rows, kind="stable"))
        )
        for image, samples in itertools.groupby(view, lambda sample: sample.image_id):
            yield self.image(image), list(samples)

    # -- views

    def _slice(self, rows: slice) -> "Dataset":
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self.take(np.arange(start, stop, step))
        return self._view(
            self.samples.table.slice(start, max(0, stop - start)), self.samples.mapped
        )

    def filter(
        self,
        predicate: Callable[[Sample], bool] | None = None,
        *,
        mask_type: MaskType | None = None,
        **tags: str,
    ) -> "Dataset":
        """The samples that fulfil all conditions: a function of the sample, a mask type, values of tags.

        Example: data.filter(lambda sample: len(sample.targets) > 1, mask_type="amodal", split="test")
        """
        keep = np.ones(len(self), np.bool_)
        if mask_type is not None:
            if mask_type not in MASK_TYPES:
                raise StoreError(
                    f"mask_type must be one of {', '.join(MASK_TYPES)}, not {mask_type!r}"
                )
            keep &= self.samples.mask_type == MASK_TYPES.index(mask_type)
        for name, value in tags.items():
            keep &= self._has_tag(name, value)
        if predicate is None:
            return self.take(np.flatnonzero(keep))
        if not callable(predicate):
            raise StoreError(
                f"filter expects a function of a sample, not {type(predicate).__name__}"
            )
        rows = np.flatnonzero(keep)
        chosen = [
            row
            for row, sample in zip(rows.tolist(), self.take(rows))
            if predicate(sample)
        ]
        return self.take(np.array(chosen, np.int64))

    def _has_tag(self, name: str, value: str) -> BoolArray:
        if name not in self.samples.tag_names:
            known = ", ".join(self.samples.tag_names) or "none"
            raise StoreError(
                f"{self.path}: no sample has the tag {name!r}; known tags: {known}"
            )
        codes, names = self.samples.tag(name)
        matches: BoolArray = np.array([known == value for known in names], np.bool_)[
            codes
        ]
        return matches

    def shard(self, index: int, count: int) -> "Dataset":
        """The samples of every count-th image, starting with image `index`: one of `count` parts."""
        if not 0 <= index < count:
            raise StoreError(f"shard {index} of {count}: expected 0 to {count - 1}")
        return self.take(np.flatnonzero(self.samples.image % count == index))

    def take(self, rows: ArrayLike) -> "Dataset":
        """The samples of these rows, in the given order."""
        indices = np.asarray(rows, np.int64)
        return self._view(
            self.samples.table.take(pa.array(indices)).combine_chunks(), None
        )

    def _view(self, table: pa.Table, mapped: UInt8Array | None) -> "Dataset":
        samples = SampleColumns(
            table, self.samples.where, mapped, images=self.images, regions=self.regions
        )
        return Dataset(
            self.path,
            self.manifest,
            images=self.images,
            regions=self.regions,
            samples=samples,
            image_root=self.image_root,
            stamps=self._stamps,
        )

    # -- images and regions

    def image(self, key: int | str) -> ImageInfo:
        """The image of a row or an id."""
        row = self._image_row(key)
        height, width = self.images.size[row].tolist()
        return ImageInfo(
            id=self.images.id[row],
            width=width,
            height=height,
            path=self.images.path[row],
            license=self.images.license[row],
            attribution=self.images.attribution[row],
        )

    def open_image(self, key: int | str) -> Image.Image:
        """The pixels of an image, given by row or id: upright, RGB."""
        row = self._image_row(key)
        image = self.image(row)
        data = self.images.table["data"][row]
        if data.is_valid:
            pixels = open_image(data.as_py())
        elif image.path is None:
            raise ImageError(
                f"{self.path}: image {image.id!r} has neither a path nor embedded bytes"
            )
        elif self.image_root is None:
            raise ImageError(
                f"{self.path} does not say where its images are: give their folder (--images, or image_root)"
            )
        else:
            pixels = open_image(resolve_inside(self.image_root, image.path))
        if pixels.size != (image.width, image.height):
            raise ImageError(
                f"{self.path}: image {image.id!r} is {pixels.width} x {pixels.height} on disk, "
                f"but its masks are for {image.width} x {image.height}"
            )
        return pixels

    def region(self, row: int) -> Region:
        """The region of a row."""
        regions = self.regions
        parent = regions.part_of
        order = regions.order
        try:
            masks = {kind: _mask_at(regions.masks(kind), row) for kind in MASK_KINDS}
            return Region(
                id=regions.table["id"][row].as_py(),
                name=regions.table["name"][row].as_py(),
                part_of=regions.table["id"][int(parent.values[row])].as_py()
                if parent.present[row]
                else None,
                order=int(order.values[row]) if order.present[row] else None,
                crowd=bool(regions.crowd[row]),
                **masks,
            )
        except (MaskError, RecordError) as error:
            raise StoreError(
                f"{regions.where}: region in row {row}: {error}"
            ) from error

    def regions_of(self, key: int | str) -> tuple[Region, ...]:
        """All regions of an image, targets or not, in row order."""
        row = self._image_row(key)
        (offsets, values) = self.regions.of_image
        return tuple(
            self.region(region)
            for region in values[offsets[row] : offsets[row + 1]].tolist()
        )

    def _image_row(self, key: int | str) -> int:
        if isinstance(key, str):
            if key not in self.images.row:
                raise StoreError(
                    f"{self.path}: no image {key!r} among {len(self.images)}"
                )
            return self.images.row[key]
        if not 0 <= key < len(self.images):
            raise StoreError(
                f"{self.path}: no image in row {key}; there are {len(self.images)}"
            )
        return key

    def _read(self, first: int, stop: int) -> Iterator[Sample]:
        offsets, targets = self.samples.targets
        made: dict[int, Region] = {}
        for number, row in enumerate(self._rows(first, stop), first):
            rows = targets[offsets[number] : offsets[number + 1]].tolist()
            for target in rows:
                if target not in made:
                    made[target] = self.region(target)
            others = []
            for _, (starts, values) in self.samples.other_targets[
                : len(row["other_targets"] or ())
            ]:
                region_rows = values[starts[number] : starts[number + 1]].tolist()
                others.append(tuple(self.region(item) for item in region_rows))
            sample = self._sample(
                row, tuple(made[target] for target in rows), tuple(others), number
            )
            yield attach(sample, load_image=self.open_image)

    def _rows(self, first: int, stop: int) -> list[dict[str, Any]]:
        table = self.samples.table.slice(first, stop - first).drop_columns(
            ["targets", "ignore"]
        )
        try:
            rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
        except KeyError as error:
            raise StoreError(
                f"{self.samples.where}: a tag occurs twice: {error}"
            ) from error
        return rows

    def _sample(
        self,
        row: dict[str, Any],
        targets: tuple[Region, ...],
        other_targets: tuple[tuple[Region, ...], ...],
        number: int,
    ) -> Sample:
        try:
            phrases = tuple(
                Phrase(
                    start=phrase["start"],
                    stop=phrase["stop"],
                    regions=tuple(phrase["regions"]),
                )
                for phrase in row["phrases"]
            )
            return Sample(
                id=row["id"],
                image_id=self.images.id[self.samples.image[number]],
                question=row["question"],
                mask_type=MASK_TYPES[self.samples.mask_type[number]],
                targets=targets,
                answer=None
                if row["answer"] is None
                else Answer(text=row["answer"], phrases=phrases),
                ignore=_mask_at(self.samples.ignore, number),
                tags=row["tags"],
                other_targets=other_targets,
                turns=tuple(Turn(**turn) for turn in row["turns"] or ()),
            )
        except (MaskError, RecordError, TypeError) as error:
            # A TypeError is a null inside a phrase, which the check of the table does not find.
            raise StoreError(
                f"{self.samples.where}: sample {row['id']!r}: {error}"
            ) from error

    # -- integrity and copies

    def check_unchanged(self) -> None:
        """Raise StoreError if another program changed the folder since it was opened.

        The tables are mapped into memory: what reads them would mix old and new rows, and dies of a signal where a file
        became shorter. A file with another time or place is hashed: one that was only copied or touched is the same.
        """
        try:
            self._check_stamps()
        except OSError as error:
            raise StoreError(
                f"{self.path} changed while it was used: {error}; restore it and repeat the command"
            ) from None

    def _check_stamps(self) -> None:
        for name, stamp in stamp_files(self.path, self.manifest).items():
            if stamp == self._stamps[name]:
                continue
            path = self.path / name
            if name == MANIFEST:
                is_same = read_manifest(self.path) == self.manifest
            else:
                is_same = file_facts(path) == self.manifest.files[name]
            if not is_same:
                raise StoreError(
                    f"{path} changed while it was used; restore it and repeat the command, "
                    "or use the new version with another --out"
                )
            self._stamps[name] = stamp

    def verify(self) -> None:
        """Read every byte: compare the sha256 of each file with the manifest, and check the tables."""
        for name, facts in self.manifest.files.items():
            check_hash(self.path / name, facts)
        for columns in (self.images, self.regions, self.samples):
            try:
                columns.table.validate(full=True)
            except pa.ArrowInvalid as error:
                raise StoreError(f"{columns.where}: {error}") from error

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the samples, and all images and regions, as a folder of zstd Parquet files that opens as usual.

        Images given by path are not copied; the new folder points to them.
        """
        with staged(Path(path), overwrite=False) as folder:
            files: dict[str, FileFacts] = {}
            for name in TABLES:
                file = folder / f"{name}.parquet"
                pq.write_table(getattr(self, name).table, file, compression="zstd")
                files[file.name] = file_facts(file)
            write_manifest(folder, self._manifest(files))

    def _manifest(self, files: dict[str, FileFacts]) -> Manifest:
        """The manifest of a copy of this dataset or view."""
        columns = [
            self.samples.ignore,
            *(self.regions.masks(kind) for kind in MASK_KINDS),
        ]
        masks = sum(int(column.present.sum()) for column in columns)
        return msgspec.structs.replace(
            self.manifest,
            counts={name: len(getattr(self, name)) for name in TABLES}
            | {"masks": masks},
            files=files,
            image_root=None
            if self.image_root is None
            else str(self.image_root.resolve()),
        )


def _mask_at(column: MaskColumn, row: int) -> Mask | None:
    return column.masks[row] if column.present[row] else None
