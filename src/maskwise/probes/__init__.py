"""Risk probes: measure the risks that dataset cards name, on a dataset and a model.

    results = probe("tiny", "world", out="probes/tiny")       # `maskwise probe world --model tiny`
    results.results[0].finding

A probe is an object of type `Probe`: what it measures, what it cannot see, from which values on
a finding has which severity, and a function from a `ProbeContext` to a `ProbeFinding`. It asks
the model through `context.evaluate`, so that every evaluation is a run folder that an
interrupted probe continues. docs/guides/probes.md describes the built-in ones, docs/extending.md
shows how to add one.
"""

from maskwise.probes.context import ProbeContext
from maskwise.probes.probe import Probe
from maskwise.runs.probe_results import (
    Measure,
    PlotPoint,
    PlotSeries,
    ProbeExample,
    ProbeFinding,
    ProbePlot,
    ProbesFile,
    ProbeTable,
    Severity,
    Threshold,
)

__all__ = [
    "Measure",
    "PlotPoint",
    "PlotSeries",
    "Probe",
    "ProbeContext",
    "ProbeExample",
    "ProbeFinding",
    "ProbePlot",
    "ProbeTable",
    "ProbesFile",
    "Severity",
    "Threshold",
]
