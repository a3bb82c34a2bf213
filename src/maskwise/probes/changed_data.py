"""Changed copies of a dataset's samples, and what the changes cost.

A probe that changes images or words writes the changed samples as a dataset folder and
evaluates the model on it, so that truth, scores and examples are those of any evaluation.
Every changed sample names its control, the sample it is compared with: one of the probed
dataset, or another changed one.
"""

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from maskwise.arrays import BoolArray, Float64Array, Int64Array, UInt8Array
from maskwise.errors import StoreError
from maskwise.masks import Mask
from maskwise.probes.context import PROTOCOL, ProbeContext
from maskwise.probes.severity import grade, state_edges, worst
from maskwise.protocols import MetricTerms
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.significance import Comparison, adjust_by_holm, compare_metric
from maskwise.runs import Run
from maskwise.runs.files import hash_path
from maskwise.runs.probe_results import Severity
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset, DatasetWriter
from maskwise.store.folder import MANIFEST, read_manifest
from maskwise.world.dataset import encode_image

CHANGE = "change"
STRENGTH = "strength"
CONTROL = "control"
SOURCE = "source_image"
"""Tags of changed samples: what was changed, how much, the control, and the image of the
probed dataset that it comes from."""

LOSSES: tuple[tuple[float, Severity], ...] = (
    (0.05, "low"),
    (0.15, "medium"),
    (0.30, "high"),
)
"""The share of the score that is lost, from which on a finding has this severity: a
twentieth is seen in a table, a third turns a good model into a poor one."""

ALPHA = 0.02
"""Level of all tests of one probe together, two-sided, so that a model that loses nothing is
flagged by chance in about 1 % of all probes."""

LOSS_THRESHOLDS = state_edges(
    LOSSES, f"{{}} % of the score or more is lost, with p < {ALPHA}"
)


class Effect(NamedTuple):
    """A change against its controls under gIoU. p: adjusted for all changes of a probe."""

    name: str
    samples: int
    comparison: Comparison
    p: float | None

    @property
    def loss(self) -> float | None:
        """The share of the controls' score that is lost; negative for a gain."""
        before = self.comparison.a
        difference = self.comparison.difference
        if not before or difference is None:
            return None
        return -difference / before

    @property
    def loss_range(self) -> tuple[float, float] | None:
        """The interval of the loss, as shares of the controls' score; None where there is none."""
        before = self.comparison.a
        low = self.comparison.interval.low
        high = self.comparison.interval.high
        if not before or low is None or high is None:
            return None
        return -high / before, -low / before

    @property
    def severity(self) -> Severity:
        """By LOSSES; `none` unless the loss is significant."""
        if self.loss is None or self.p is None or self.p >= ALPHA:
            return "none"
        return grade(self.loss, LOSSES)


def draw_generator(seed: int, *parts: object) -> np.random.Generator:
    """Random numbers that depend on the seed and the parts, not on what was drawn before."""
    words = [zlib.crc32(str(part).encode()) for part in parts]
    return np.random.default_rng([seed, *words])


def write_changed(
    context: ProbeContext,
    name: str,
    write: Callable[[DatasetWriter], None],
    settings: object = "",
) -> Path:
    """The folder of a changed dataset. It is written only if it is not there already.

    name: its folder. write: adds images and samples. settings: what they depend on beside
    dataset, seed and --quick; with other settings the folder is written anew.
    """
    folder = context.work_folder("changed") / name
    source = context.dataset
    about = {
        "changed": name,
        "source": source.name,
        "source_sha256": hash_path(source.path / MANIFEST),
        "source_samples": str(len(source)),
        "seed": str(context.seed),
        "quick": str(context.quick),
        "settings": str(settings),
    }
    if (folder / MANIFEST).is_file() and read_manifest(folder).about == about:
        return folder
    full_name = f"{source.name}-{name}"
    with DatasetWriter(folder, name=full_name, about=about, overwrite=True) as writer:
        write(writer)
    return folder


def changed_sample(
    sample: Sample, image: ImageInfo, suffix: str, *, change: str, **changes: object
) -> Sample:
    """A copy of a sample about a changed image. changes: other fields, such as `question`,
    and `strength`, `control` and `source` for its tags.
    """
    tags = dict(sample.tags)
    tags[CHANGE] = change
    tags[STRENGTH] = str(changes.pop("strength", ""))
    tags[CONTROL] = str(changes.pop("control", sample.id))
    tags[SOURCE] = str(changes.pop("source", sample.image_id))
    return replace(
        sample,
        id=f"{sample.id}~{suffix}",
        image_id=image.id,
        tags=tags,
        **changes,
    )


def changed_image(image: ImageInfo, suffix: str, pixels: UInt8Array) -> ImageInfo:
    """The record of a changed copy of an image, whose pixels are in the dataset."""
    height, width = pixels.shape[:2]
    return replace(
        image, id=f"{image.id}~{suffix}", path=None, width=width, height=height
    )


MoveMask = Callable[[BoolArray], BoolArray] | None
"""What happens to a mask when the pixels of its image move; None if they do not."""


