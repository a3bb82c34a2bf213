"""How large objects of a category are, what they stand on and where they occur: category_sizes.yaml."""

import re
from functools import lru_cache
from importlib import resources
from typing import Literal

import msgspec
import numpy as np
from scipy.spatial import ConvexHull

from maskwise.arrays import BoolArray
from maskwise.errors import FormatError

Support = Literal["ground", "table", "none"]

SETTINGS = {
    "street": "outdoors",
    "station": "outdoors",
    "park": "outdoors",
    "farm": "outdoors",
    "savanna": "outdoors",
    "forest": "outdoors",
    "airport": "outdoors",
    "sky": "sky",
    "beach": "beach",
    "water": "water",
    "snow": "snow",
    "sports": "sports",
    "living": "indoors",
    "dining": "indoors",
    "kitchen": "indoors",
    "bedroom": "indoors",
    "bathroom": "indoors",
    "office": "indoors",
    "shop": "indoors",
}
"""The setting of each scene: what people would find absurd is a chair of a kitchen in a street, a skier on grass. Which
categories go together is a matter of scenes."""

EDGE = 0.03
"""How deep, as a share of a side of the box, an outline counts as lying on that side."""

MAX_STRAIGHT = 0.6
"""The largest share of a side that the outline of a complete person or animal follows: a standing person is narrow at
the feet, one behind a desk is cut off in full width."""


BASE = 0.05
MIN_BASE = 0.32
"""The smallest share of its width, in the lowest twentieth, that a thing on a table stands with. What is in front of it
cuts the base off at a slant: 0.26 for a bottle behind a telephone, 0.38 to 1 for complete cups, bottles and glasses."""

MIN_SOLIDITY = 0.875
"""The smallest share of its convex hull that a convex thing fills: 0.72 for a bowl with a candle in it, 0.87 for a bag
below clothes; 0.88 to 0.97 for bottles, cups, bowls and a vase of COCO that are complete."""

FOOT = 0.1
MAX_FOOT = 0.7
"""The largest share of the width in the lowest tenth of a standing person or animal: 0.06 to 0.67 in 33 of COCO, 0.73
for a dog and 0.96 for a cow that lie."""


class CategoryFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of category_sizes.yaml, whose comments describe the fields."""

    support: Support
    scenes: frozenset[str]
    height: float | None = None
    length: float | None = None
    shape: tuple[float, float] | None = None
    living: bool = False
    feet: int = 1
    target_feet: int | None = None
    ridden: bool = False
    convex: bool = False
    fixed: bool = False
    source: str = ""
    why: str = ""

    def __post_init__(self) -> None:
        has_size = (self.height is None) != (self.length is None)
        if self.support != "none" and not (has_size and self.shape and self.source):
            raise ValueError("needs a height or a length, a shape and a source")
        if self.support == "none" and not self.why:
            raise ValueError("needs a reason why it is not used")

    @property
    def settings(self) -> frozenset[str]:
        """The settings of its scenes."""
        return frozenset(SETTINGS[scene] for scene in self.scenes)

    def pixels_per_meter(self, height: int, width: int) -> float:
        """The scale of an image in which a complete object has a box of this size in pixels."""
        if self.height is not None:
            return height / self.height
        assert self.length is not None
        return max(height, width) / self.length

    def is_typical(self, mask: BoolArray, *, as_target: bool = False) -> bool:
        """Whether a mask, cropped to its box, has the outline of a complete object in a usual pose and view.

        as_target: whether it is to be completed, for which more must be seen than for what is pasted.
        """
        if self.shape is None:
            return False
        lowest, highest = self.shape
        height, width = mask.shape
        if not lowest <= height / width <= highest:
            return False
        if self.convex and _solidity(mask) < MIN_SOLIDITY:
            return False
        if self.support == "table":
            base = mask[-max(1, round(BASE * height)) :].any(0).mean()
            return bool(base >= MIN_BASE * _lower_width(mask))
        if not self.living:
            return True
        feet = self.feet
        if as_target and self.target_feet is not None:
            feet = self.target_feet
        lowest_rows: BoolArray = np.any(mask[-max(1, round(FOOT * height)) :], axis=0)
        has_feet = lowest_rows.mean() <= MAX_FOOT and _count_runs(lowest_rows) >= feet
        return bool(has_feet) and _straightest_side(mask) <= MAX_STRAIGHT


def _solidity(mask: BoolArray) -> float:
    """The share of its convex hull, of pixel corners, that an object fills; 1 for an empty mask."""
    rows, columns = np.nonzero(mask)
    if not len(rows):
        return 1.0
    corners = [
        np.column_stack((rows + down, columns + right))
        for down in (0, 1)
        for right in (0, 1)
    ]
    # In two dimensions "volume" is the area.
    return float(len(rows) / ConvexHull(np.concatenate(corners)).volume)


def _lower_width(mask: BoolArray) -> float:
    """The largest width of the lower half, as a share of the box: a handle or a spout is higher up."""
    rows = mask[len(mask) // 2 :]
    return float(rows.mean(1).max())


def _count_runs(row: BoolArray) -> int:
    """Separate runs of true values: feet."""
    padded = np.concatenate(([False], row, [False]))
    return int((padded[1:] & ~padded[:-1]).sum())


def _straightest_side(mask: BoolArray) -> float:
    """The share of a side of the box that the outline follows, for the side where it is largest."""
    height, width = mask.shape
    deep = max(1, round(EDGE * height))
    wide = max(1, round(EDGE * width))
    shares = (
        mask[:deep].any(0).mean(),
        mask[-deep:].any(0).mean(),
        mask[:, :wide].any(1).mean(),
        mask[:, -wide:].any(1).mean(),
    )
    return float(max(shares))


@lru_cache(maxsize=1)
def load_category_facts() -> dict[str, CategoryFacts]:
    """The table that ships with the package."""
    file = resources.files("maskwise.builder").joinpath("category_sizes.yaml")
    try:
        return msgspec.yaml.decode(file.read_bytes(), type=dict[str, CategoryFacts])
    except msgspec.ValidationError as error:
        raise FormatError(f"category_sizes.yaml: {error}") from None


@lru_cache(maxsize=4096)
def find_category(name: str) -> CategoryFacts | None:
    """The facts about a category; None if the table does not have it.

    Of synonyms ("car, automobile") any may be known; what stands in brackets is left out.
    """
    table = load_category_facts()
    for synonym in re.sub(r"\(.*?\)", " ", name.replace("_", " ")).split(","):
        facts = table.get(" ".join(synonym.lower().split()))
        if facts is not None:
            return facts
    return None


def find_settings(names: frozenset[str]) -> frozenset[str]:
    """The settings of the scenes that the objects of an image suggest; empty if none of them is known.

    Each category votes for its scenes with one vote in all, so that those of few scenes count most.
    """
    votes: dict[str, float] = {}
    for name in sorted(names):
        facts = find_category(name)
        scenes = frozenset[str]() if facts is None else facts.scenes
        for scene in scenes:
            votes[scene] = votes.get(scene, 0.0) + 1 / len(scenes)
    if not votes:
        return frozenset()
    most = max(votes.values())
    # Not only the first: a kitchen with a table laid is a dining room too.
    likely = [scene for scene, count in votes.items() if count >= 0.6 * most]
    return frozenset(SETTINGS[scene] for scene in likely)
