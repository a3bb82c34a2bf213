"""Plausible composites: which object may stand in front of which, how large, how low, and on which ground.

Categories that `category_sizes.yaml` knows are pasted in their relative size, if both stand on the same kind of
support, occur in a common scene, and their images suggest the same setting (outdoors, indoors, snow, ...). The occluder
stands a little nearer to the camera: it is larger by that factor, and its lower edge lies deeper in the image by what
perspective says. Other categories are pasted only in front of categories with which they occur in an image of the
datasets, in the relative size they have there.

Of several candidates the one whose old ground looks most like the new one is taken; if none looks alike, there is no
composite.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from maskwise.arrays import BoolArray, UInt8Array
from maskwise.builder.category_facts import find_category, find_settings
from maskwise.builder.composite import CutoutPlacement, place_at, place_beside
from maskwise.builder.cutouts import Cutout, CutoutSource, ground_color
from maskwise.schema import Region
from maskwise.store import Dataset

CANDIDATES = 16
"""Complete cut-outs that are tried for one target."""

MAX_DRAWS = 200
"""Objects that are looked at for them: most are not complete."""

NEARNESS = (1.03, 1.6)
"""How much nearer to the camera the occluder stands, as the factor by which it looks larger. With at most 1.25 most
targets found no occluder that covers enough of them and nothing that stands nearer."""

DEPTHS = 10
"""Distances in front of the target that are tried for a cut-out: the larger range of them needs more tries than 4."""

CAMERA_HEIGHT = {"ground": 1.5, "table": 0.4}
"""Meters from the support to the camera: a person who stands, and one who sits at a table. Perspective moves what is
nearer by a factor n down by (n - 1) times this height."""

DROP = (0.02, 0.2)
"""How much lower an occluder of unknown size stands, in heights of the target."""

SCALES = (0.2, 1.6)
"""How much a cut-out may shrink or grow: one that grows more looks blurred beside what is sharp."""

MAX_COLOR_DISTANCE = 1.2
"""Largest difference of the two grounds, in the units of `ground_color`: 1 is a factor of 2 in brightness. 0.8
gave 4 pairs of 110 COCO photos and 1.2 gave 6; none looked worse, since the most similar ground is taken anyway."""


class TargetScene(NamedTuple):
    """An image in which an object is to be occluded.

    row: of the image in the dataset of the cut-outs, -1 if it is not there. regions, masks: its objects, and their
    visible masks, bool [height, width] each. target: number of the one to be occluded.
    """

    pixels: UInt8Array
    row: int
    regions: Sequence[Region]
    masks: Sequence[BoolArray]
    target: int

    @property
    def names(self) -> frozenset[str]:
        """The categories of the image."""
        return frozenset(region.name for region in self.regions)


class CategoryStatistics:
    """Which categories of one or two datasets occur together, and how large they are in their images."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self.together: Counter[tuple[str, str]] = Counter()
        sizes: dict[str, list[float]] = {}
        for dataset in datasets:
            regions = dataset.regions
            names = regions.table["name"].to_pylist()
            visible = regions.masks("visible")
            areas = np.where(visible.present, visible.masks.area(), 0)
            frames = regions.size.astype(np.int64).prod(1)
            shares = np.sqrt(areas / np.maximum(frames, 1)).tolist()
            in_image: dict[int, set[str]] = {}
            for name, image, share in zip(names, regions.image.tolist(), shares):
                in_image.setdefault(image, set()).add(name)
                sizes.setdefault(name, []).append(share)
            for present in in_image.values():
                self.together.update(combinations(sorted(present), 2))
        self._sizes = {name: float(np.median(shares)) for name, shares in sizes.items()}

    def count(self, first: str, second: str) -> int:
        """Images in which both categories occur; a category occurs with itself."""
        if first == second:
            return 1
        low, high = sorted((first, second))
        return self.together[low, high]

    def size_ratio(self, name: str, other: str) -> float:
        """How many times larger `name` is than `other`, by the square roots of their areas."""
        return self._sizes[name] / max(self._sizes[other], 1e-6)


def find_occluder(
    scene: TargetScene,
    cutouts: CutoutSource,
    statistics: CategoryStatistics,
    *,
    rates: tuple[float, float],
    random: np.random.Generator,
) -> CutoutPlacement | None:
    """The placement in front of the target that looks most plausible; None if there is none."""
    target_name = scene.regions[scene.target].name
    if not _is_typical(target_name, scene.masks[scene.target]):
        return None
    best = None
    smallest_distance = MAX_COLOR_DISTANCE
    ground = ground_color(scene.pixels, scene.masks[scene.target])
    for cutout in _draw_candidates(scene, cutouts, statistics, random):
        if cutout.ground is None:
            continue
        distance = float(np.linalg.norm(cutout.ground - ground))
        if distance >= smallest_distance:
            continue
        for _ in range(DEPTHS):
            placement = _place_in_front(
                scene, cutout, statistics, rates=rates, random=random
            )
            if placement is not None:
                best = placement
                smallest_distance = distance
                break
    return best


