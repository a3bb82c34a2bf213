"""The structs of run.json and scores.json, used both to write and to read them."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from maskwise.errors import UnknownNameError
from maskwise.runs.metric import Metric

RUN_FORMAT = "maskwise run 3"
SCORES_FORMAT = "maskwise scores 3"
"""Name and version of the files, their first field. A file of another version is refused: scoring again writes it."""

State = Literal["predicting", "predicted", "scored"]


class ReadOptions(msgspec.Struct, frozen=True):
    """How predictions are read where the file does not say.

    mask_type: type of masks without one. zero_inside: logits equal to 0 are foreground (GSVA), not background.
    min_score: COCO results with a lower score are dropped. teacher_forced: the true answer was in the prompt.
    """

    mask_type: Literal["visible", "amodal"] = "visible"
    zero_inside: bool = False
    min_score: float = 0.0
    teacher_forced: bool = False


class IntervalOptions(msgspec.Struct, frozen=True):
    """Level and cluster of confidence intervals; `maskwise.protocols.intervals` says how they are computed."""

    level: float = 0.95
    cluster: str = "image"


# -- run.json ----------------------------------------------------------------------------------------------------------


class DatasetInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset of a run. sha256: of its manifest; samples, images: how many of them the run is about.

    all_samples: how many the dataset has, if known. protocol: the official one according to the manifest, if any.
    """

    path: str
    name: str
    sha256: str
    samples: int
    images: int
    all_samples: int | None = None
    protocol: str | None = None


class PredictionsInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The predictions that were scored and how they were read. path: None if they were in memory."""

    path: str | None
    format: str
    sha256: str
    options: ReadOptions = ReadOptions()
    teacher_forced: bool = False
    """Whether any prediction says that the true answer was in its prompt."""


class ProtocolInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A protocol and its options."""

    name: str
    options: dict[str, Any] = {}


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a run records about its model, and compares when it is resumed. spec: how the model was asked for."""

    spec: str
    name: str
    weights_hash: str | None = None
    options: dict[str, Any] = {}
    config: dict[str, Any] = {}
    source: str | None = None
    """SHA-256 of the file that defines its class."""
    uses_ground_truth: bool = False


class Subset(msgspec.Struct, frozen=True, kw_only=True):
    """A random subset of a dataset: how many images, drawn with which seed."""

    limit: int
    seed: int


class EvaluationInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that determines the predictions of a run.

    dataset: SHA-256 of the manifest. subset: None for all images. samples: SHA-256 of the sample ids if the dataset is
    a view, else None.
    """

    maskwise: str
    dataset: str
    model: ModelInfo
    teacher_forced: bool = False
    subset: Subset | None = None
    samples: str | None = None


class TableStamp(msgspec.Struct, frozen=True, kw_only=True):
    """Size in bytes and modification time in nanoseconds of a dataset's table when a run last used it."""

    bytes: int
    modified: int


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One time a run was started or resumed: where, when and with what. Recorded, never compared.

    commit: of the repository that contains the working directory; source_commit: of maskwise, if it runs from its
    repository. Both end in `+` if tracked files were changed. memory: bytes.
    """

    started: str
    engine: str
    timeout: float | None
    done_before: int
    maskwise: str
    kernel: str
    python: str
    packages: dict[str, str]
    commit: str | None
    source_commit: str | None
    host: str
    platform: str
    processor: str
    cores: int
    memory: int | None
    accelerators: list[str]


class DomainCheck(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the checked images a model finds outside its domain, and its warning for the first of them."""

    checked: int
    outside: int = 0
    warning: str | None = None


class EvaluationInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How `maskwise eval` made the predictions. attempts: oldest first; tables: the dataset's tables, by file name."""

    inputs: EvaluationInputs
    samples: int
    images: int
    attempts: tuple[Attempt, ...] = ()
    tables: dict[str, TableStamp] = {}
    domain: DomainCheck | None = None


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """`run.json`. predictions: None until the run is scored. evaluation: None if `maskwise eval` did not make it."""

    format: str
    state: State
    dataset: DatasetInfo
    maskwise: str = ""
    kernel: str = ""
    predictions: PredictionsInfo | None = None
    protocols: list[ProtocolInfo] = []
    intervals: IntervalOptions = IntervalOptions()
    evaluation: EvaluationInfo | None = None


