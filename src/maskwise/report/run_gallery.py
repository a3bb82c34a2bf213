"""Any number of runs side by side: one question after the other, those first on which they disagree most."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from maskwise.arrays import BoolArray, Float64Array
from maskwise.errors import ProtocolError, UnknownNameError
from maskwise.masks import pair_areas
from maskwise.protocols import GroundTruth
from maskwise.protocols.question_masks import merge_question_masks
from maskwise.report.comparison import pair_runs
from maskwise.report.formatting import number_equal, shorten
from maskwise.report.gallery import GalleryRun, fill_gallery
from maskwise.report.render import render
from maskwise.report.run_data import RunData, RunPaths, load_run_data
from maskwise.runs import Run
from maskwise.runs.tables import ScoreRows

MAX_RUNS = 12
"""Panels of a card beside the ground truth: more cannot be compared at a glance."""
MAX_NAME = 60
RIGHT = 0.5
"""gIoU of a question from which its prediction counts as right."""


def gallery_to_html(
    runs: Sequence[Run],
    *,
    protocol: str | None = None,
    samples: int = 60,
    slices: Mapping[str, str] | None = None,
    paths: RunPaths | None = None,
) -> str:
    """One offline page below 10 MB.

    samples: questions to show, at most; slices: only those of these groups, by slicing.
    """
    if not 2 <= len(runs) <= MAX_RUNS:
        raise ProtocolError(
            f"a gallery has two to {MAX_RUNS} runs, not {len(runs)}; `maskwise report` shows one"
        )
    for run in runs[1:]:
        pair_runs(runs[0], run, protocol)
    name = runs[0].main_protocol(protocol)
    data = [load_run_data(run, paths or RunPaths()) for run in runs]
    rows = [run.rows(name) for run in runs]
    titles = number_equal([shorten(run.name, MAX_NAME) for run in runs])
    disagreement = measure_disagreement(data)
    wanted = _in_slices(rows[0], slices or {})
    order = np.argsort(-disagreement, kind="stable")
    selected = order[wanted[order]][:samples].tolist()
    kinds = _kinds(rows)
    gallery = fill_gallery(
        [(kinds[row], row) for row in selected],
        [
            GalleryRun(title, *both)
            for title, both in zip(titles, zip(data, rows), strict=True)
        ],
        notes={
            row: f"Disagreement {100 * disagreement[row]:.0f} %." for row in selected
        },
        grouped=False,
    )
    return render(
        "gallery.html",
        runs=titles,
        dataset=runs[0].info.dataset.name,
        protocol=name,
        questions=int(wanted.sum()),
        slices=dict(slices or {}),
        gallery=gallery,
    )


def measure_disagreement(data: Sequence[RunData]) -> Float64Array:
    """1 minus the mean IoU of the masks of two runs, over all pairs of runs, float64 [questions].

    All masks of a question count as one, in the requested type. A run that drew nothing, or failed, has an empty mask;
    two empty masks agree.
    """
    truth = GroundTruth.from_dataset(data[0].dataset)
    masks = [merge_question_masks(truth, item.predictions).predicted for item in data]
    total = np.zeros(len(truth))
    pairs = list(combinations(masks, 2))
    for a, b in pairs:
        total += pair_areas(a, b).iou(empty=1.0)
    disagreement: Float64Array = 1.0 - total / len(pairs)
    return disagreement


def _in_slices(rows: ScoreRows, slices: Mapping[str, str]) -> BoolArray:
    """Which questions are in all of these groups, bool [questions]."""
    inside = np.ones(len(rows.value), bool)
    for slicing, group in slices.items():
        if slicing not in rows.slices:
            raise UnknownNameError("slice", slicing, rows.slices)
        codes = rows.slices[slicing]
        if group not in codes.names:
            raise UnknownNameError(
                f"value of {slicing}", group, [str(name) for name in codes.names]
            )
        inside &= codes.codes == codes.names.index(group)
    return inside


def _kinds(rows: Sequence[ScoreRows]) -> list[str]:
    """Of each question, how many runs are right about it."""
    right = sum(np.nan_to_num(item.value) >= RIGHT for item in rows)
    words = {0: "none right", len(rows): "all right"}
    return [words.get(count, "some right") for count in np.asarray(right).tolist()]
