"""The ground truth of a whole dataset as columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from maskwise.arrays import BoolArray, Int8Array, Int32Array, Int64Array
from maskwise.arrow import arrow_to_numpy, nulls_to_zeros
from maskwise.protocols.columns import (
    Phrases,
    encode_strings,
    mask_column,
    no_masks,
    phrase_columns,
)
from maskwise.protocols.ragged import counts_to_offsets
from maskwise.schema import Region, Sample
from maskwise.store import MASK_TYPES, Codes, Dataset, MaskColumn
from maskwise.store.folder import MaskKind

VISIBLE, AMODAL, BOTH = (
    MASK_TYPES.index(name) for name in ("visible", "amodal", "both")
)


@dataclass(frozen=True)
class OtherTargets:
    """The targets of n samples by a further annotator. known: bool [n], whether there is one for this sample; offsets:
    int64 [n + 1]; visible: one mask per target.
    """

    known: BoolArray
    offsets: Int64Array
    visible: MaskColumn


@dataclass(frozen=True)
class GroundTruth:
    """n samples with t targets in all; sample i's targets are offsets[i] to offsets[i + 1].

    image: int64 [n] codes; image_size: int32 [n, 2] heights and widths; requested_type: int8 [n] positions in
    MASK_TYPES; visible, amodal, overlap: one mask per target, where known; ignore: one per sample; part: bool [t];
    has_answer: bool [n], whether there is an answer in words: without one a sample has no answer metrics.
    """

    ids: Sequence[str]
    image: Int64Array
    image_ids: Sequence[str]
    image_size: Int32Array
    requested_type: Int8Array
    offsets: Int64Array
    visible: MaskColumn
    amodal: MaskColumn
    overlap: MaskColumn
    ignore: MaskColumn
    names: Codes
    part: BoolArray
    has_answer: BoolArray
    tags: Mapping[str, Codes] = field(default_factory=dict)
    phrases: Phrases | None = None
    others: Sequence[OtherTargets] = ()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of_annotator(self, other: OtherTargets) -> "GroundTruth":
        """The truth of a further annotator, without names, answers and ignored pixels."""
        count = int(other.offsets[-1])
        nothing = MaskColumn(other.visible.masks, np.zeros(count, bool))
        return replace(
            self,
            offsets=other.offsets,
            visible=other.visible,
            amodal=nothing,
            overlap=nothing,
            ignore=MaskColumn(self.ignore.masks, np.zeros(len(self), bool)),
            names=encode_strings([""] * count),
            part=np.zeros(count, bool),
            phrases=None,
            others=(),
        )

    @cached_property
    def counts(self) -> Int64Array:
        """Targets of each sample."""
        return np.diff(self.offsets)

    @cached_property
    def sample(self) -> Int64Array:
        """Sample of each target."""
        return np.repeat(np.arange(len(self)), self.counts)

    @cached_property
    def cluster(self) -> Int64Array:
        """Images numbered in the order they first appear, int64 [n]."""
        _, first, inverse = np.unique(
            self.image, return_index=True, return_inverse=True
        )
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[inverse]

    @property
    def cluster_count(self) -> int:
        """How many images have a sample."""
        return int(self.cluster.max(initial=-1)) + 1

    @classmethod
    def from_dataset(cls, dataset: Dataset, *, masks: bool = True) -> "GroundTruth":
        """The columns of a dataset, sharing its memory. masks: whether to read them; if not, no mask is known."""
        samples = dataset.samples
        regions = dataset.regions
        offsets, rows = samples.targets

        def pick(kind: MaskKind, region_rows: Int32Array) -> MaskColumn:
            if not masks:
                return no_masks(len(region_rows))
            return regions.take_masks(kind, region_rows)

        names = [str(name) for name in regions.name.names]
        colon = np.array([":" in name for name in names], bool)
        codes = regions.name.codes[rows]
        return cls(
            ids=samples.id,
            image=samples.image.astype(np.int64),
            image_ids=dataset.images.id,
            image_size=samples.size,
            requested_type=samples.mask_type,
            offsets=offsets,
            visible=pick("visible", rows),
            amodal=pick("amodal", rows),
            overlap=pick("overlap", rows),
            ignore=samples.ignore if masks else no_masks(len(dataset)),
            names=Codes(codes, tuple(names)),
            part=regions.part_of.present[rows]
            | (colon[codes] if names else np.zeros(len(rows), bool)),
            has_answer=_has_answer(dataset),
            tags=_Tags(dataset),
            phrases=_dataset_phrases(dataset),
            others=[
                OtherTargets(known, starts, pick("visible", region_rows))
                for known, (starts, region_rows) in samples.other_targets
            ],
        )

    @classmethod
    def from_samples(
        cls, samples: Sequence[Sample], frames: Sequence[tuple[int, int]]
    ) -> "GroundTruth":
        """From records and the heights and widths of their images, both [n]."""
        targets = [region for sample in samples for region in sample.targets]
        images = list(dict.fromkeys(sample.image_id for sample in samples))
        row = {image: item for item, image in enumerate(images)}
        keys = sorted({key for sample in samples for key in sample.tags})
        return cls(
            ids=[sample.id for sample in samples],
            image=np.array([row[sample.image_id] for sample in samples], np.int64),
            image_ids=images,
            image_size=np.array(frames, np.int32).reshape(-1, 2),
            requested_type=np.array(
                [MASK_TYPES.index(sample.mask_type) for sample in samples], np.int8
            ),
            offsets=counts_to_offsets([len(sample.targets) for sample in samples]),
            visible=mask_column([region.visible for region in targets]),
            amodal=mask_column([region.amodal for region in targets]),
            overlap=mask_column([region.overlap for region in targets]),
            ignore=mask_column([sample.ignore for sample in samples]),
            names=encode_strings([region.name for region in targets]),
            part=np.array([is_part(region) for region in targets], bool),
            has_answer=np.array(
                [bool(sample.answer and sample.answer.text) for sample in samples], bool
            ),
            tags={
                key: encode_strings([sample.tags.get(key) for sample in samples])
                for key in keys
            },
            phrases=phrase_columns(
                [(sample.answer, len(sample.targets)) for sample in samples]
            ),
            others=_other_targets(samples),
        )


class _Tags(Mapping[str, Codes]):
    """The tags of a dataset, each read when first asked for."""

    def __init__(self, dataset: Dataset) -> None:
        self._samples = dataset.samples
        self._read: dict[str, Codes] = {}

    def __getitem__(self, name: str) -> Codes:
        if name not in self._read:
            self._read[name] = self._samples.tag(name)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._samples.tag_names)

    def __len__(self) -> int:
        return len(self._samples.tag_names)


def _other_targets(samples: Sequence[Sample]) -> list[OtherTargets]:
    """The targets of further annotators: one entry for the second, one for the third, and so on."""
    annotators = max((len(sample.other_targets) for sample in samples), default=0)
    others = []
    for item in range(annotators):
        known = np.array([len(sample.other_targets) > item for sample in samples], bool)
        by_sample = [
            sample.other_targets[item] if len(sample.other_targets) > item else ()
            for sample in samples
        ]
        masks = [region.visible for regions in by_sample for region in regions]
        offsets = counts_to_offsets([len(regions) for regions in by_sample])
        others.append(OtherTargets(known, offsets, mask_column(masks)))
    return others


def is_part(region: Region) -> bool:
    """Whether a region is a part: it says of what, or its name is in PACO's `object:part` form."""
    return region.part_of is not None or ":" in region.name


def _has_answer(dataset: Dataset) -> BoolArray:
    lengths = nulls_to_zeros(pc.utf8_length(dataset.samples.table["answer"]))
    has_answer: BoolArray = lengths > 0
    return has_answer


def _dataset_phrases(dataset: Dataset) -> Phrases | None:
    """The phrases of a dataset's answers, without their words."""
    column = dataset.samples.table["phrases"].combine_chunks()
    flat = column.flatten()
    if not len(flat):
        return None
    sample = np.repeat(np.arange(len(column)), np.diff(arrow_to_numpy(column.offsets)))
    regions = flat.field("regions")
    lengths = arrow_to_numpy(pc.list_value_length(regions))
    members = arrow_to_numpy(regions.flatten()).astype(np.int64)
    base = np.repeat(dataset.samples.targets.offsets[sample], lengths)
    return Phrases(sample, counts_to_offsets(lengths), base + members)
