"""Doubts by runs: several models agree with each other and not with the truth, on the object or on its boundary.

All masks of a question together are one mask, in the requested type; the consensus of the runs is where most of them
agree. Errors of single runs cancel in it: it fits a right truth better than the runs fit it, so a truth that it fits
less is doubtful. Questions on which a run failed are left out. Models that share a fault agree as well: the more
different they are, the better.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import combinations
from operator import and_, or_

import numpy as np

from maskwise.arrays import Float64Array
from maskwise.auditing.doubts import Doubt
from maskwise.auditing.mask_checks import RowDoubt
from maskwise.masks import Masks, PairAreas, boundary_areas, pair_areas
from maskwise.protocols import GroundTruth, PredictionColumns
from maskwise.protocols.question_masks import merge_question_masks

Measure = Callable[[Masks, Masks], PairAreas]

SAME_OBJECT = 0.5
"""IoU with the truth from which runs doubt the boundary, and below which they doubt the object."""

FULL_GAP = 0.3
"""Gap between the fit of boundaries to those of the consensus, of runs and of the truth, at which the doubt is
complete."""


def check_against_runs(
    truth: GroundTruth, runs: Sequence[PredictionColumns]
) -> Iterator[RowDoubt]:
    """Doubts of two or more runs, each in the order of the truth."""
    merged = [merge_question_masks(truth, predictions) for predictions in runs]
    unions = [masks.predicted for masks in merged]
    targets = merged[0].targets
    everyone = np.logical_and.reduce([masks.answered for masks in merged])
    consensus = _majority(unions)
    fit = _iou(pair_areas, targets, consensus)
    agreement = np.mean([_iou(pair_areas, union, consensus) for union in unions], 0)
    # Two of three runs agree by chance quite often; that is a mean of two thirds.
    certainty = 2.0 * agreement - 1.0
    for row in np.flatnonzero(
        everyone & (fit < SAME_OBJECT) & (certainty > fit)
    ).tolist():
        message = (
            f"runs have an IoU of {100 * agreement[row]:.0f} % with their consensus, "
            f"the truth one of {100 * fit[row]:.0f} %"
        )
        strength = float(certainty[row] - fit[row])
        yield row, Doubt(check="runs_agree", strength=strength, message=message)
    bands = [_iou(boundary_areas, union, consensus) for union in unions]
    band = np.mean(bands, 0)
    band_fit = _iou(boundary_areas, targets, consensus)
    for row in np.flatnonzero(
        everyone & (fit >= SAME_OBJECT) & (band > band_fit)
    ).tolist():
        message = (
            f"boundaries of runs have an IoU of {100 * band[row]:.0f} % with their consensus, "
            f"the truth one of {100 * band_fit[row]:.0f} %"
        )
        strength = min(1.0, float(band[row] - band_fit[row]) / FULL_GAP)
        yield row, Doubt(check="boundary", strength=strength, message=message)


def _majority(masks: Sequence[Masks]) -> Masks:
    """The pixels that more than half of the masks have, question by question."""
    needed = len(masks) // 2 + 1
    parts = [reduce(and_, several) for several in combinations(masks, needed)]
    return reduce(or_, parts)


def _iou(measure: Measure, a: Masks, b: Masks) -> Float64Array:
    """IoU of pairs; two empty masks agree."""
    return measure(a, b).iou(empty=1.0)
