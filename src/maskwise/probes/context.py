"""What a probe is given: the dataset, the model, a seed, and evaluations that are kept."""

import contextlib
import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from maskwise.arrays import Int64Array
from maskwise.datasets import load_dataset
from maskwise.engines import EngineOptions
from maskwise.errors import MaskwiseError
from maskwise.harness.evaluate import evaluate
from maskwise.harness.loaded_model import LoadedModel
from maskwise.harness.plan import Plan
from maskwise.protocols import MetricTerms
from maskwise.runs import Run
from maskwise.store import Dataset

BASE = "base"
"""The folder of the evaluation that all probes share: the model on the dataset as it is."""

PROTOCOL = "strict"
"""Probes score by this rule: it is the only one under which every question counts."""


@dataclass
class ProbeContext:
    """The dataset and the model of a probe, and the evaluations made so far.

    data: the dataset, or the path it was opened from, as `evaluate` takes it; dataset: the
    same, opened, with the images that are probed. model: None where only the dataset is
    probed. folder: where evaluations are kept; None keeps them in memory. limit: number of
    images, drawn with `seed`; None for all. quick: a probe asks at most a tenth of what it
    would ask otherwise, beside the shared evaluation. runs: evaluations by name.
    asked_directly: questions that a probe asked without an evaluation.
    """

    data: str | Path | Dataset
    dataset: Dataset
    model: LoadedModel | None
    folder: Path | None = None
    seed: int = 0
    quick: bool = False
    limit: int | None = None
    engine: EngineOptions = field(default_factory=EngineOptions)
    timeout: float | None = None
    progress: bool = False
    runs: dict[str, Run] = field(default_factory=dict)
    asked_directly: int = 0
    _temporary: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def base(self) -> Run:
        """The model on the dataset as it is, under `strict`; evaluated once for all probes."""
        return self.evaluate(BASE)

    def loaded_model(self) -> LoadedModel:
        """The model; an error where only the dataset is probed."""
        if self.model is None:
            raise MaskwiseError("this probe needs a model; name one with --model")
        return self.model

    def evaluate(
        self,
        name: str,
        model: LoadedModel | None = None,
        data: str | Path | Dataset | None = None,
        *,
        share: float = 1.0,
    ) -> Run:
        """Evaluate a model under `strict`; an evaluation of the same name is not repeated.

        name: its folder, for example `corruptions/fog-3`. model: the probed one if None; wrap
        it like `maskwise.models.baselines.baseline` does, so that Ray can load it too. data:
        another dataset than the probed one. share: of the images, drawn with the seed; a
        smaller draw is a part of a larger one and of the shared evaluation.
        """
        if name in self.runs:
            return self.runs[name]
        images = self._count_images(data)
        wanted = max(1, math.ceil(share * images))
        is_part = wanted < images or (data is None and self.limit is not None)
        run = evaluate(
            model or self.loaded_model(),
            self.data if data is None else data,
            None if self.folder is None else self.folder / name,
            protocols=PROTOCOL,
            limit=wanted if is_part else None,
            seed=self.seed,
            engine=self.engine,
            timeout=self.timeout,
            report=False,
            keep_going=True,
            progress=self.progress,
        )
        self.runs[name] = run
        return run

    def base_rows(self, run: Run) -> Int64Array:
        """The rows of the shared evaluation that have the samples of a run, in its order.

        The run is on the probed dataset or a part of it, maybe with changed images or words.
        """
        place = {id: row for row, id in enumerate(self.base.ids)}
        return np.array([place[id] for id in run.ids], np.int64)

    def base_metrics(self, run: Run) -> dict[str, MetricTerms]:
        """The metrics of the shared evaluation on the samples of a run, in its order: what
        `maskwise.protocols.significance.compare_metrics` compares with `run.metrics(PROTOCOL)`.
        """
        rows = self.base_rows(run)
        metrics = {}
        for name, terms in self.base.metrics(PROTOCOL).items():
            metrics[name] = MetricTerms(
                terms.numerator[rows],
                terms.denominator[rows],
                epsilon=terms.epsilon,
                unit=terms.unit,
            )
        return metrics

    def work_folder(self, name: str) -> Path:
        """An existing folder for what a probe makes, such as a changed dataset. It is below the
        folder of the probes, or temporary where there is none.
        """
        if self.folder is None:
            place = self._temporary.enter_context(tempfile.TemporaryDirectory())
            return Path(place)
        made = self.folder / name
        made.mkdir(parents=True, exist_ok=True)
        return made

    def questions_asked(self) -> int:
        """Questions of all evaluations so far, and those asked without one."""
        evaluated = sum(run.info.dataset.samples for run in self.runs.values())
        return evaluated + self.asked_directly

    def close(self) -> None:
        """Remove temporary folders."""
        self._temporary.close()

    def _count_images(self, data: str | Path | Dataset | None) -> int:
        """The images with questions of another dataset, or of the probed one."""
        dataset = self.dataset
        if isinstance(data, Dataset):
            dataset = data
        elif data is not None:
            dataset = load_dataset(data)
        return len(Plan.from_dataset(dataset))
