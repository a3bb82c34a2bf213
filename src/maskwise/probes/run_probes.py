"""Run probes on a dataset and a model, and write probes.json and a page.

    results = probe("tiny", "world", out="probes/tiny", probes=["output-bias"])

`maskwise probe` and `maskwise.probe` are this function. Every evaluation of a probe is a run
folder below the folder of the probes: the same call continues what was interrupted.
"""

import contextlib
import datetime
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from maskwise import __version__
from maskwise.datasets import find_dataset, load_dataset
from maskwise.engines import EngineName, EngineOptions
from maskwise.errors import (
    MaskwiseError,
    ModelGoneError,
    StoreError,
    UnknownNameError,
)
from maskwise.harness.loaded_model import LoadedModel, load_model
from maskwise.harness.plan import Plan
from maskwise.harness.predictor import Model
from maskwise.images import resolve_inside
from maskwise.probes.context import BASE, ProbeContext
from maskwise.probes.probe import Probe, find_probe
from maskwise.registry import PROBES as REGISTERED
from maskwise.report.probe_page import write_probe_page
from maskwise.report.report_file import write_report
from maskwise.runs import Run, load_run
from maskwise.runs.files import (
    PROBES,
    REPORT,
    RUN,
    hash_path,
    write_errors,
    write_json,
)
from maskwise.runs.probe_results import (
    PROBES_FORMAT,
    ProbeFinding,
    ProbeResult,
    ProbesFile,
    read_probes,
)
from maskwise.store import Dataset
from maskwise.store.folder import MANIFEST

logger = logging.getLogger(__name__)

OnProbe = Callable[[str, int, int], None]
"""Called with the name of a probe, its number and how many there are, before it begins."""


def probe(
    model: str | Model | LoadedModel | None,
    data: str | os.PathLike[str] | Dataset,
    out: str | os.PathLike[str] | None = None,
    *,
    probes: str | Probe | Sequence[str | Probe] | None = None,
    options: Mapping[str, Any] | None = None,
    probe_options: Mapping[str, Mapping[str, Any]] | None = None,
    images: str | os.PathLike[str] | None = None,
    quick: bool = False,
    limit: int | None = None,
    seed: int = 0,
    engine: EngineName | EngineOptions = "local",
    timeout: float | None = None,
    progress: bool = True,
    command: str | None = None,
    on_probe: OnProbe = lambda name, number, count: None,
) -> ProbesFile:
    """Measure the risks that dataset cards name: `maskwise probe`.

    model: as for `load_model`, or None to probe the dataset alone; options: passed to a model
    given by name. data: as for `load_dataset`; images: the folder of its images, if they were
    moved. out: a folder for probes.json, a page and the run folders of all evaluations; the
    same call continues probes that were interrupted. Without it everything stays in memory.

    probes: names (`maskwise probe ls`), `package.module:attribute` or Probe objects; all
    built-in ones if None. probe_options: by probe. quick: fewer questions, wider intervals.
    limit: only this many images, drawn with `seed`. engine, timeout, progress: as for
    `evaluate`. command: what the results say can be repeated. on_probe: called before each.

    Example: results = probe("tiny", "world", out="probes/tiny", quick=True)
    """
    chosen = _choose_probes(probes, has_model=model is not None)
    given_options = probe_options or {}
    _check_options(chosen, given_options)
    source = data if isinstance(data, Dataset) else find_dataset(data).absolute()
    dataset = load_dataset(source, images=images)
    if not len(dataset):
        raise StoreError(
            f"{dataset.path} has no questions, so there is nothing to probe"
        )
    if limit is not None:
        plan = Plan.from_dataset(dataset, limit=limit, seed=seed)
        dataset = dataset.take(np.sort(plan.rows))
    with contextlib.ExitStack() as stack:
        loaded = None
        if model is not None:
            loaded = load_model(model, **(options or {}))
        if loaded is not None and isinstance(model, str):
            stack.enter_context(loaded)
        context = ProbeContext(
            data=source if images is None else dataset,
            dataset=dataset,
            model=loaded,
            folder=None if out is None else Path(out).absolute(),
            seed=seed,
            quick=quick,
            limit=limit,
            engine=EngineOptions(engine=engine) if isinstance(engine, str) else engine,
            timeout=timeout,
            progress=progress,
        )
        stack.enter_context(contextlib.closing(context))
        described = _describe(context, command or _repeat_call(model, data, probes))
        results = _read_earlier(context.folder, described)
        if any(item.needs_model for item in chosen):
            # A folder of another model or dataset is refused here, before anything is overwritten.
            context.evaluate(BASE)
        for number, item in enumerate(chosen, start=1):
            on_probe(item.name, number, len(chosen))
            own_options = given_options.get(item.name, {})
            results[item.name] = _run_probe(item, context, own_options)
            described = _with_results(described, context, results)
            if context.folder is not None:
                # What is done is kept, should a later probe be interrupted.
                with write_errors(context.folder):
                    context.folder.mkdir(parents=True, exist_ok=True)
                    write_json(context.folder / PROBES, described)
        if context.folder is not None:
            _write_pages(context.folder, described, _load_runs(context, results))
    return described


def _write_pages(folder: Path, probes: ProbesFile, runs: Mapping[str, Run]) -> None:
    """Write the page, and the results into the run that all probes share."""
    with write_errors(folder):
        write_probe_page(folder, probes, runs)
        if BASE in runs:
            write_json(folder / BASE / PROBES, probes)
            write_report(load_run(folder / BASE), folder / BASE / REPORT)


