"""Judgments in words: who judged, what it cost, which verdicts there are, and how far people agree."""

from typing import Any

import msgspec

from maskwise.report.formatting import format_interval, format_metric, shorten
from maskwise.runs.judgments import Calibration, JudgeInfo, Judgments, Pairs
from maskwise.terminal import count_noun

CRITERION_LABELS = {
    "correct": "Correct",
    "grounded": "Grounded",
    "complete": "Complete",
    "hallucinated": "Hallucinated",
}

CRITERION_MEANINGS = {
    "correct": "names what is asked for, and nothing else in its place",
    "grounded": "words and masks mean the same things",
    "complete": "names all targets",
    "hallucinated": "names something that is not in the image; less is better",
}


def describe_judge(info: JudgeInfo) -> str:
    """Judge, model, prompt, date and cost in one sentence."""
    parts = [f"Judged by {info.judge}", info.date[:10]]
    if info.prompt is not None:
        parts.append(f"prompt {info.prompt[:12]}")
        parts.append(count_noun(info.calls, "call"))
        tokens = f"{info.input_tokens:,} input and {info.output_tokens:,} output tokens"
        parts.append(tokens)
        parts.append("price unknown" if info.cost is None else f"${info.cost:,.4f}")
    return f"{', '.join(parts)}."


def describe_verdicts(judgments: Judgments) -> list[str]:
    """How many answers were judged by whom, and which were not, in sentences."""
    total = len(judgments.verdicts) + len(judgments.unjudged)
    counts = {
        "settled by words": judgments.count("words"),
        "asked of the model": judgments.count("model"),
        "by the given judge": judgments.count("judge"),
        "without an answer, counted as wrong": judgments.count("no answer"),
        "doubtful": judgments.doubtful,
    }
    parts = [f"{count:,} {what}" for what, count in counts.items() if count]
    lines = [f"{count_noun(total, 'question')}: {', '.join(parts) or 'none judged'}."]
    if judgments.doubtful:
        lines.append(
            "Doubtful: the words do not settle it, and the verdict is the more likely one; a language model can look "
            "(--judge anthropic/MODEL or openai/MODEL)."
        )
    if judgments.unjudged:
        first = judgments.unjudged[0]
        lines.append(
            f"{len(judgments.unjudged):,} were not judged and are in no share; the first, {first.sample}: "
            f"{shorten(first.reason, 200)}."
        )
    return lines


def describe_pairs(pairs: Pairs) -> list[str]:
    """How often either run answers better, in sentences."""
    interval = format_interval(pairs.wins)
    lines = [
        f"Against {pairs.other}: {pairs.count('this'):,} won, {pairs.count('other'):,} lost, {pairs.count('tie'):,} "
        f"tied; {format_metric(pairs.wins)} % won with ties as half"
        + (f" ({interval})." if interval else f" ({pairs.wins.method}).")
    ]
    if pairs.disagreements:
        lines.append(
            f"{pairs.disagreements:,} of the ties come from a verdict that changed when the answers were swapped."
        )
    if pairs.unjudged:
        lines.append(
            f"{len(pairs.unjudged):,} were not judged; the first: {shorten(pairs.unjudged[0].reason, 200)}."
        )
    return lines


def describe_calibration(calibration: Calibration) -> str:
    """What a calibration rests on, and how to read it."""
    return (
        f"Measured on {count_noun(calibration.questions, 'answer')} that "
        f"{count_noun(calibration.reviewers, 'person').replace('persons', 'people')} judged, {calibration.date[:10]}. "
        "Corrected: what people would find over all answers, by prediction-powered inference, if those they judged "
        "were drawn at random."
    )


def summarize_verdicts(result: Judgments | Pairs) -> dict[str, Any]:
    """Everything of a result but the verdicts themselves, which are in its file: what JSON reports say."""
    fields: dict[str, Any] = msgspec.to_builtins(result)
    del fields["verdicts"]
    return {**fields, "judged": len(result.verdicts)}
