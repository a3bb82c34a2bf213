"""The results of risk probes: the structs of probes.json, used to write and to read it."""

import os
from pathlib import Path
from typing import Literal

import msgspec

from maskwise.errors import StoreError
from maskwise.runs.files import PROBES, read_json

PROBES_FORMAT = "maskwise probes 1"

Severity = Literal["unmeasured", "none", "low", "medium", "high"]
"""How bad a finding is, by the thresholds that its probe states. `unmeasured`: the probe
could not measure the risk, and its finding says why."""

SEVERITIES: tuple[Severity, ...] = ("unmeasured", "none", "low", "medium", "high")

Unit = Literal["fraction", "difference", "count", "number", "p", "text"]
"""How a value is shown: fractions and differences in percent (differences with a sign), counts
as integers, numbers with two digits, p-values as such."""

Cell = str | int | float | None


class Threshold(msgspec.Struct, frozen=True):
    """A finding has at least this severity if `condition`, in words."""

    severity: Severity
    condition: str


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured value with its interval; None where there is none.

    name: an identifier; label: what it is called; meaning: a few words more. unit: how it is
    shown. method: how the interval was computed, or why there is none.
    """

    name: str
    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    unit: Unit = "fraction"
    meaning: str = ""
    method: str = ""


class ProbeTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table. units: one per column, for its cells. note: a sentence below it."""

    title: str
    columns: list[str]
    units: list[Unit]
    rows: list[list[Cell]]
    note: str = ""

    def __post_init__(self) -> None:
        widths = {len(self.columns), len(self.units), *map(len, self.rows)}
        if len(widths) > 1:
            raise ValueError(f"table {self.title!r} has rows of different lengths")


class PlotPoint(msgspec.Struct, frozen=True):
    """A point of a plot: a name (bars) or a number (lines) and its value, with an interval."""

    x: str | float
    y: float | None
    low: float | None = None
    high: float | None = None


class PlotSeries(msgspec.Struct, frozen=True):
    """A named series of points."""

    name: str
    points: list[PlotPoint]


class ProbePlot(msgspec.Struct, frozen=True, kw_only=True):
    """What a page draws. Values are fractions.

    kind: `bars` has one bar per name, of several series side by side; `lines` joins the
    points of each series, whose x are numbers. x, y: what the axes are. note: a sentence.
    """

    title: str
    kind: Literal["bars", "lines"]
    series: list[PlotSeries]
    x: str = ""
    y: str = "gIoU"
    note: str = ""


class ProbeExample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample to look at, with its masks and the predictions of runs.

    sample: its id in the dataset of the runs. runs: folders of runs below that of the
    probes, whose predictions are shown side by side; all are on one dataset. title: why it
    is shown. note: a sentence more. image: a JPEG or PNG below the folder of the probes that
    is shown in place of the image of the dataset, such as a corrupted one.
    """

    title: str
    sample: str
    runs: list[str]
    note: str = ""
    image: str | None = None


class ProbeFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe found.

    finding: one sentence for people who do not know the field. severity: by the thresholds
    of the probe. done: what was done, with numbers. notes: what a reader has to know before
    the values.
    """

    finding: str
    severity: Severity
    done: str
    measures: list[Measure] = []
    tables: list[ProbeTable] = []
    plots: list[ProbePlot] = []
    examples: list[ProbeExample] = []
    notes: list[str] = []


class ProbeResult(ProbeFinding, frozen=True, kw_only=True):
    """A finding with what is known of its probe.

    name, title, risks, measured, blind_spots, thresholds: those of the probe. runs: folders
    of its evaluations below that of the probes. cost: questions asked, as a multiple of the
    questions of the probed dataset. seconds: how long the probe took.
    """

    name: str
    title: str
    risks: list[str]
    measured: str
    blind_spots: str
    thresholds: list[Threshold]
    runs: list[str] = []
    cost: float = 0.0
    seconds: float = 0.0


class ProbesFile(msgspec.Struct, frozen=True, kw_only=True):
    """`probes.json`.

    dataset, dataset_path, dataset_sha256: what was probed, and the hash of its manifest.
    dataset_format: the benchmark or format that it was read from, empty if none. samples,
    images: how many of them. model: its name; None where only the dataset was probed. date: of
    the last probe, YYYY-MM-DD. command: what repeats it. cost: of all probes, as a multiple of
    one evaluation.
    """

    format: str
    maskwise: str
    date: str
    command: str
    dataset: str
    dataset_path: str
    dataset_sha256: str
    samples: int
    images: int
    model: str | None
    seed: int
    quick: bool
    cost: float
    results: list[ProbeResult]
    dataset_format: str = ""

    def risks(self) -> dict[str, list[ProbeResult]]:
        """The results by risk id, in order."""
        by_risk: dict[str, list[ProbeResult]] = {}
        for result in self.results:
            for risk in result.risks:
                by_risk.setdefault(risk, []).append(result)
        return by_risk


def read_probes(path: str | os.PathLike[str]) -> ProbesFile:
    """The results in a folder that `maskwise probe` wrote, or in its probes.json."""
    file = Path(path)
    if file.is_dir():
        file = file / PROBES
    if not file.is_file():
        raise StoreError(
            f"{path} has no {PROBES}; make it with: maskwise probe DATASET --model MODEL "
            f"--out {path}"
        )
    return read_json(file, ProbesFile, PROBES_FORMAT)
