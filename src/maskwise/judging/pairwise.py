"""Which of two runs answers better, question by question; a language model is asked in both orders."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from maskwise.errors import MaskwiseError, StoreError
from maskwise.judging.case import AnswerCase
from maskwise.judging.judge_run import (
    Judge,
    call_judge,
    find_judge,
    find_ledger,
    judge_info,
    load_cases,
    mean_value,
    update_report,
)
from maskwise.judging.language_model import (
    MAX_REASON,
    JudgeModel,
    Usage,
    broken_image,
    estimate_requests,
    read_output,
    send,
)
from maskwise.judging.offline import judge_words
from maskwise.judging.prompt import PAIR_SCHEMA, PAIR_SYSTEM, hash_prompt, pair_request
from maskwise.protocols.answers import normalise
from maskwise.report.run_data import RunPaths
from maskwise.runs import Run, load_run
from maskwise.runs.files import lock_run, write_errors, write_json
from maskwise.runs.judgments import (
    PAIRS_FORMAT,
    Pairs,
    PairVerdict,
    Unjudged,
    Verdict,
    pairs_path,
)
from maskwise.writers.cost import CostEstimate
from maskwise.writers.request import Completion, CompletionRequest

POINTS = {"this": 1.0, "tie": 0.5, "other": 0.0}
"""What a question adds to the share of wins."""

NO_ANSWER = "(no answer)"

CasePair = tuple[AnswerCase, AnswerCase]


class ModelPreference(msgspec.Struct, frozen=True):
    """What a model has to return."""

    reason: str
    better: Literal["first", "second", "tie"]


def judge_pairs(
    run: "str | os.PathLike[str] | Run",
    other: "str | os.PathLike[str] | Run",
    judge: str | Judge | JudgeModel = "offline",
    *,
    ledger: str | os.PathLike[str] | None = None,
    paths: RunPaths | None = None,
) -> Pairs:
    """Compare the answers of two runs on one dataset; the result goes into the folder of the first.

    judge: as for `judge`. A function judges both answers, and the better verdict wins. A language model is asked about
    pairs that the words do not settle, twice, with the answers swapped: where the two replies disagree it is a tie.
    """
    first = load_run(run)
    second = load_run(other)
    pairs = load_pairs(first, second, paths)
    usage = Usage()
    results: list[PairVerdict | Unjudged]
    if isinstance(judge, JudgeModel):
        results = _judge_with_model(pairs, judge, find_ledger(first, ledger), usage)
        prompt = hash_prompt(PAIR_SYSTEM, PAIR_SCHEMA)
        info = judge_info(first, judge.name, judge, usage, prompt)
    else:
        name, function = find_judge(judge)
        results = [_call_and_compare(function, *pair) for pair in pairs]
        info = judge_info(first, name)
    verdicts = [item for item in results if isinstance(item, PairVerdict)]
    points = {verdict.sample: POINTS[verdict.better] for verdict in verdicts}
    comparison = Pairs(
        format=PAIRS_FORMAT,
        info=info,
        other=second.location,
        wins=mean_value(first, points),
        verdicts=verdicts,
        unjudged=[item for item in results if isinstance(item, Unjudged)],
    )
    if first.folder is not None:
        path = pairs_path(first.folder, info.judge, second.name)
        with lock_run(first.folder), write_errors(first.folder):
            write_json(path, comparison)
        update_report(first, paths)
    return comparison


def load_pairs(run: Run, other: Run, paths: RunPaths | None = None) -> list[CasePair]:
    """The questions of both runs; StoreError if they are not on the same dataset."""
    if run.info.dataset.sha256 != other.info.dataset.sha256:
        raise StoreError(
            f"{run.location} and {other.location} are on different datasets ({run.info.dataset.name} and "
            f"{other.info.dataset.name}); answers can be compared on one dataset only"
        )
    others = {case.sample.id: case for case in load_cases(other, paths)}
    pairs = [
        (case, others[case.sample.id])
        for case in load_cases(run, paths)
        if case.sample.id in others
    ]
    if not pairs:
        raise StoreError(
            f"{run.location} and {other.location} have no question in common"
        )
    return pairs


def _call_and_compare(
    function: Judge, this: AnswerCase, other: AnswerCase
) -> PairVerdict | Unjudged:
    """The better one by the verdicts of a function; where it gives none, why."""
    verdict = call_judge(function, this)
    if isinstance(verdict, Unjudged):
        return verdict
    other_verdict = call_judge(function, other)
    if isinstance(other_verdict, Unjudged):
        return other_verdict
    return _compare(this, verdict, other, other_verdict)


def _compare(
    this: AnswerCase, verdict: Verdict, other: AnswerCase, other_verdict: Verdict
) -> PairVerdict:
    """The answer with the better verdict: correct first, then complete, without invention, grounded."""

    def rank(item: Verdict) -> tuple[bool, bool, bool, bool]:
        return item.correct, item.complete, not item.hallucinated, item.grounded

    better: Literal["this", "other", "tie"] = "tie"
    reason = "both are equally good by their words"
    if _say_the_same(this, other):
        reason = "both say the same"
    elif rank(verdict) > rank(other_verdict):
        better = "this"
        reason = f"the other: {other_verdict.reason}"
    elif rank(verdict) < rank(other_verdict):
        better = "other"
        reason = f"this: {verdict.reason}"
    return PairVerdict(sample=this.sample.id, better=better, reason=reason)


def _say_the_same(this: AnswerCase, other: AnswerCase) -> bool:
    return normalise(this.answer or "") == normalise(other.answer or "")


def _settle(this: AnswerCase, other: AnswerCase) -> PairVerdict | None:
    """The result where the words leave no doubt about either answer."""
    verdict = judge_words(this)
    other_verdict = judge_words(other)
    is_certain = verdict.certain and other_verdict.certain and this.has_truth
    if is_certain or _say_the_same(this, other):
        return _compare(this, verdict, other, other_verdict)
    return None


def _judge_with_model(
    pairs: Sequence[CasePair], model: JudgeModel, ledger: Path, usage: Usage
) -> list[PairVerdict | Unjudged]:
    results: dict[str, PairVerdict | Unjudged] = {}
    doubtful = []
    for this, other in pairs:
        settled = _settle(this, other)
        if settled is None:
            doubtful.append((this, other))
        else:
            results[this.sample.id] = settled
    model.begin(2 * len(doubtful))
    asked: list[str] = []

    def make_requests() -> Iterator[CompletionRequest]:
        for pair in doubtful:
            sample = pair[0].sample.id
            requests = _both_orders(*pair, model)
            if isinstance(requests, Unjudged):
                results[sample] = requests
            else:
                asked.append(sample)
                yield from requests

    replies = send(make_requests(), model, ledger, usage)
    # One iterator twice: every pair takes its two replies.
    for number, (reply, swapped) in enumerate(zip(replies, replies)):
        results[asked[number]] = _combine(asked[number], reply, swapped)
    return [results[this.sample.id] for this, _ in pairs]


def _both_orders(
    this: AnswerCase, other: AnswerCase, model: JudgeModel
) -> list[CompletionRequest] | Unjudged:
    """Two requests: this answer first, then the other first; or why there are none."""
    mine = this.answer or NO_ANSWER
    theirs = other.answer or NO_ANSWER
    try:
        return [
            pair_request(this, *answers, with_image=model.with_image)
            for answers in ((mine, theirs), (theirs, mine))
        ]
    except MaskwiseError as error:
        return broken_image(this, error)


def _combine(
    sample: str, completion: Completion, swapped: Completion
) -> PairVerdict | Unjudged:
    """One result of the two orders: a preference that depends on the order is none."""
    reply = read_output(completion, ModelPreference)
    reply_swapped = read_output(swapped, ModelPreference)
    for failure in (reply, reply_swapped):
        if isinstance(failure, str):
            return Unjudged(sample=sample, reason=failure)
    assert isinstance(reply, ModelPreference)
    assert isinstance(reply_swapped, ModelPreference)
    meant: dict[str, Literal["this", "other", "tie"]] = {
        "first": "this",
        "second": "other",
        "tie": "tie",
    }
    meant_swapped = {"first": "other", "second": "this", "tie": "tie"}
    better = meant[reply.better]
    agreed = better == meant_swapped[reply_swapped.better]
    reason = reply.reason
    if not agreed:
        reason = f"the two orders disagree: {reply.reason} / {reply_swapped.reason}"
    return PairVerdict(
        sample=sample,
        better=better if agreed else "tie",
        reason=reason[:MAX_REASON],
        agreed=agreed,
        origin="model",
    )


def estimate_pairs(pairs: Sequence[CasePair], model: JudgeModel) -> CostEstimate:
    """What the comparison would send and cost."""
    doubtful = [pair for pair in pairs if _settle(*pair) is None]
    both = (_both_orders(*pair, model) for pair in doubtful)
    requests = (
        request for orders in both if isinstance(orders, list) for request in orders
    )
    return estimate_requests(requests, model)