def move_region(region: Region, move: MoveMask) -> Region:
    """A region whose masks move with the pixels of its image."""
    return replace(
        region,
        visible=_move(region.visible, move),
        amodal=_move(region.amodal, move),
        overlap=_move(region.overlap, move),
    )


def move_sample(sample: Sample, move: MoveMask) -> Sample:
    """A sample whose masks move with the pixels of its image."""
    others = []
    for regions in sample.other_targets:
        others.append(tuple(move_region(region, move) for region in regions))
    return replace(
        sample,
        targets=tuple(move_region(region, move) for region in sample.targets),
        ignore=_move(sample.ignore, move),
        other_targets=tuple(others),
    )


def _move(mask: Mask | None, move: MoveMask) -> Mask | None:
    if mask is None or move is None:
        return mask
    return Mask.from_dense(move(mask.to_dense()))


def to_png(pixels: UInt8Array) -> bytes:
    """Without loss, so that a model sees exactly the changed pixels."""
    return encode_image(pixels, "png")


class ChangedRun:
    """A run on changed samples, with the terms of gIoU of each sample and of its control."""

    def __init__(self, context: ProbeContext, run: Run, folder: Path) -> None:
        self.run = run
        self.dataset = Dataset.open(folder)
        if run.ids != self.dataset.samples.id:
            rows = [self.dataset.samples.row[id] for id in run.ids]
            self.dataset = self.dataset.take(np.array(rows, np.int64))
        self.changes = self.tag(CHANGE)
        self.strengths = self.tag(STRENGTH)
        self.controls = self.tag(CONTROL)
        _, self.images = np.unique(self.tag(SOURCE), return_inverse=True)
        self.terms = run.metrics(PROTOCOL)["giou"]
        self.control_terms = self._find_controls(context)

    def tag(self, name: str) -> list[str]:
        """The values of a tag, one per sample."""
        codes, names = self.dataset.samples.tag(name)
        return [names[code] or "" for code in codes.tolist()]

    def compare(self, groups: Sequence[tuple[str, BoolArray]]) -> list[Effect]:
        """The samples of each named group against their controls, adjusted together (Holm)."""
        effects = []
        for name, rows in groups:
            chosen = np.flatnonzero(rows)
            if not len(chosen):
                continue
            images = ImageGroups.single(self.images[chosen].astype(np.int64))
            before = take_terms(self.control_terms, chosen)
            after = take_terms(self.terms, chosen)
            compared = compare_metric(before, after, images)[0]
            effects.append(Effect(name, len(chosen), compared, compared.p_value))
        adjusted = adjust_by_holm([effect.p for effect in effects])
        return [effect._replace(p=p) for effect, p in zip(effects, adjusted)]

    def by_change(self, changes: Sequence[str]) -> list[tuple[str, BoolArray]]:
        """A group for each change that has samples, for `compare`."""
        labels = np.array(self.changes)
        return [(name, labels == name) for name in changes if name in self.changes]

    def most_lost(self, rows: BoolArray, count: int) -> list[int]:
        """Rows with the largest loss against their controls, at most one per source image."""
        gain = _values(self.terms) - _values(self.control_terms)
        chosen = []
        seen = set()
        for row in np.argsort(gain, kind="stable").tolist():
            is_loss = rows[row] and gain[row] < 0
            if is_loss and self.images[row] not in seen:
                seen.add(self.images[row])
                chosen.append(row)
        return chosen[:count]

    def _find_controls(self, context: ProbeContext) -> MetricTerms:
        """The terms of each sample's control, from this run or from the shared evaluation."""
        own = {id: row for row, id in enumerate(self.run.ids)}
        if all(control in own for control in self.controls):
            rows = np.array([own[control] for control in self.controls], np.int64)
            return take_terms(self.terms, rows)
        base = context.base.metrics(PROTOCOL)["giou"]
        first = len(self.run.ids)
        joined = MetricTerms(
            np.concatenate([self.terms.numerator, base.numerator]),
            np.concatenate([self.terms.denominator, base.denominator]),
        )
        place = {id: first + row for row, id in enumerate(context.base.ids)} | own
        missing = [control for control in self.controls if control not in place]
        if missing:
            raise StoreError(
                f"{context.base.location} has no sample {missing[0]!r}, the control of a changed one"
            )
        rows = np.array([place[control] for control in self.controls], np.int64)
        return take_terms(joined, rows)


def take_terms(terms: MetricTerms, rows: Int64Array) -> MetricTerms:
    """The terms of some samples."""
    return MetricTerms(
        terms.numerator[rows], terms.denominator[rows], epsilon=terms.epsilon
    )


def _values(terms: MetricTerms) -> Float64Array:
    """The score of each sample; 0 where it does not count."""
    return np.asarray(terms.numerator / np.maximum(terms.denominator, 1e-12))


def worst_severity(effects: Sequence[Effect]) -> Severity:
    """The highest severity of some effects; `unmeasured` where none could be tested."""
    if all(effect.p is None for effect in effects):
        return "unmeasured"
    return worst([effect.severity for effect in effects])
