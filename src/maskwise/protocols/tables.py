"""The two tables every protocol reads, as columns over a whole dataset: the truth, and the replies to it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from maskwise.errors import ProtocolError
from maskwise.masks import Mask, Masks
from maskwise.protocols.extents import Measured
from maskwise.protocols.metrics import Flags, Floats, Int64s
from maskwise.protocols.pairs import flatten
from maskwise.schema import Answer, PredictedRegion, Prediction, Region, Sample
from maskwise.store import MASK_TYPES, Codes, Dataset, MaskColumn

VISIBLE, AMODAL, BOTH = (MASK_TYPES.index(name) for name in ("visible", "amodal", "both"))
UNDECIDED = len(MASK_TYPES)
"""Code of a reply that names no mask type."""

ANSWERED, FAILED, MISSING = range(3)
"""State of a reply: there is one, there is an unusable one, there is none."""

MALFORMED = "malformed mask"
"""Why a reply failed whose run lengths are none."""

Int8s = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Phrases:
    """Which masks each phrase of the answers speaks of.

    sample: int64 [phrases], rising; offsets: int64 [phrases + 1]; members: int64, positions among all regions;
    words: the words of each phrase, where they were kept.
    """

    sample: Int64s
    offsets: Int64s
    members: Int64s
    words: Codes | None = None


@dataclass(frozen=True)
class Truth:
    """n samples with t targets in all; sample i's targets are offsets[i] to offsets[i + 1].

    image: int64 [n] codes; frame: int32 [n, 2] heights and widths; wanted: int8 [n] positions in MASK_TYPES;
    visible, amodal, overlap: one mask a target, where known; ignore: one a sample; part: bool [t].
    """

    ids: Sequence[str]
    image: Int64s
    images: Sequence[str]
    frame: NDArray[np.int32]
    wanted: Int8s
    offsets: Int64s
    visible: MaskColumn
    amodal: MaskColumn
    overlap: MaskColumn
    ignore: MaskColumn
    names: Codes
    part: Flags
    tags: Mapping[str, Codes] = field(default_factory=dict)
    phrases: Phrases | None = None
    questions: Sequence[str] = ()
    answers: Sequence[str | None] = ()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def counts(self) -> Int64s:
        """Targets of each sample."""
        return np.diff(self.offsets)

    @cached_property
    def sample(self) -> Int64s:
        """Sample of each target."""
        return np.repeat(np.arange(len(self)), self.counts)

    @cached_property
    def cluster(self) -> Int64s:
        """Images numbered in the order they first appear, int64 [n]."""
        _, first, inverse = np.unique(self.image, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[inverse]

    @property
    def clusters(self) -> int:
        """How many images have a sample."""
        return int(self.cluster.max(initial=-1)) + 1

    @classmethod
    def of(cls, dataset: Dataset, *, texts: bool = False) -> "Truth":
        """The columns of a dataset, sharing its memory; questions and answers only if `texts`."""
        samples, regions = dataset.samples, dataset.regions
        offsets, rows = samples.targets
        picked = {kind: _take(regions.masks(kind), rows) for kind in ("visible", "amodal", "overlap")}
        names = [str(name) for name in regions.name.names]
        colon = np.array([":" in name for name in names], bool)
        codes = regions.name.codes[rows]
        return cls(
            ids=samples.id,
            image=samples.image.astype(np.int64),
            images=dataset.images.id,
            frame=samples.size,
            wanted=samples.mask_type,
            offsets=offsets,
            visible=picked["visible"],
            amodal=picked["amodal"],
            overlap=picked["overlap"],
            ignore=samples.ignore,
            names=Codes(codes, tuple(names)),
            part=regions.part_of.present[rows] | (colon[codes] if names else np.zeros(len(rows), bool)),
            tags=_Tags(dataset),
            phrases=_dataset_phrases(dataset),
            questions=samples.question if texts else (),
            answers=samples.table["answer"].to_pylist() if texts else (),
        )

    @classmethod
    def from_samples(cls, samples: Sequence[Sample], frames: Sequence[tuple[int, int]]) -> "Truth":
        """From records and the heights and widths of their images, both [n]."""
        targets = [region for sample in samples for region in sample.targets]
        images = list(dict.fromkeys(sample.image_id for sample in samples))
        row = {image: item for item, image in enumerate(images)}
        keys = sorted({key for sample in samples for key in sample.tags})
        return cls(
            ids=[sample.id for sample in samples],
            image=np.array([row[sample.image_id] for sample in samples], np.int64),
            images=images,
            frame=np.array(frames, np.int32).reshape(-1, 2),
            wanted=np.array([MASK_TYPES.index(sample.mask_type) for sample in samples], np.int8),
            offsets=offsets_of([len(sample.targets) for sample in samples]),
            visible=mask_column([region.visible for region in targets]),
            amodal=mask_column([region.amodal for region in targets]),
            overlap=mask_column([region.overlap for region in targets]),
            ignore=mask_column([sample.ignore for sample in samples]),
            names=codes_of([region.name for region in targets]),
            part=np.array([is_part(region) for region in targets], bool),
            tags={key: codes_of([sample.tags.get(key) for sample in samples]) for key in keys},
            phrases=_phrases([(sample.answer, len(sample.targets)) for sample in samples]),
            questions=[sample.question for sample in samples],
            answers=[sample.answer.text if sample.answer else None for sample in samples],
        )


@dataclass(frozen=True)
class Replies:
    """The replies to n samples, in the order of the truth, with r predicted regions in all.

    state: int8 [n] of ANSWERED, FAILED, MISSING; reasons: why, by sample, for FAILED; said: int8 [n] positions in
    MASK_TYPES or UNDECIDED; score: float64 [r]. A sample that failed or is missing has no regions. logits: int64
    [r, 3], for masks cut from logits: pixels equal to 0, in [0, 0.5) and in [0.5, 1]; only `muse` can use them.
    """

    state: Int8s
    reasons: Mapping[int, str]
    offsets: Int64s
    visible: MaskColumn
    amodal: MaskColumn
    score: Floats
    names: Codes
    said: Int8s
    no_target: Flags
    forced: Flags
    answers: Sequence[str | None] = ()
    phrases: Phrases | None = None
    logits: Int64s | None = None
    measured: Measured | None = None
    """The extents of the masks, where they were measured while reading; then none of them is malformed."""

    def __len__(self) -> int:
        return len(self.state)

    @cached_property
    def counts(self) -> Int64s:
        """Predicted regions of each sample."""
        return np.diff(self.offsets)

    @cached_property
    def sample(self) -> Int64s:
        """Sample of each predicted region."""
        return np.repeat(np.arange(len(self)), self.counts)

    @classmethod
    def from_predictions(cls, truth: Truth, predictions: Sequence[Prediction]) -> "Replies":
        """From records, put in the order of the truth; samples nobody replied to are MISSING."""
        row = {sample: item for item, sample in enumerate(truth.ids)}
        by_row: dict[int, Prediction] = {}
        for prediction in predictions:
            if prediction.sample not in row:
                raise ProtocolError(
                    f"a prediction is for sample {prediction.sample!r}, which the truth lacks"
                )
            if row[prediction.sample] in by_row:
                raise ProtocolError(f"two predictions for sample {prediction.sample!r}; keep one")
            by_row[row[prediction.sample]] = prediction
        return cls._from_rows([by_row.get(item) for item in range(len(truth))])

    @classmethod
    def _from_rows(cls, rows: Sequence[Prediction | None]) -> "Replies":
        usable = [reply if reply is not None and reply.error is None else None for reply in rows]
        parts: list[tuple[PredictedRegion, ...]] = [reply.regions if reply else () for reply in usable]
        regions = [region for part in parts for region in part]
        answers = [reply.answer if reply else None for reply in usable]
        failed = {
            item: reply.error
            for item, reply in enumerate(rows)
            if reply is not None and reply.error is not None
        }
        return cls(
            state=np.array(
                [MISSING if row is None else FAILED if row.error else ANSWERED for row in rows], np.int8
            ),
            reasons=failed,
            offsets=offsets_of([len(part) for part in parts]),
            visible=mask_column([region.visible for region in regions]),
            amodal=mask_column([region.amodal for region in regions]),
            score=np.array([region.score for region in regions], np.float64),
            names=codes_of([region.name for region in regions]),
            said=np.array([_said(reply) for reply in usable], np.int8),
            no_target=np.array([bool(reply and reply.no_target) for reply in usable], bool),
            forced=np.array([bool(reply and reply.forced) for reply in usable], bool),
            answers=[answer.text if answer else None for answer in answers],
            phrases=_phrases([(answer, len(part)) for answer, part in zip(answers, parts)]),
        )

    def fail(self, reasons: Mapping[int, str]) -> "Replies":
        """Mark samples as failed and drop their regions."""
        if not reasons:
            return self
        failed = np.zeros(len(self), bool)
        failed[list(reasons)] = True
        emptied = self.take(np.where(failed, len(self), np.arange(len(self))))
        state = np.where(failed, np.int8(FAILED), emptied.state)
        return replace(emptied, state=state, reasons={**self.reasons, **reasons})

    def take(self, rows: Int64s) -> "Replies":
        """The replies of some samples, in the order given; row len(self) stands for a missing reply.

        Each sample may be taken once.
        """
        some = rows < len(self)
        kept = rows[some]
        regions = flatten(self.offsets, kept)
        counts = np.zeros(len(rows), np.int64)
        counts[some] = self.counts[kept]
        place = np.full(len(self) + 1, len(rows))
        place[rows] = np.arange(len(rows))
        answers = [*self.answers, None] if len(self.answers) else ()
        return Replies(
            state=np.append(self.state, np.int8(MISSING))[rows],
            reasons={
                int(place[sample]): text for sample, text in self.reasons.items() if place[sample] < len(rows)
            },
            offsets=offsets_of(counts),
            visible=_take(self.visible, regions),
            amodal=_take(self.amodal, regions),
            score=self.score[regions],
            names=Codes(self.names.codes[regions], self.names.names),
            said=np.append(self.said, np.int8(UNDECIDED))[rows],
            no_target=np.append(self.no_target, False)[rows],
            forced=np.append(self.forced, False)[rows],
            answers=[answers[row] for row in rows.tolist()] if answers else (),
            phrases=self.phrases and _take_phrases(self.phrases, place, regions, count=len(rows)),
            logits=None if self.logits is None else self.logits[regions],
            measured=None if self.measured is None else self.measured.take(regions),
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


def offsets_of(counts: Sequence[int] | Int64s) -> Int64s:
    """Where lists of these lengths begin and the last one ends, int64 [n + 1]."""
    return np.concatenate([[0], np.cumsum(np.asarray(counts, np.int64), dtype=np.int64)])


def mask_column(masks: Sequence[Mask | None]) -> MaskColumn:
    """Masks of which some are not known."""
    counts = [mask.counts if mask else "" for mask in masks]
    sizes = np.array([mask.size if mask else (0, 0) for mask in masks], np.int64).reshape(-1, 2)
    return MaskColumn(Masks.from_strings(counts, sizes), np.array([mask is not None for mask in masks], bool))


def codes_of(texts: Sequence[str | None]) -> Codes:
    """Text as numbers, names in order of first appearance."""
    names = tuple(dict.fromkeys(texts))
    code = {name: item for item, name in enumerate(names)}
    return Codes(np.array([code[text] for text in texts], np.int32), names)


def is_part(region: Region) -> bool:
    """Whether a region is a part: it says of what, or its name is in PACO's `object:part` form."""
    return region.part_of is not None or ":" in region.name


