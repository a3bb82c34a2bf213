"""Judge all answers of a run, and write the verdicts into its folder."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from maskwise import __version__
from maskwise.errors import MaskwiseError, StoreError
from maskwise.harness.metric_values import estimate_value
from maskwise.judging.case import AnswerCase, read_cases
from maskwise.judging.language_model import (
    JudgeModel,
    Usage,
    ask_model,
    estimate_requests,
    try_request,
)
from maskwise.judging.offline import judge_words
from maskwise.judging.prompt import SCHEMA, SYSTEM, hash_prompt
from maskwise.protocols import MetricTerms
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import estimate
from maskwise.registry import JUDGES
from maskwise.report.report_file import write_report
from maskwise.report.run_data import RunPaths, load_run_data
from maskwise.runs import Run, load_run
from maskwise.runs.files import REPORT, lock_run, write_errors, write_json
from maskwise.runs.judgments import (
    CRITERIA,
    JUDGMENTS_FORMAT,
    JudgeInfo,
    Judgments,
    Unjudged,
    Verdict,
    judgments_path,
)
from maskwise.runs.schema import MetricValue
from maskwise.writers.cost import CostEstimate

Judge = Callable[[AnswerCase], Verdict]

LEDGER = "judge.ledger.sqlite"
"""The ledger of a run's judgments, in its folder."""

NO_WORDS = (
    "the dataset has neither an answer nor names for the targets of this question"
)


def judge(
    run: "str | os.PathLike[str] | Run",
    judge: str | Judge | JudgeModel = "offline",
    *,
    ledger: str | os.PathLike[str] | None = None,
    paths: RunPaths | None = None,
) -> Judgments:
    """Judge the answers of a run and write the verdicts into its folder, `judgments-JUDGE.json`.

    judge: a name (`maskwise ls judges`), a function from an `AnswerCase` to a `Verdict`, or a language model, which is
    asked about answers that the offline judge is not certain of. ledger: where its replies are kept; in the run's
    folder if None. paths: where dataset and images are, if they were moved.

    Example: judge("runs/tiny").shares["correct"].value
    """
    opened = load_run(run)
    cases = load_cases(opened, paths)
    usage = Usage()
    if isinstance(judge, JudgeModel):
        place = find_ledger(opened, ledger)
        results = _judge_with_model(cases, judge, place, usage)
        info = judge_info(opened, judge.name, judge, usage, hash_prompt(SYSTEM, SCHEMA))
    else:
        name, function = find_judge(judge)
        results = [call_judge(function, case) for case in cases]
        info = judge_info(opened, name)
    judgments = summarize(opened, info, results)
    if opened.folder is not None:
        write_judgments(opened.folder, judgments)
        update_report(opened, paths)
    return judgments


def load_cases(run: Run, paths: RunPaths | None = None) -> list[AnswerCase]:
    """The cases of a run; StoreError if it has no answer in words at all."""
    cases = list(read_cases(load_run_data(run, paths or RunPaths())))
    if all(case.answer is None for case in cases):
        raise StoreError(
            f"{run.location} has no answers in words, so there is nothing to judge; a prediction carries its answer in "
            "the field `answer` (docs/reference/predictions.md)"
        )
    return cases


def find_judge(judge: str | Judge) -> tuple[str, Judge]:
    """A judge with its name: a function, or one of the registry."""
    if not isinstance(judge, str):
        return getattr(judge, "__name__", "judge"), judge
    function: Judge = JUDGES.load(judge, object)  # type: ignore[assignment]
    if not callable(function):
        raise MaskwiseError(
            f"judge {judge!r}: expected a function from an AnswerCase to a Verdict, found an object of type "
            f"{type(function).__name__}"
        )
    return judge, function


def find_ledger(run: Run, ledger: str | os.PathLike[str] | None) -> Path:
    """Where the replies of a language model are kept."""
    if ledger is not None:
        return Path(ledger)
    if run.folder is None:
        raise StoreError(
            "a run in memory has no folder for the ledger of a language model; pass ledger="
        )
    return run.folder / LEDGER