def _read_earlier(folder: Path | None, now: ProbesFile) -> dict[str, ProbeResult]:
    """The results that a folder has already, by probe; StoreError if they are about something else."""
    if folder is None or not (folder / PROBES).is_file():
        return {}
    earlier = read_probes(folder)
    for field in ("dataset_sha256", "model", "samples", "seed", "quick"):
        before = getattr(earlier, field)
        wanted = getattr(now, field)
        if before != wanted:
            raise StoreError(
                f"{folder} has probes with another {field}: {before!r}, not {wanted!r}; repeat "
                "the original command, or choose another folder (--out)"
            )
    return {result.name: result for result in earlier.results}


def _load_runs(
    context: ProbeContext, results: Mapping[str, ProbeResult]
) -> dict[str, Run]:
    """The evaluations of all results, those of earlier calls too, as far as they are there."""
    runs = dict(context.runs)
    if context.folder is None:
        return runs
    for name in [BASE, *(name for item in results.values() for name in item.runs)]:
        folder = resolve_inside(context.folder, name)
        if name not in runs and (folder / RUN).is_file():
            runs[name] = load_run(folder)
    return runs


def _with_results(
    probes: ProbesFile, context: ProbeContext, results: Mapping[str, ProbeResult]
) -> ProbesFile:
    """The file with these results, in the order of the built-in probes; plug-ins follow."""
    order = [name for name in REGISTERED.built_in if name in results]
    order += [name for name in results if name not in order]
    asked = sum(
        run.info.dataset.samples for run in _load_runs(context, results).values()
    )
    return msgspec.structs.replace(
        probes,
        results=[results[name] for name in order],
        cost=asked / max(1, probes.samples),
    )


def _choose_probes(
    probes: str | Probe | Sequence[str | Probe] | None, *, has_model: bool
) -> list[Probe]:
    """The probes that are named, or all built-in ones that can run without a model."""
    if probes is None:
        built_in = [find_probe(name) for name in REGISTERED.built_in]
        return [item for item in built_in if has_model or not item.needs_model]
    listed = [probes] if isinstance(probes, str | Probe) else list(probes)
    chosen = [find_probe(item) for item in listed]
    unusable = [item.name for item in chosen if item.needs_model and not has_model]
    if unusable:
        raise MaskwiseError(
            f"{', '.join(unusable)}: these probes need a model; name one with --model"
        )
    return chosen


def _check_options(
    probes: Sequence[Probe], given: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse options of other probes, and values that a probe does not take."""
    by_name = {item.name: item for item in probes}
    for name, values in given.items():
        if name not in by_name:
            raise UnknownNameError("probe with options", name, by_name)
        for option, value in values.items():
            by_name[name].check(option, value)


def _run_probe(
    probe: Probe, context: ProbeContext, options: Mapping[str, Any]
) -> ProbeResult:
    """The result of a probe; one that cannot be measured says why."""
    known_runs = set(context.runs)
    asked_before = context.questions_asked()
    begun = time.monotonic()
    try:
        finding = probe.find(context, **options)
    except ModelGoneError:
        raise
    except MaskwiseError as error:
        logger.warning("probe %s: %s", probe.name, error)
        finding = _not_measured(str(error))
    except Exception as error:  # a plug-in may raise anything; other probes go on
        logger.exception("probe %s failed", probe.name)
        finding = _not_measured(f"the probe failed ({type(error).__name__}: {error})")
    asked = context.questions_asked() - asked_before
    fields = {
        field: getattr(finding, field) for field in ProbeFinding.__struct_fields__
    }
    return ProbeResult(
        **fields,
        name=probe.name,
        title=probe.title,
        risks=list(probe.risks),
        measured=probe.measured,
        blind_spots=probe.blind_spots,
        thresholds=list(probe.thresholds),
        runs=[name for name in context.runs if name not in known_runs],
        cost=asked / max(1, len(context.dataset)),
        seconds=round(time.monotonic() - begun, 1),
    )


def _not_measured(reason: str) -> ProbeFinding:
    return ProbeFinding(
        finding=f"Not measured: {reason}", severity="unmeasured", done="Nothing."
    )


def _describe(context: ProbeContext, command: str) -> ProbesFile:
    """What is probed; there are no results yet."""
    dataset = context.dataset
    return ProbesFile(
        format=PROBES_FORMAT,
        maskwise=__version__,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        command=command,
        dataset=dataset.name,
        dataset_path=str(dataset.path.resolve()),
        dataset_sha256=hash_path(dataset.path / MANIFEST),
        dataset_format=dataset.manifest.about.get("format", ""),
        samples=len(dataset),
        images=len(Plan.from_dataset(dataset)),
        model=None if context.model is None else context.model.name,
        seed=context.seed,
        quick=context.quick,
        cost=0.0,
        results=[],
    )


def _repeat_call(model: Any, data: Any, probes: Any) -> str:
    """The Python call, as far as its arguments can be written down."""
    shown = [repr(model) if isinstance(model, str | None) else "model"]
    shown.append(repr(str(data)) if isinstance(data, str | os.PathLike) else "data")
    if isinstance(probes, str):
        shown.append(f"probes={probes!r}")
    return f"maskwise.probe({', '.join(shown)})"