def _take(column: MaskColumn, rows: NDArray[np.int32] | Flags | Int64s) -> MaskColumn:
    return MaskColumn(column.masks[rows], column.present[rows])


def _said(reply: Prediction | None) -> int:
    return UNDECIDED if reply is None or reply.mask_type is None else MASK_TYPES.index(reply.mask_type)


def _phrases(answers: Sequence[tuple[Answer | None, int]]) -> Phrases | None:
    """The phrases of answers, each given with the number of its sample's regions; None where there are none."""
    starts = offsets_of([count for _, count in answers])
    found = [
        (sample, [first + region for region in phrase.regions], answer.text[phrase.start : phrase.stop])
        for sample, ((answer, _), first) in enumerate(zip(answers, starts.tolist()))
        if answer is not None
        for phrase in answer.phrases
    ]
    if not found:
        return None
    return Phrases(
        np.array([sample for sample, _, _ in found], np.int64),
        offsets_of([len(members) for _, members, _ in found]),
        np.array([member for _, members, _ in found for member in members], np.int64),
        codes_of([words for _, _, words in found]),
    )


def _dataset_phrases(dataset: Dataset) -> Phrases | None:
    """The phrases of a dataset's answers, without their words."""
    column = dataset.samples.table["phrases"].combine_chunks()
    flat = column.flatten()
    if not len(flat):
        return None
    sample = np.repeat(np.arange(len(column)), np.diff(column.offsets.to_numpy()))
    regions = flat.field("regions")
    lengths = pc.list_value_length(regions).to_numpy(zero_copy_only=False)
    members = regions.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    base = np.repeat(dataset.samples.targets.offsets[sample], lengths)
    return Phrases(sample, offsets_of(lengths), base + members)


def _take_phrases(phrases: Phrases, place: Int64s, regions: Int64s, *, count: int) -> Phrases:
    """The phrases of the samples kept, in their new order. place: int64, the new position of each sample, `count` where
    it is not kept; regions: int64, the regions kept, in their new order.
    """
    position = np.zeros(int(max(phrases.members.max(initial=-1), regions.max(initial=-1))) + 1, np.int64)
    position[regions] = np.arange(len(regions))
    stay = np.flatnonzero(place[phrases.sample] < count)
    order = stay[np.argsort(place[phrases.sample[stay]], kind="stable")]
    members = flatten(phrases.offsets, order)
    words = phrases.words
    return Phrases(
        place[phrases.sample[order]],
        offsets_of(np.diff(phrases.offsets)[order]),
        position[phrases.members[members]],
        None if words is None else Codes(words.codes[order], words.names),
    )
