"""The images of a dataset with their regions, opened when they are needed."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from maskwise.builder.draft import SourceImage
from maskwise.store import Dataset

CACHED = 64


class SourceImages(Mapping[str, SourceImage]):
    """The first `count` images of a dataset by id; a few are kept in memory."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        self.dataset = dataset
        self.ids = tuple(dataset.images.id[:count])
        self._known = frozenset(self.ids)
        self._open = lru_cache(maxsize=CACHED)(lambda id: SourceImage.of(dataset, id))

    def __getitem__(self, id: str) -> SourceImage:
        if id not in self._known:
            raise KeyError(id)
        return self._open(id)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


class SourceFolder(NamedTuple):
    """Where a dataset is: what a worker process needs to open it."""

    path: str
    image_root: str | None

    @classmethod
    def of(cls, dataset: Dataset) -> "SourceFolder":
        """The folder of an open dataset."""
        root = dataset.image_root
        return cls(
            str(dataset.path.resolve()), None if root is None else str(root.resolve())
        )

    def open(self) -> Dataset:
        """The dataset, opened once per process."""
        return _open(self)


@lru_cache(maxsize=1)
def _open(folder: SourceFolder) -> Dataset:
    return Dataset.open(folder.path, image_root=folder.image_root)
