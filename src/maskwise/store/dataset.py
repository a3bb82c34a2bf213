"""A dataset folder, open: its samples one by one, in groups, in views."""

import hashlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

from maskwise.errors import ImageError, MaskError, RecordError, StoreError
from maskwise.images import open_image, resolve_inside
from maskwise.masks import Mask
from maskwise.schema import Answer, ImageInfo, Phrase, Region, Sample
from maskwise.store.columns import (
    MASK_TYPES,
    ImageColumns,
    Int64s,
    MaskColumn,
    RegionColumns,
    SampleColumns,
)
from maskwise.store.folder import (
    MASK_KINDS,
    TABLES,
    FileFacts,
    Manifest,
    check_files,
    file_facts,
    open_table,
    read_manifest,
    staged,
    write_manifest,
)

BLOCK_ROWS = 256
"""How many samples iteration turns into records at once."""


class Dataset:
    """A dataset folder, or a view of some of its samples. See the module's own text for what it offers."""

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        *,
        images: ImageColumns,
        regions: RegionColumns,
        samples: SampleColumns,
        image_root: Path | None,
    ) -> None:
        self.path, self.manifest, self.image_root = path, manifest, image_root
        self.images, self.regions, self.samples = images, regions, samples

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, image_root: str | os.PathLike[str] | None = None
    ) -> "Dataset":
        """Open a folder: checks manifest, schema version and file sizes, reads no mask.

        image_root: where images given by path lie, if not where the manifest says.
        """
        folder = Path(path)
        manifest = read_manifest(folder)
        suffix = check_files(folder, manifest)
        tables = {name: open_table(folder / f"{name}{suffix}", schema) for name, schema in TABLES.items()}
        for name, (table, _) in tables.items():
            if table.num_rows != manifest.counts.get(name):
                raise StoreError(
                    f"{folder}: {table.num_rows} {name}, but the manifest counts {manifest.counts.get(name)}"
                )
        images = ImageColumns(tables["images"][0], folder / f"images{suffix}", tables["images"][1])
        regions = RegionColumns(
            tables["regions"][0], folder / f"regions{suffix}", tables["regions"][1], images=images
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
        )

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.manifest.name

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self)} samples, {str(self.path)!r})"

    def __getitem__(self, index: int) -> Sample:
        row = index + len(self) if index < 0 else index
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
        """Images in row order, each with all its questions in row order; images without one are left out."""
        rows = self.samples.image
        view = self if (np.diff(rows) >= 0).all() else self.take(np.argsort(rows, kind="stable"))
        for image, samples in itertools.groupby(view, lambda sample: sample.image_id):
            yield self.image(image), list(samples)

    # -- views

    def slice(self, first: int, stop: int) -> "Dataset":
        """Samples first to stop, as Python slices count; copies nothing."""
        start, end, _ = slice(first, stop).indices(len(self))
        return self._view(self.samples.table.slice(start, max(0, end - start)), self.samples.mapped)

    def shard(self, index: int, count: int) -> "Dataset":
        """The samples of every count-th image, beginning with image `index`: part of `count` parts."""
        if not 0 <= index < count:
            raise StoreError(f"shard {index} of {count}: expected 0 to {count - 1}")
        return self.take(np.flatnonzero(self.samples.image % count == index))

    def take(self, rows: Int64s) -> "Dataset":
        """The samples of these rows, in the order given."""
        return self._view(self.samples.table.take(pa.array(rows)).combine_chunks(), None)

    def _view(self, table: pa.Table, mapped: NDArray[np.uint8] | None) -> "Dataset":
        samples = SampleColumns(table, self.samples.where, mapped, images=self.images, regions=self.regions)
        return Dataset(
            self.path,
            self.manifest,
            images=self.images,
            regions=self.regions,
            samples=samples,
            image_root=self.image_root,
        )

    # -- images and regions

    def image(self, key: int | str) -> ImageInfo:
        """The image of a row or an id."""
        row = self._image_row(key)
        height, width = self.images.size[row].tolist()
        return ImageInfo(id=self.images.id[row], width=width, height=height, path=self.images.path[row])

    def open_image(self, key: int | str) -> Image.Image:
        """The image of a row or an id as an upright RGB pixels, embedded or below the image root."""
        row = self._image_row(key)
        image, data = self.image(row), self.images.table["data"][row]
        if data.is_valid:
            pixels = open_image(data.as_py())
        elif image.path is None:
            raise ImageError(f"{self.path}: image {image.id!r} has neither a path nor embedded bytes")
        elif self.image_root is None:
            raise ImageError(f"{self.path} does not say where its images lie: open it with a image_root")
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
        parent, order = regions.part_of, regions.order
        try:
            masks = {kind: _mask_at(regions.masks(kind), row) for kind in MASK_KINDS}
            return Region(
                id=regions.table["id"][row].as_py(),
                name=regions.table["name"][row].as_py(),
                part_of=regions.table["id"][int(parent.values[row])].as_py() if parent.present[row] else None,
                order=int(order.values[row]) if order.present[row] else None,
                crowd=bool(regions.crowd[row]),
                **masks,
            )
        except (MaskError, RecordError) as error:
            raise StoreError(f"{regions.where}: region in row {row}: {error}") from error

    def regions_of(self, key: int | str) -> tuple[Region, ...]:
        """All regions of an image, targets or not, in row order."""
        row, (offsets, values) = self._image_row(key), self.regions.of_image
        return tuple(self.region(region) for region in values[offsets[row] : offsets[row + 1]].tolist())

    def _image_row(self, key: int | str) -> int:
        if isinstance(key, str):
            if key not in self.images.row:
                raise StoreError(f"{self.path}: no image {key!r} among {len(self.images)}")
            return self.images.row[key]
        if not 0 <= key < len(self.images):
            raise StoreError(f"{self.path}: no image in row {key}; there are {len(self.images)}")
        return key

    def _read(self, first: int, stop: int) -> Iterator[Sample]:
        offsets, targets = self.samples.targets
        made: dict[int, Region] = {}
        for number, row in enumerate(self._rows(first, stop), first):
            rows = targets[offsets[number] : offsets[number + 1]].tolist()
            for target in rows:
                if target not in made:
                    made[target] = self.region(target)
            yield self._sample(row, tuple(made[target] for target in rows), number)

    def _rows(self, first: int, stop: int) -> list[dict[str, Any]]:
        table = self.samples.table.slice(first, stop - first).drop_columns(["targets", "ignore"])
        try:
            rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
        except KeyError as error:
            raise StoreError(f"{self.samples.where}: a tag is given twice: {error}") from error
        return rows

    def _sample(self, row: dict[str, Any], targets: tuple[Region, ...], number: int) -> Sample:
        try:
            phrases = tuple(
                Phrase(start=phrase["start"], stop=phrase["stop"], regions=tuple(phrase["regions"]))
                for phrase in row["phrases"]
            )
            return Sample(
                id=row["id"],
                image_id=self.images.id[self.samples.image[number]],
                question=row["question"],
                mask_type=MASK_TYPES[self.samples.mask_type[number]],
                targets=targets,
                answer=None if row["answer"] is None else Answer(text=row["answer"], phrases=phrases),
                ignore=_mask_at(self.samples.ignore, number),
                tags=row["tags"],
            )
        except (MaskError, RecordError, TypeError) as error:
            # A TypeError is a phrase with an empty place, which the table's own check does not see.
            raise StoreError(f"{self.samples.where}: sample {row['id']!r}: {error}") from error

    # -- keeping

    def verify(self) -> None:
        """Read every byte: sha256 of each file against the manifest, and that the tables hold together."""
        for name, facts in self.manifest.files.items():
            with open(self.path / name, "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != facts.sha256:
                raise StoreError(f"{self.path / name} changed after it was written: its sha256 is {found}")
        for columns in (self.images, self.regions, self.samples):
            try:
                columns.table.validate(full=True)
            except pa.ArrowInvalid as error:
                raise StoreError(f"{columns.where}: {error}") from error

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the samples, and all images and regions, as a folder of zstd Parquet; it opens as any other.

        Images given by path stay where they are, and the new folder points there.
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
        columns = [self.samples.ignore, *(self.regions.masks(kind) for kind in MASK_KINDS)]
        masks = sum(int(column.present.sum()) for column in columns)
        return msgspec.structs.replace(
            self.manifest,
            counts={name: len(getattr(self, name)) for name in TABLES} | {"masks": masks},
            files=files,
            image_root=None if self.image_root is None else str(self.image_root.resolve()),
        )


def _mask_at(column: MaskColumn, row: int) -> Mask | None:
    return column.masks[row] if column.present[row] else None
