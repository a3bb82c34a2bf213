"""One scene of the world: an image, everything in it, and questions about it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskwise.errors import UnknownNameError
from maskwise.masks import Mask, Masks
from maskwise.schema import Region, Sample
from maskwise.world.backdrop import choose_backdrop
from maskwise.world.catalogue import SPLITS
from maskwise.world.chance import streams
from maskwise.world.grammar import Question, write_questions
from maskwise.world.items import Inventory, Item, take_stock
from maskwise.world.layout import Layout, arrange
from maskwise.world.render import render

SIZE = 160
"""Default side of an image in pixels."""

QUESTIONS = 6
"""Default number of questions a scene."""


@dataclass(frozen=True)
class Scene:
    """An image with exact masks and questions.

    image: uint8 (size, size, 3). `inventory` lists every object and part. Dense masks are made when first read;
    run-length masks likewise. `id` names seed, split and index; the same three give the same scene.
    """

    id: str
    split: str
    image: NDArray[np.uint8]
    layout: Layout
    inventory: Inventory
    questions: tuple[Question, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        """Every object, each followed by its parts, from the front to the back."""
        return self.inventory.items

    @cached_property
    def dense(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Visible and amodal masks of all items, bool (items, size, size) each."""
        return self.inventory.dense()

    @cached_property
    def masks(self) -> tuple[list[Mask], list[Mask]]:
        """Visible and amodal masks of all items as run lengths."""
        visible, amodal = self.dense
        both = list(Masks.from_dense(np.concatenate([visible, amodal])))
        return both[: len(visible)], both[len(visible) :]

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """All items as regions; ids are `object` or `object.part`, objects numbered from the front."""
        visible, amodal = self.masks
        return tuple(
            Region(
                id=_region_id(item),
                name=item.name,
                visible=visible[place],
                amodal=amodal[place],
                part_of=None if item.part is None else str(item.order),
                order=item.order,
            )
            for place, item in enumerate(self.items)
        )

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """The questions as samples; the image's id is the scene's."""
        return tuple(
            Sample(
                id=f"{self.id}-{number}",
                image_id=self.id,
                question=question.text,
                mask_type=question.mask_type,
                targets=tuple(self.regions[place] for place in question.targets),
                answer=question.answer,
                tags=question.tags,
            )
            for number, question in enumerate(self.questions)
        )


def scene(
    seed: int, index: int, split: str = "train", size: int = SIZE, *, questions: int = QUESTIONS
) -> Scene:
    """Scene `index` of a split. It depends on nothing but these arguments; the layout not even on size."""
    if split not in SPLITS:
        raise UnknownNameError("split", split, SPLITS)
    chances = streams(seed, SPLITS[split].number, index)
    layout = arrange(split, chances["layout"])
    backdrop = choose_backdrop(layout.setting, layout.horizon, chances["backdrop"])
    rendering = render(layout, backdrop, size, chances["noise"])
    inventory = take_stock(layout, rendering)
    asked = write_questions(inventory, split, questions, chances["questions"])
    return Scene(f"{split}-{seed}-{index}", split, rendering.image, layout, inventory, tuple(asked))


def stream(
    seed: int,
    split: str = "train",
    size: int = SIZE,
    *,
    questions: int = QUESTIONS,
    start: int = 0,
    step: int = 1,
) -> Iterator[Scene]:
    """Scenes without end: indices start, start + step, ... (a worker of n takes start = its number, step = n)."""
    index = start
    while True:
        yield scene(seed, index, split, size, questions=questions)
        index += step


def _region_id(item: Item) -> str:
    return str(item.order) if item.part is None else f"{item.order}.{item.part}"