def call_judge(function: Judge, case: AnswerCase) -> Verdict | Unjudged:
    """The verdict of a function; its error is the reason why there is none."""
    if case.answer is not None and not case.has_truth:
        return Unjudged(sample=case.sample.id, reason=NO_WORDS)
    try:
        verdict = function(case)
    except Exception as error:
        return Unjudged(
            sample=case.sample.id, reason=f"{type(error).__name__}: {error}"
        )
    if not isinstance(verdict, Verdict):
        return Unjudged(
            sample=case.sample.id,
            reason=f"the judge returned an object of type {type(verdict).__name__}, not a Verdict",
        )
    return verdict


def find_doubtful(cases: Iterable[AnswerCase]) -> Iterator[AnswerCase]:
    """The answers that words alone do not settle."""
    for case in cases:
        settled = case.answer is None or (case.has_truth and judge_words(case).certain)
        if not settled:
            yield case


def _judge_with_model(
    cases: Sequence[AnswerCase], model: JudgeModel, ledger: Path, usage: Usage
) -> list[Verdict | Unjudged]:
    """The offline judge where it is certain, the model elsewhere."""
    doubtful = list(find_doubtful(cases))
    asked = {
        result.sample: result for result in ask_model(doubtful, model, ledger, usage)
    }
    return [asked.get(case.sample.id) or judge_words(case) for case in cases]


def estimate_judging(cases: Sequence[AnswerCase], model: JudgeModel) -> CostEstimate:
    """What judging would send and cost; what a ledger already holds is not subtracted."""
    requests = (try_request(case, model) for case in find_doubtful(cases))
    return estimate_requests(
        (request for request in requests if not isinstance(request, Unjudged)), model
    )


def judge_info(
    run: Run,
    name: str,
    model: JudgeModel | None = None,
    usage: Usage | None = None,
    prompt: str | None = None,
) -> JudgeInfo:
    """Who judges which predictions, now."""
    used = usage or Usage()
    return JudgeInfo(
        judge=name,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        maskwise=__version__,
        predictions=run.predictions_info.sha256,
        dataset=run.info.dataset.sha256,
        model=None if model is None else model.client.model,
        prompt=prompt,
        calls=used.calls,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cost=None if model is not None and model.price is None else used.cost,
    )


def summarize(
    run: Run, info: JudgeInfo, results: Sequence[Verdict | Unjudged]
) -> Judgments:
    """The verdicts with the share of each criterion, its interval clustered by image."""
    verdicts = [item for item in results if isinstance(item, Verdict)]
    return Judgments(
        format=JUDGMENTS_FORMAT,
        info=info,
        shares={name: share_of(run, verdicts, name) for name in CRITERIA},
        verdicts=verdicts,
        unjudged=[item for item in results if isinstance(item, Unjudged)],
    )


def share_of(run: Run, verdicts: Sequence[Verdict], criterion: str) -> MetricValue:
    """The share of answers that fulfil a criterion."""
    values = {
        verdict.sample: float(getattr(verdict, criterion)) for verdict in verdicts
    }
    return mean_value(run, values)


def mean_value(run: Run, values: dict[str, float]) -> MetricValue:
    """The mean over the samples with a value, with an interval clustered by image."""
    numerator = np.array([values.get(name, 0.0) for name in run.ids])
    denominator = np.array([name in values for name in run.ids], np.int64)
    groups = ImageGroups.single(run.clusters)
    terms = MetricTerms(numerator, denominator)
    return estimate_value(estimate(terms, groups, run.info.intervals.level)[0])


def write_judgments(folder: Path, judgments: Judgments) -> Path:
    """Write the verdicts of a judge, in place of its earlier ones."""
    path = judgments_path(folder, judgments.info.judge)
    with lock_run(folder), write_errors(folder):
        write_json(path, judgments)
    return path


def update_report(run: Run, paths: RunPaths | None = None) -> None:
    """Write the report of a run folder again, with the new verdicts; a folder without one gets none."""
    if run.folder is not None and (run.folder / REPORT).exists():
        write_report(run, run.folder / REPORT, paths=paths)