def _draw_candidates(
    scene: TargetScene,
    cutouts: CutoutSource,
    statistics: CategoryStatistics,
    random: np.random.Generator,
) -> Iterator[Cutout]:
    """Complete objects that may stand in front of the target, each once."""
    settings = find_settings(scene.names)
    target_name = scene.regions[scene.target].name
    weights = {
        name: _weight(name, target_name, scene.names, settings, statistics)
        for name in cutouts.names
    }
    chances = np.array([weights[cutouts.names[code]] for code in cutouts.codes])
    chances[cutouts.images == scene.row] = 0
    possible = int((chances > 0).sum())
    if not possible:
        return
    picks = random.choice(
        len(chances), min(MAX_DRAWS, possible), replace=False, p=chances / chances.sum()
    )
    count = 0
    for pick in picks.tolist():
        if count == CANDIDATES:
            return
        cutout = cutouts.cut_out(pick)
        if cutout is None or not _is_typical(cutout.name, cutout.mask):
            continue
        are_known = settings and cutout.settings
        if not are_known or settings & cutout.settings:
            count += 1
            yield cutout


def _is_typical(name: str, mask: BoolArray) -> bool:
    """Whether an object has a usual pose and view, so that its size is known; unknown categories pass."""
    facts = find_category(name)
    if facts is None:
        return True
    rows = np.flatnonzero(mask.any(1))
    columns = np.flatnonzero(mask.any(0))
    box = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    return facts.is_typical(mask[box])


def _weight(
    name: str,
    target_name: str,
    names: frozenset[str],
    settings: frozenset[str],
    statistics: CategoryStatistics,
) -> float:
    """How often a category is tried in front of the target; 0 if never."""
    facts = find_category(name)
    target = find_category(target_name)
    if facts is None or target is None:
        return float(statistics.count(name, target_name))
    if facts.fixed or facts.support != target.support or facts.support == "none":
        return 0.0
    if not facts.scenes & target.scenes or not facts.settings & settings:
        return 0.0
    return 1.0 + sum(statistics.count(name, other) > 0 for other in names)


def find_room(
    scene: TargetScene,
    cutouts: CutoutSource,
    statistics: CategoryStatistics,
    random: np.random.Generator,
) -> CutoutPlacement | None:
    """A plausible placement beside the target, about as far away, that covers no object; None if there is none."""
    taken = np.zeros(scene.pixels.shape[:2], np.bool_)
    for mask in scene.masks:
        taken |= mask
    ground = ground_color(scene.pixels, scene.masks[scene.target])
    for cutout in _draw_candidates(scene, cutouts, statistics, random):
        if cutout.ground is None:
            continue
        if np.linalg.norm(cutout.ground - ground) >= MAX_COLOR_DISTANCE:
            continue
        scale, bottom = _draw_depth(scene, cutout, statistics, random)
        if not SCALES[0] <= scale <= SCALES[1]:
            continue
        placement = place_beside(cutout, taken, random, scale=scale, bottom=bottom)
        if placement is not None:
            return placement
    return None


def _place_in_front(
    scene: TargetScene,
    cutout: Cutout,
    statistics: CategoryStatistics,
    *,
    rates: tuple[float, float],
    random: np.random.Generator,
) -> CutoutPlacement | None:
    """A placement of the right size and depth that hides a share of the target within `rates`."""
    scale, bottom = _draw_depth(scene, cutout, statistics, random)
    if not SCALES[0] <= scale <= SCALES[1]:
        return None
    return place_at(
        cutout,
        scene.masks[scene.target],
        rates,
        random,
        scale=scale,
        bottom=bottom,
        keep_clear=_nearer_objects(scene, bottom),
    )


def _draw_depth(
    scene: TargetScene,
    cutout: Cutout,
    statistics: CategoryStatistics,
    random: np.random.Generator,
) -> tuple[float, int]:
    """A distance a little nearer than the target, as the scale of the cut-out and the row of its lower edge."""
    mask = scene.masks[scene.target]
    rows = np.flatnonzero(mask.any(1))
    columns = np.flatnonzero(mask.any(0))
    nearness = random.uniform(*NEARNESS)
    target_name = scene.regions[scene.target].name
    target = find_category(target_name)
    facts = find_category(cutout.name)
    if facts is None or target is None:
        ratio = statistics.size_ratio(cutout.name, target_name)
        scale = nearness * ratio * float(np.sqrt(mask.sum() / cutout.mask.sum()))
        drop = random.uniform(*DROP) * len(rows)
    else:
        height = int(rows[-1] - rows[0]) + 1
        width = int(columns[-1] - columns[0]) + 1
        meter = target.pixels_per_meter(height, width)
        scale = nearness * meter / facts.pixels_per_meter(*cutout.mask.shape)
        drop = (nearness - 1) * CAMERA_HEIGHT[target.support] * meter
    return scale, int(rows[-1] + 1 + drop)


def _nearer_objects(scene: TargetScene, bottom: int) -> BoolArray:
    """Pixels of objects whose base line lies below `bottom`: they would have to be in front of the occluder."""
    nearer = np.zeros(scene.pixels.shape[:2], np.bool_)
    for number, mask in enumerate(scene.masks):
        rows = np.flatnonzero(mask.any(1))
        if number != scene.target and len(rows) and rows[-1] >= bottom:
            nearer |= mask
    return nearer
