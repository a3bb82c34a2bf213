"""The plan of a run: images in the dataset's order, each with all its questions.

The order is that of the images' rows, and within an image that of the samples' rows. predictions.jsonl has the same
order, whatever the engine.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import numpy as np

from maskwise.arrays import Int64Array
from maskwise.errors import StoreError
from maskwise.store import Dataset


class PlannedImage(NamedTuple):
    """One image and its questions, as rows of the dataset."""

    image: int
    rows: tuple[int, ...]


class Plan(Sequence[PlannedImage]):
    """The images and questions of a run, a few bytes per sample.

    images: int64 [p], rows of images; rows: int64 [n], rows of samples, image by image; offsets: int64 [p + 1], where
    each image's samples begin. A slice is a plan again.
    """

    def __init__(
        self, images: Int64Array, rows: Int64Array, offsets: Int64Array
    ) -> None:
        self.images = images
        self.rows = rows
        self.offsets = offsets

    @classmethod
    def from_dataset(
        cls, dataset: Dataset, *, limit: int | None = None, seed: int = 0
    ) -> "Plan":
        """All images that have a question, or `limit` of them drawn with `seed`, each with all its questions.

        Images are drawn by the hash of seed and id: the draw does not depend on the order of the dataset, and a
        larger one contains a smaller one.
        """
        owner = dataset.samples.image
        rows = np.argsort(owner, kind="stable").astype(np.int64)
        images, counts = np.unique(owner, return_counts=True)
        plan = cls(
            images.astype(np.int64), rows, np.concatenate([[0], np.cumsum(counts)])
        )
        return plan if limit is None else plan._draw(dataset.images.id, limit, seed)

    @property
    def samples(self) -> int:
        """How many questions there are."""
        return len(self.rows)

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[PlannedImage]:
        return (self[item] for item in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> PlannedImage: ...
    @overload
    def __getitem__(self, index: slice) -> "Plan": ...
    def __getitem__(self, index: int | slice) -> "PlannedImage | Plan":
        if isinstance(index, slice):
            first, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError(
                    f"a plan can only be sliced without a step; got a step of {step}"
                )
            ends = self.offsets[first : max(first, stop) + 1]
            return Plan(
                self.images[first:stop], self.rows[ends[0] : ends[-1]], ends - ends[0]
            )
        item = range(len(self))[index]
        rows = self.rows[self.offsets[item] : self.offsets[item + 1]]
        return PlannedImage(int(self.images[item]), tuple(rows.tolist()))

    def only(self, positions: Sequence[int]) -> "Plan":
        """The samples at these positions of `rows`, ascending; images without one are dropped."""
        kept = np.asarray(positions, np.int64)
        counts = np.zeros(0, np.int64)
        if len(self):
            # The last bin of a histogram includes its right end; no position is there.
            counts = np.histogram(kept, self.offsets)[0]
        has_samples = counts > 0
        return Plan(
            self.images[has_samples],
            self.rows[kept],
            np.concatenate([[0], np.cumsum(counts[has_samples])]),
        )

    def _draw(self, ids: Sequence[str], limit: int, seed: int) -> "Plan":
        if limit < 1:
            raise StoreError(
                f"a limit of {limit} images leaves nothing to predict; expected 1 or more"
            )
        keys = []
        for image in self.images.tolist():
            # An id may contain surrogates, where a file name was not valid UTF-8.
            text = f"{seed} {ids[image]}".encode(errors="surrogatepass")
            keys.append(hashlib.sha256(text).digest())
        by_key = sorted(range(len(keys)), key=keys.__getitem__)
        is_drawn = np.zeros(len(self), bool)
        is_drawn[by_key[:limit]] = True
        samples_per_image = np.diff(self.offsets)
        is_sample_drawn = np.repeat(is_drawn, samples_per_image)
        return self.only(np.flatnonzero(is_sample_drawn).tolist())
