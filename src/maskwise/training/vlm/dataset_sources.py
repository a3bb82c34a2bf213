"""Sources of training samples that are dataset folders, and what all sources have.

source[index]       the image and its questions, with all its regions; index below len(source)
"""

from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow.compute as pc

from maskwise.arrays import Int64Array
from maskwise.errors import ConfigError
from maskwise.masks import Mask
from maskwise.models.vlm.batch import ImageQuestions
from maskwise.schema import Region, Sample
from maskwise.store import Dataset


class ItemSize(NamedTuple):
    """How long an item is, known without opening it. pixels: of the image, 0 without one. questions: their number.
    characters: of a question with its answer, on average.
    """

    pixels: int
    questions: int
    characters: float


class Source(Protocol):
    """A sequence of images with questions. `samples`: the number of questions. `window`: of a source that is read in
    order, the items that are at hand at a time; None if any item is.
    """

    samples: int
    window: int | None

    def size_of(self, index: int) -> ItemSize:
        """How long an item is."""

    def __len__(self) -> int:
        """Number of images."""

    def __getitem__(self, index: int) -> ImageQuestions:
        """The image with all its questions and regions."""


class DatasetSource:
    """The images of a dataset folder that have questions."""

    window: int | None = None

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.samples = len(dataset)
        order = np.argsort(dataset.samples.image, kind="stable")
        images = dataset.samples.image[order]
        self._groups = (
            np.split(order, np.flatnonzero(np.diff(images)) + 1) if len(order) else []
        )

    def __len__(self) -> int:
        return len(self._groups)

    def size_of(self, index: int) -> ItemSize:
        rows = self._groups[index]
        height, width = self.dataset.images.size[self.dataset.samples.image[rows[0]]]
        return ItemSize(
            int(height) * int(width), len(rows), float(self._characters[rows].mean())
        )

    @cached_property
    def _characters(self) -> Int64Array:
        """Of each question with its answer."""
        table = self.dataset.samples.table
        questions = pc.utf8_length(table["question"])
        answers = pc.fill_null(pc.utf8_length(table["answer"]), 0)
        characters: Int64Array = pc.add(questions, answers).to_numpy().astype(np.int64)
        return characters

    def __getitem__(self, index: int) -> ImageQuestions:
        samples = tuple(self.dataset[int(row)] for row in self._groups[index])
        image = samples[0].image_id
        return ImageQuestions(
            self.dataset.open_image(image), samples, self.dataset.regions_of(image)
        )


CATEGORY_QUESTIONS = (
    "Can you segment the {name} in this image?",
    "Please segment the {name} in this image.",
    "What is the {name} in this image? Please respond with a segmentation mask.",
    "Where is the {name} in this picture? Please output a segmentation mask.",
    "Mark everything that is {name}.",
)
"""How a category is asked for, after the templates of LISA's semantic segmentation data."""

WORDING_LENGTH = 60.0
"""Characters of such a question with its answer, roughly."""


class CategorySource:
    """The images of a dataset folder, with a question per category of their regions.

    The target of a question is all that has the name: semantic segmentation knows no instances.
    """

    window: int | None = None

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        names = [
            {region.name for region in dataset.regions_of(row) if region.name}
            for row in range(len(dataset.images.id))
        ]
        self._rows = [row for row, own in enumerate(names) if own]
        self._counts = [len(names[row]) for row in self._rows]
        self.samples = sum(map(len, names))
        if not self._rows:
            raise ConfigError(f"{dataset.path} has no regions with a name to ask for")

    def __len__(self) -> int:
        return len(self._rows)

    def size_of(self, index: int) -> ItemSize:
        height, width = self.dataset.images.size[self._rows[index]]
        return ItemSize(int(height) * int(width), self._counts[index], WORDING_LENGTH)

    def __getitem__(self, index: int) -> ImageQuestions:
        row = self._rows[index]
        image_id = self.dataset.images.id[row]
        regions = self.dataset.regions_of(row)
        by_name: dict[str, list[Mask]] = {}
        for region in regions:
            if region.name and region.visible is not None:
                by_name.setdefault(region.name, []).append(region.visible)
        samples = []
        for number, (name, masks) in enumerate(by_name.items()):
            wording = CATEGORY_QUESTIONS[(row + number) % len(CATEGORY_QUESTIONS)]
            target = Region(
                id=f"{image_id}-{name}", name=name, visible=reduce(or_, masks)
            )
            samples.append(
                Sample(
                    id=f"{image_id}-{name}",
                    image_id=image_id,
                    question=wording.format(name=name),
                    mask_type="visible",
                    targets=(target,),
                )
            )
        return ImageQuestions(
            self.dataset.open_image(row), tuple(samples), tuple(regions)
        )
