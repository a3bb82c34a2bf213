"""Predictions as columns, in the order of the ground truth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int8Array, Int64Array
from maskwise.errors import ProtocolError
from maskwise.protocols.columns import (
    Phrases,
    encode_strings,
    mask_column,
    phrase_columns,
    take_masks,
    take_phrases,
)
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.mask_geometry import RegionGeometry
from maskwise.protocols.ragged import counts_to_offsets, flatten
from maskwise.schema import PredictedRegion, Prediction
from maskwise.store import MASK_TYPES, Codes, MaskColumn

UNSTATED = len(MASK_TYPES)
"""Code of a prediction that states no mask type."""

PREDICTED, FAILED, MISSING = range(3)
"""State of a prediction: usable, failed, absent."""

MALFORMED = "malformed mask"
"""Reason of a failed prediction whose run lengths are invalid."""


@dataclass(frozen=True)
class PredictionColumns:
    """The predictions to n samples, in the order of the truth, with r predicted regions in all.

    state: int8 [n] of PREDICTED, FAILED, MISSING; reasons: why, by sample, for FAILED; mask_type: int8 [n] positions in
    MASK_TYPES or UNSTATED; score: float64 [r]. A sample that failed or is missing has no regions. logits: int64
    [r, 3], for masks cut from logits: pixels equal to 0, in [0, 0.5) and in [0.5, 1]; only `muse` can use them.
    """

    state: Int8Array
    reasons: Mapping[int, str]
    offsets: Int64Array
    visible: MaskColumn
    amodal: MaskColumn
    score: Float64Array
    names: Codes
    mask_type: Int8Array
    no_target: BoolArray
    forced: BoolArray
    answers: Sequence[str | None] = ()
    phrases: Phrases | None = None
    logits: Int64Array | None = None
    measured: RegionGeometry | None = None
    """The extents of the masks, where they were measured while reading; then none of them is malformed."""

    def __len__(self) -> int:
        return len(self.state)

    @cached_property
    def counts(self) -> Int64Array:
        """Predicted regions of each sample."""
        return np.diff(self.offsets)

    @cached_property
    def sample(self) -> Int64Array:
        """Sample of each predicted region."""
        return np.repeat(np.arange(len(self)), self.counts)

    @classmethod
    def from_predictions(
        cls, ground_truth: GroundTruth, predictions: Sequence[Prediction]
    ) -> "PredictionColumns":
        """From records, put in the order of the truth; samples nobody replied to are MISSING."""
        row = {sample: item for item, sample in enumerate(ground_truth.ids)}
        by_row: dict[int, Prediction] = {}
        for prediction in predictions:
            if prediction.sample not in row:
                raise ProtocolError(
                    f"a prediction is for sample {prediction.sample!r}, which the ground truth lacks"
                )
            if row[prediction.sample] in by_row:
                raise ProtocolError(
                    f"two predictions for sample {prediction.sample!r}; keep one"
                )
            by_row[row[prediction.sample]] = prediction
        return cls._from_rows([by_row.get(item) for item in range(len(ground_truth))])

    @classmethod
    def _from_rows(cls, rows: Sequence[Prediction | None]) -> "PredictionColumns":
        usable = [
            prediction if prediction is not None and prediction.error is None else None
            for prediction in rows
        ]
        parts: list[tuple[PredictedRegion, ...]] = [
            prediction.regions if prediction else () for prediction in usable
        ]
        regions = [region for part in parts for region in part]
        answers = [prediction.answer if prediction else None for prediction in usable]
        failed = {
            item: prediction.error
            for item, prediction in enumerate(rows)
            if prediction is not None and prediction.error is not None
        }
        return cls(
            state=np.array(
                [
                    MISSING if row is None else FAILED if row.error else PREDICTED
                    for row in rows
                ],
                np.int8,
            ),
            reasons=failed,
            offsets=counts_to_offsets([len(part) for part in parts]),
            visible=mask_column([region.visible for region in regions]),
            amodal=mask_column([region.amodal for region in regions]),
            score=np.array([region.score for region in regions], np.float64),
            names=encode_strings([region.name for region in regions]),
            mask_type=np.array(
                [_mask_type_code(prediction) for prediction in usable], np.int8
            ),
            no_target=np.array(
                [bool(prediction and prediction.no_target) for prediction in usable],
                bool,
            ),
            forced=np.array(
                [bool(prediction and prediction.forced) for prediction in usable], bool
            ),
            answers=[answer.text if answer else None for answer in answers],
            phrases=phrase_columns(
                [(answer, len(part)) for answer, part in zip(answers, parts)]
            ),
        )

    def fail(self, reasons: Mapping[int, str]) -> "PredictionColumns":
        """Mark samples as failed and drop their regions."""
        if not reasons:
            return self
        failed = np.zeros(len(self), bool)
        failed[list(reasons)] = True
        emptied = self.take(np.where(failed, len(self), np.arange(len(self))))
        state = np.where(failed, np.int8(FAILED), emptied.state)
        return replace(emptied, state=state, reasons={**self.reasons, **reasons})

    def keep_regions(self, keep: BoolArray) -> "PredictionColumns":
        """The same predictions with some of their regions; answers keep no phrases. keep: bool [regions]."""
        regions = np.flatnonzero(keep)
        counts = np.bincount(self.sample[regions], minlength=len(self))
        return replace(
            self,
            offsets=counts_to_offsets(counts),
            visible=take_masks(self.visible, regions),
            amodal=take_masks(self.amodal, regions),
            score=self.score[regions],
            names=Codes(self.names.codes[regions], self.names.names),
            phrases=None,
            logits=None if self.logits is None else self.logits[regions],
            measured=None if self.measured is None else self.measured.take(regions),
        )

    def first_regions(self) -> "PredictionColumns":
        """The same predictions with at most one region each, the first."""
        first = np.zeros(len(self.sample), bool)
        first[self.offsets[:-1][self.counts > 0]] = True
        return self.keep_regions(first)

    def take(self, rows: Int64Array) -> "PredictionColumns":
        """The predictions of some samples, in the order given; row len(self) stands for a missing prediction.

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
        return PredictionColumns(
            state=np.append(self.state, np.int8(MISSING))[rows],
            reasons={
                int(place[sample]): text
                for sample, text in self.reasons.items()
                if place[sample] < len(rows)
            },
            offsets=counts_to_offsets(counts),
            visible=take_masks(self.visible, regions),
            amodal=take_masks(self.amodal, regions),
            score=self.score[regions],
            names=Codes(self.names.codes[regions], self.names.names),
            mask_type=np.append(self.mask_type, np.int8(UNSTATED))[rows],
            no_target=np.append(self.no_target, False)[rows],
            forced=np.append(self.forced, False)[rows],
            answers=[answers[row] for row in rows.tolist()] if answers else (),
            phrases=self.phrases
            and take_phrases(self.phrases, place, regions, count=len(rows)),
            logits=None if self.logits is None else self.logits[regions],
            measured=None if self.measured is None else self.measured.take(regions),
        )


def _mask_type_code(prediction: Prediction | None) -> int:
    return (
        UNSTATED
        if prediction is None or prediction.mask_type is None
        else MASK_TYPES.index(prediction.mask_type)
    )
