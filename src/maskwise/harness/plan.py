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
        keep = np.asarray(positions, np.int64)
        counts = (
            np.histogram(keep, self.offsets)[0] if len(self) else np.zeros(0, np.int64)
        )
        # The last bin of a histogram includes its right end; no position is there.
        some = counts > 0
        return Plan(
            self.images[some],
            self.rows[keep],
            np.concatenate([[0], np.cumsum(counts[some])]),
        )

    def _draw(self, ids: Sequence[str], limit: int, seed: int) -> "Plan":
        if limit < 1:
            raise StoreError(
                f"a limit of {limit} images leaves nothing to predict; expected 1 or more"
            )
        keys = [
            hashlib.sha256(
                f"{seed} {ids[image]}".encode(errors="surrogatepass")
            ).digest()
            for image in self.images.tolist()
        ]
        chosen = np.sort(
            np.array(sorted(range(len(keys)), key=keys.__getitem__)[:limit], np.int64)
        )
        drawn = np.zeros(len(self), bool)
        drawn[chosen] = True
        owner = np.repeat(drawn, np.diff(self.offsets))
        return self.only(np.flatnonzero(owner).tolist())
