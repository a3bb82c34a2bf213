"""The samples of a run, to look at: `run.samples()`, `run.worst(20)`, `run.filter(...)`.

worst = run.worst(20)
worst.plot().save("worst.png")
worst[0].sample, worst[0].prediction, worst[0].scores
run.filter(mask_type="amodal", status="failed").to_pandas()
"""

import base64
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from PIL import Image

from maskwise.errors import MissingDependencyError, UnknownNameError
from maskwise.protocols.prediction_columns import UNSTATED
from maskwise.report.overlay.side_by_side import draw_comparison, make_sheet
from maskwise.report.run_data import RunData, RunPaths, load_run_data
from maskwise.runs import Run
from maskwise.schema import Prediction, Sample
from maskwise.store import MASK_TYPES

if TYPE_CHECKING:
    import pandas as pd

NOTEBOOK_IMAGES = 24
"""Samples that a notebook shows with their images: more would make a file of tens of megabytes."""

NOTEBOOK_WIDTH = 900
"""Width in pixels of an image in a notebook."""

Condition = Callable[[Mapping[str, Any]], object]
"""A function of a row of `run.samples()`, true for the samples to keep."""


@dataclass(frozen=True)
class RunSample:
    """One sample of a run. prediction: None if it is missing. scores: by protocol, None where it has none."""

    sample: Sample
    prediction: Prediction | None
    scores: Mapping[str, float | None]
    main_score: float | None

    def plot(self) -> Image.Image:
        """Ground truth and prediction side by side, with question and answers."""
        image = self.sample.image
        return draw_comparison(
            image, self.sample, self.prediction, score=self.main_score
        )

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={'-' if value is None else format(value, '.3f')}"
            for name, value in self.scores.items()
        )
        return f"RunSample({self.sample.id!r}, {shown})"

    def _repr_png_(self) -> bytes:
        return _to_png(self.plot())


class RunSamples(Sequence[RunSample]):
    """Some samples of a run, in an order: a sequence that opens samples and images when they are asked for.

    protocol: the one that `worst` sorts by and plots show. rows: int64 [n], rows of the run.
    """

    def __init__(self, run: Run, protocol: str, rows: Sequence[int]) -> None:
        self.run = run
        self.protocol = protocol
        self.rows = list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> RunSample: ...
    @overload
    def __getitem__(self, index: slice) -> "RunSamples": ...
    def __getitem__(self, index: int | slice) -> "RunSample | RunSamples":
        if isinstance(index, slice):
            return self._take(self.rows[index])
        row = self.rows[index]
        scores = {name: values[row] for name, values in self._columns.scores.items()}
        return RunSample(
            self._columns.data.dataset[row],
            self._columns.data.prediction(row),
            scores,
            scores[self.protocol],
        )

    def __iter__(self) -> Iterator[RunSample]:
        return (self[item] for item in range(len(self)))

    def __repr__(self) -> str:
        return f"RunSamples({len(self)} of {len(self.run.ids)} samples, {self.run!r})"

    def filter(self, condition: Condition | None = None, **values: Any) -> "RunSamples":
        """The samples that fulfil all conditions, in the same order.

        condition: a function of a row, a dict with the columns of `to_pandas`. values: what columns have to be, such
        as `mask_type="amodal"`, `status="failed"` or `targets=0`; a list stands for any of its values.
        """
        table = self._columns.table
        for name in values:
            if name not in table:
                raise UnknownNameError("column", name, table)
        kept = []
        for row in self.rows:
            record = {name: column[row] for name, column in table.items()}
            fits = all(_fits(record[name], value) for name, value in values.items())
            if fits and (condition is None or condition(record)):
                kept.append(row)
        return self._take(kept)

    def worst(self, count: int) -> "RunSamples":
        """The samples with the lowest score, the lowest first; failed and missing ones count as 0.

        Samples that the protocol leaves out are not among them. Equal scores keep the order of the dataset.
        """
        rows = self.run.rows(self.protocol)
        counted = [row for row in self.rows if rows.weight[row] > 0]
        value = np.nan_to_num(rows.value)
        ordered = sorted(counted, key=lambda row: (value[row], row))
        return self._take(ordered[:count])

    def to_pandas(self) -> "pd.DataFrame":
        """One row per sample: question, mask type, counts, status, failure, the score per protocol, and the slices.

        Slices that have the name of another column begin with `slice_`. Needs pandas.
        """
        try:
            import pandas as pd  # noqa: PLC0415
        except ImportError:
            raise MissingDependencyError("Run.samples", "pandas") from None
        frame = pd.DataFrame(self._columns.table)
        return frame.iloc[self.rows].reset_index(drop=True)

    def plot(self, *, columns: int = 1) -> Image.Image:
        """All samples on one sheet, ground truth and prediction side by side; `columns` pairs in a row."""
        return make_sheet([item.plot() for item in self], columns=columns)

    def _repr_html_(self) -> str:
        """The samples with their images, for notebooks."""
        parts = [f"<p>{escape(repr(self))}</p>"]
        for item in self[:NOTEBOOK_IMAGES]:
            image = item.plot()
            image.thumbnail((NOTEBOOK_WIDTH, NOTEBOOK_WIDTH))
            encoded = base64.b64encode(_to_png(image)).decode()
            parts.append(
                f"<p>{escape(repr(item))}<br>"
                f'<img alt="{escape(item.sample.question)}" src="data:image/png;base64,{encoded}"></p>'
            )
        if len(self) > NOTEBOOK_IMAGES:
            parts.append(f"<p>and {len(self) - NOTEBOOK_IMAGES} more</p>")
        return "".join(parts)

    @cached_property
    def _columns(self) -> "_RunColumns":
        return _RunColumns(self.run, self.protocol)

    def _take(self, rows: Sequence[int]) -> "RunSamples":
        """Other rows of the same run, sharing what was read."""
        taken = RunSamples(self.run, self.protocol, rows)
        if "_columns" in self.__dict__:
            taken.__dict__["_columns"] = self._columns
        return taken