# -- scores.json -------------------------------------------------------------------------------------------------------


class MetricValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A metric with its confidence interval: sum of numerators / (sum of denominators + epsilon); None if undefined.

    numerator, denominator: None for the groups of a slice, for metrics that are no ratio of two sums (cgF1, average
    precision), and for a metric that the rule does not define, whose method says so. exact: the float64 value, if
    `value` is the one of running float32 sums. gate: where an official rule has one, the sum that has to be positive
    for the metric to be computed; `empty` is its value otherwise.
    """

    value: float | None
    low: float | None
    high: float | None
    unit: Literal["fraction", "count"]
    method: str = ""
    """How the interval was computed (`wilson`, `jackknife`), or why there is none."""
    numerator: float | None = None
    denominator: float | None = None
    epsilon: float = 0.0
    exact: float | None = None
    gate: float | None = None
    empty: float | None = None

    def to_metric(self, failed: int = 0) -> Metric | None:
        """The value as a float with its interval; None if it is undefined. failed: samples without a prediction."""
        if self.value is None:
            return None
        interval = (
            None if self.low is None or self.high is None else (self.low, self.high)
        )
        return Metric(self.value, interval, self.unit, failed=failed)

    @property
    def gated(self) -> bool:
        """Whether the value is the fixed one of an official rule."""
        return self.gate is not None and not self.gate > 0


class SliceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One group of a slice."""

    name: str
    samples: int
    images: int
    metrics: dict[str, MetricValue]


class StatusCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples there are, how many have which status, and why."""

    samples: int
    scored: int
    failed: int
    missing: int
    excluded: int
    reasons: dict[str, int] = {}


class ConfusionMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """Mask types of the ground truth (rows) and of the predictions (columns)."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: list[list[int]]


class CalibrationBin(msgspec.Struct, frozen=True, kw_only=True):
    """Predicted regions whose score lies between low and high: how many, mean score, precision, mean IoU."""

    low: float
    high: float
    count: int
    score: float
    precision: float
    iou: float


class ProtocolScores(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The scores under one protocol. slices: groups by name of the slice. cite: the sentence that a paper can quote.
    notices: what a reader has to know before the values.
    """

    rule: str
    options: dict[str, Any]
    counts: StatusCounts
    metrics: dict[str, MetricValue]
    slices: dict[str, list[SliceGroup]]
    confusion: ConfusionMatrix | None = None
    calibration: list[CalibrationBin] = []
    cite: str = ""
    risk_coverage: list[tuple[float, float, float]] = []
    """Confidence, coverage and risk, the surest questions first; see `maskwise.protocols.risk_coverage`."""
    notices: list[str] = []

    def __getitem__(self, metric: str) -> Metric | None:
        """The value of a metric with its interval; None if it is undefined."""
        if metric not in self.metrics:
            raise UnknownNameError("metric", metric, self.metrics)
        return self.metrics[metric].to_metric(self.counts.failed)

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def keys(self) -> Iterable[str]:
        """The names of the metrics."""
        return self.metrics.keys()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self[name]!r}" for name in list(self.metrics)[:2])
        return f"ProtocolScores({shown}, {len(self.metrics)} metrics, {self.counts.samples} samples)"


class PredictionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Predictions that were read, those for a sample of the dataset, and those for an unknown sample.

    with_mask_type: predictions that state a mask type; None if unknown. failed: samples whose prediction failed, or
    could not be scored under some protocol; first_error: why the first of them failed.
    """

    read: int
    matched: int
    unknown: int
    with_mask_type: int | None = None
    failed: int = 0
    first_error: str | None = None


class ScoresFile(msgspec.Struct, frozen=True, kw_only=True):
    """`scores.json`. skipped: protocols that could not score these predictions, and why."""

    format: str
    predictions: PredictionCounts
    skipped: dict[str, str]
    protocols: dict[str, ProtocolScores]
