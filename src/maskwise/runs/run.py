"""`Run`: a scored evaluation, read from a folder or held in memory."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from maskwise.errors import MissingDependencyError, StoreError, UnknownNameError
from maskwise.protocols import MetricTerms
from maskwise.protocols.intervals import NOT_DEFINED
from maskwise.runs.files import METRIC_TABLE, SCORE_TABLE
from maskwise.runs.ladder import Ladder
from maskwise.runs.probe_results import ProbesFile
from maskwise.runs.schema import (
    PredictionsInfo,
    ProtocolScores,
    RunFile,
    ScoresFile,
    Subset,
)
from maskwise.runs.tables import (
    ScoreRows,
    column_codes,
    column_numbers,
    column_texts,
    select_rows,
    table_to_rows,
)
from maskwise.schema import Prediction
from maskwise.store import Dataset
from maskwise.terminal import count_noun

if TYPE_CHECKING:
    import pandas as pd

    from maskwise.report.explanation import Explanation
    from maskwise.report.run_samples import Condition, RunSamples


@dataclass(frozen=True)
class PredictionSummary:
    """How the predictions of a run were made. failed: samples without a prediction; first_error: why the first of them
    failed. resumed: samples that earlier attempts had predicted.
    """

    samples: int
    images: int
    failed: int
    first_error: str | None = None
    resumed: int = 0


class Run:
    """What was evaluated (`info`), the scores (`scores`), and every sample's terms of every metric.

    folder: None for a run in memory, which may carry its `dataset` and `predictions` instead. summary: how `evaluate`
    made the predictions; None for a run that was read from a folder or scored from a file. The tables are loaded when
    they are first needed.
    """

    def __init__(
        self,
        info: RunFile,
        scores: ScoresFile,
        *,
        load_scores: Callable[[], pa.Table],
        load_metrics: Callable[[], pa.Table],
        load_ladder: Callable[[], Ladder | None] = lambda: None,
        load_probes: Callable[[], ProbesFile | None] = lambda: None,
        folder: Path | None = None,
        dataset: Dataset | None = None,
        predictions: Sequence[Prediction] | None = None,
    ) -> None:
        self.info = info
        self.scores = scores
        self.folder = folder
        self.dataset = dataset
        self.predictions = predictions
        self.summary: PredictionSummary | None = None
        self._load_scores = load_scores
        self._load_metrics = load_metrics
        self._load_ladder = load_ladder
        self._load_probes = load_probes
        self._rows: dict[str, ScoreRows] = {}

    def __repr__(self) -> str:
        place = "in memory" if self.folder is None else repr(str(self.folder))
        samples = count_noun(self.info.dataset.samples, "sample")
        failed = self.scores.predictions.failed
        failures = f", {failed:,} failed" if failed else ""
        return f"Run({self.model_name!r} on {self.info.dataset.name!r}, {samples}{failures}, {place})"

    def __getitem__(self, protocol: str) -> ProtocolScores:
        """The scores under one protocol, `run["strict"]["giou"]`; UnknownNameError lists the others."""
        if not isinstance(protocol, str):
            raise StoreError(
                f"a run is indexed by the name of a protocol, not by a value of type {type(protocol).__name__}"
            )
        return self.scores.protocols[self.main_protocol(protocol)]

    def __iter__(self) -> Iterator[str]:
        """The names of the protocols."""
        return iter(self.scores.protocols)

    def __len__(self) -> int:
        return len(self.scores.protocols)

    def _repr_html_(self) -> str:
        """gIoU, cIoU and counts of every protocol as a table below the notices, for notebooks."""
        head = "<tr><th>protocol</th><th>gIoU</th><th>cIoU</th><th>scored</th><th>failed</th></tr>"
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{_show(scores, 'giou')}</td><td>{_show(scores, 'ciou')}</td>"
            f"<td>{scores.counts.scored}</td><td>{scores.counts.failed}</td></tr>"
            for name, scores in self.scores.protocols.items()
        )
        notices = "".join(
            f"<p><strong>{escape(notice)}</strong></p>" for notice in self.notices
        )
        return f"<p>{escape(repr(self))}</p>{notices}<table>{head}{rows}</table>"

    def to_pandas(self, *, samples: bool = False) -> "pd.DataFrame":
        """A data frame with one row per protocol and metric: value, low, high, unit.

        samples: one row per protocol and sample instead: status, value, intersection, union and slices. Needs pandas.
        """
        try:
            import pandas as pd  # noqa: PLC0415
        except ImportError:
            raise MissingDependencyError("Run.to_pandas", "pandas") from None
        if samples:
            frame: pd.DataFrame = self.score_table.to_pandas()
            return frame
        rows = [
            (protocol, name, value.value, value.low, value.high, value.unit)
            for protocol, scores in self.scores.protocols.items()
            for name, value in scores.metrics.items()
        ]
        return pd.DataFrame(
            rows, columns=["protocol", "metric", "value", "low", "high", "unit"]
        )

    def samples(self, protocol: str | None = None) -> "pd.DataFrame":
        """A data frame with one row per question: the question, its mask type, counts of targets and predicted regions,
        status and failure under the main protocol, the score per protocol, and the slices. Needs pandas.

        Example: run.samples().sort_values("strict").head(20)
        """
        return self._samples(protocol).to_pandas()

    def worst(self, count: int = 20, *, protocol: str | None = None) -> "RunSamples":
        """The samples with the lowest score, as a sequence with `plot()`; failed and missing ones count as 0.

        Example: run.worst(20).plot().save("worst.png")
        """
        return self._samples(protocol).worst(count)

    def filter(
        self,
        condition: "Condition | None" = None,
        *,
        protocol: str | None = None,
        **values: Any,
    ) -> "RunSamples":
        """The samples that fulfil all conditions, as a sequence with `plot()`, `worst()` and `to_pandas()`.

        condition: a function of a row of `samples()`, given as a dict. values: what columns of it have to be, such as
        `mask_type="amodal"` or `status="failed"`; a list stands for any of its values.

        Example: run.filter(lambda row: row["regions"] > row["targets"], mask_type="amodal").worst(5)
        """
        return self._samples(protocol).filter(condition, **values)

    def _samples(self, protocol: str | None) -> "RunSamples":
        """All samples. protocol: the one that sorts them and gives their status; the main one if None."""
        from maskwise.report.run_samples import RunSamples  # noqa: PLC0415

        return RunSamples(self, self.main_protocol(protocol), range(len(self.ids)))

    def report(
        self, path: str | Path, *, protocol: str | None = None, samples: int = 12
    ) -> Path:
        """Write a report: an offline page (.html), Markdown (.md) or JSON (.json). Returns its path.

        protocol: the one to show first; samples: how many of each kind are in the gallery of a page.
        """
        from maskwise.report.report_file import write_report  # noqa: PLC0415

        return write_report(self, path, protocol=protocol, samples=samples)

    def explain(self) -> "Explanation":
        """Why points are lost: the lost strict gIoU by fault, overall and by slice.

        Example: run.explain().parts["wrong_target"].points.value
        """
        from maskwise.report.explanation import explain  # noqa: PLC0415

        return explain(self)

    @property
    def name(self) -> str:
        """The folder's name, or the model's for a run in memory."""
        return self.model_name if self.folder is None else self.folder.resolve().name

    @property
    def location(self) -> str:
        """The folder, or the model of a run in memory, for messages."""
        if self.folder is not None:
            return str(self.folder)
        if self.info.evaluation is None and self.info.predictions is None:
            return "the run in memory"
        return f"{self.model_name} (in memory)"

    @property
    def model_name(self) -> str:
        """The name of the model if it is known, else of the predictions."""
        if self.info.evaluation is not None:
            return self.info.evaluation.inputs.model.name
        path = self.predictions_info.path or self.predictions_info.format
        return path.replace("\\", "/").rstrip("/").rpartition("/")[2]

    @property
    def predictions_info(self) -> PredictionsInfo:
        """The predictions that were scored."""
        if self.info.predictions is None:
            raise StoreError(
                f"{self.location} does not say which predictions were scored; score it again"
            )
        return self.info.predictions

    @property
    def subset(self) -> Subset | None:
        """The random subset of the dataset, if the run is not about all of it."""
        return (
            None if self.info.evaluation is None else self.info.evaluation.inputs.subset
        )

    @property
    def uses_ground_truth(self) -> bool:
        """Whether the model was given the ground truth."""
        return (
            self.info.evaluation is not None
            and self.info.evaluation.inputs.model.uses_ground_truth
        )

    @property
    def teacher_forced(self) -> bool:
        """Whether the true answer was in the prompt, according to the run's inputs, a prediction, or the user."""
        evaluation = self.info.evaluation
        predictions = self.predictions_info
        asked = evaluation is not None and evaluation.inputs.teacher_forced
        return asked or predictions.teacher_forced or predictions.options.teacher_forced

    @property
    def notices(self) -> list[str]:
        """What a reader has to know before the metrics: ground truth given to the model, a subset of the dataset,
        failures, images outside the model's domain.
        """
        notices = []
        if self.uses_ground_truth:
            notices.append(
                "This model is given the ground truth: its metrics test the protocols, not it."
            )
        if self.teacher_forced:
            notices.append("Teacher-forced: the true answer was in the prompt.")
        subset = self.subset
        if subset is not None:
            notices.append(
                f"A subset of the dataset: {subset.limit} images drawn with seed {subset.seed}."
            )
        if self.failure_notice is not None:
            notices.append(self.failure_notice)
        if self.domain_notice is not None:
            notices.append(self.domain_notice)
        return notices

    @property
    def failure_notice(self) -> str | None:
        """A warning with the first reason if predictions failed, for example by the size of their masks."""
        counts = self.scores.predictions
        if not counts.failed:
            return None
        if not self.has_scores:
            return f"No prediction could be scored: {counts.first_error}."
        return (
            f"{counts.failed:,} of {count_noun(self.info.dataset.samples, 'question')} failed; "
            f"the first: {counts.first_error}."
        )

    @property
    def has_scores(self) -> bool:
        """Whether any protocol scored any prediction."""
        return any(scores.counts.scored for scores in self.scores.protocols.values())

    @property
    def domain_notice(self) -> str | None:
        """A warning if the model finds most of the checked images outside its domain."""
        check = None if self.info.evaluation is None else self.info.evaluation.domain
        if check is None or 2 * check.outside <= check.checked:
            return None
        return f"{check.outside} of {check.checked} checked images are outside the model's domain: {check.warning}."

    def main_protocol(self, wanted: str | None = None) -> str:
        """The protocol asked for, else `strict` if it ran, else the first."""
        known = list(self.scores.protocols)
        if not known:
            raise StoreError(
                f"{self.location} was scored under no protocol, so there is nothing to show"
            )
        if wanted is not None and wanted not in known:
            raise UnknownNameError("protocol", wanted, known)
        return wanted or ("strict" if "strict" in known else known[0])

    # -- per sample

    @cached_property
    def score_table(self) -> pa.Table:
        """scores.arrow: one row per protocol and sample."""
        return self._load_scores()

    @cached_property
    def ladder(self) -> Ladder | None:
        """The predictions under every published rule; None if the dataset has nothing that rules treat differently."""
        return self._load_ladder()

    @cached_property
    def probes(self) -> ProbesFile | None:
        """The results of risk probes that used this run; None if there are none."""
        return self._load_probes()

    @cached_property
    def metric_table(self) -> pa.Table:
        """metrics.arrow: one row per sample."""
        return self._load_metrics()

    @cached_property
    def ids(self) -> list[str]:
        """The samples' ids, in the dataset's order."""
        return column_texts(self.metric_table["sample"])

    @cached_property
    def clusters(self) -> NDArray[np.int64]:
        """The image of each sample as a number, int64 [n]."""
        return column_codes(self.metric_table["image"]).codes.astype(np.int64)

    def rows(self, protocol: str) -> ScoreRows:
        """All samples under one protocol."""
        if protocol not in self._rows:
            table = select_rows(self.score_table, protocol)
            if table.num_rows != len(self.ids):
                raise StoreError(
                    f"{self.location}, {SCORE_TABLE}: {table.num_rows} rows of {protocol}, but {len(self.ids)} samples"
                )
            self._rows[protocol] = table_to_rows(table)
        return self._rows[protocol]

    def metrics(self, protocol: str) -> dict[str, MetricTerms]:
        """Every metric of a protocol that is a ratio of two sums, with each sample's terms."""
        values = self.scores.protocols[protocol].metrics
        rows = self.rows(protocol)
        terms = {
            "giou": (rows.numerator, rows.weight),
            "ciou": (rows.intersection, rows.union),
        }
        for name, value in values.items():
            if name not in terms and value.numerator is not None:
                terms[name] = (
                    self._column(f"{protocol}/{name}/numerator"),
                    self._column(f"{protocol}/{name}/denominator"),
                )
        return {
            name: MetricTerms(
                *columns, epsilon=values[name].epsilon, unit=values[name].unit
            )
            for name, columns in terms.items()
        }

    def _column(self, name: str) -> NDArray[np.float64]:
        if name not in self.metric_table.column_names:
            raise StoreError(
                f"{self.location}, {METRIC_TABLE} has no column {name!r}; score the run again"
            )
        return column_numbers(self.metric_table[name])


def _show(scores: ProtocolScores, metric: str) -> str:
    """A metric in percent, with its interval."""
    value = scores[metric]
    if scores.metrics[metric].method == NOT_DEFINED:
        return NOT_DEFINED
    if value is None:
        return "-"
    ends = (
        ""
        if value.interval is None
        else " [{:.1f}, {:.1f}]".format(*(100 * end for end in value.interval))
    )
    return f"{100 * value:.1f}{ends}"