class _RunColumns:
    """What was read for a run once: its dataset and predictions, and the table of all its samples."""

    def __init__(self, run: Run, protocol: str) -> None:
        self.run = run
        self.protocol = protocol

    @cached_property
    def data(self) -> RunData:
        return load_run_data(self.run, RunPaths())

    @cached_property
    def scores(self) -> dict[str, list[float | None]]:
        """The score of every sample by protocol; None where it has none."""
        by_protocol = {}
        for name in self.run:
            values = self.run.rows(name).value.tolist()
            by_protocol[name] = [None if np.isnan(value) else value for value in values]
        return by_protocol

    @cached_property
    def table(self) -> dict[str, Sequence[Any]]:
        """The columns of `to_pandas`, each with one value per sample of the run."""
        samples = self.data.dataset.samples
        predictions = self.data.predictions
        rows = self.run.rows(self.protocol)
        statuses = [rows.status.names[code] for code in rows.status.codes.tolist()]
        reasons = [rows.reason.names[code] for code in rows.reason.codes.tolist()]
        images = self.data.dataset.images.id
        table: dict[str, Sequence[Any]] = {
            "sample": self.run.ids,
            "image": [images[row] for row in samples.image.tolist()],
            "question": samples.question,
            "mask_type": [MASK_TYPES[code] for code in samples.mask_type.tolist()],
            "predicted_type": [
                None if code == UNSTATED else MASK_TYPES[code]
                for code in predictions.mask_type.tolist()
            ],
            "targets": np.diff(samples.targets.offsets).tolist(),
            "regions": predictions.counts.tolist(),
            "no_target": predictions.no_target.tolist(),
            "status": statuses,
            "failure": reasons,
        }
        table |= self.scores
        for name, codes in rows.slices.items():
            labels = [codes.names[code] for code in codes.codes.tolist()]
            table[f"slice_{name}" if name in table else name] = labels
        return table


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list | tuple | set | frozenset):
        return value in wanted
    return bool(value == wanted)


def _to_png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
