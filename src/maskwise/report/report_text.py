"""The report of a run as Markdown and as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any

from maskwise.report.formatting import (
    MAX_TEXT,
    format_interval,
    format_metric,
    format_value,
    shorten,
)
from maskwise.report.judgment_text import (
    CRITERION_LABELS,
    describe_calibration,
    describe_judge,
    describe_pairs,
    describe_verdicts,
    summarize_verdicts,
)
from maskwise.report.ladder_text import (
    describe_ladder_questions,
    describe_spread,
    ladder_table,
)
from maskwise.report.metric_labels import metric_label, slice_label
from maskwise.report.protocol_order import (
    describe_questions,
    order_protocols,
    protocol_note,
    protocol_role,
    states_mask_types,
)
from maskwise.report.report_page import MAX_GROUPS, MAX_NAME, MAX_SLICINGS
from maskwise.report.sample_selection import largest
from maskwise.runs import Run
from maskwise.runs.judgments import Calibration, read_judgments, read_pairs
from maskwise.runs.schema import MetricValue, ProtocolScores, SliceGroup
from maskwise.runs.tables import MAIN_METRICS
from maskwise.terminal import safe_markdown

FORMAT = "maskwise report 3"


def run_to_markdown(run: Run, *, protocol: str | None = None) -> str:
    """Protocols, all metrics and slices of the main protocol, and counts, as Markdown tables."""
    main = run.main_protocol(protocol)
    results = run.scores.protocols
    names = order_protocols(run, protocol)
    notes = [*run.notices, *filter(None, (protocol_note(run, name) for name in names))]
    lines = [
        f"# {_escape(run.info.dataset.name)}: {_escape(run.model_name)}",
        "",
        *(text for note in notes for text in (f"**{_escape(note)}**", "")),
        f"{describe_questions(run)}. Values are percent, except counts, with {100 * run.info.intervals.level:g} % "
        f"intervals over images. maskwise {_escape(run.info.maskwise)}.",
        "",
        *_table(
            (
                "protocol",
                "gIoU",
                "cIoU",
                "scored",
                "counted as zero",
                "left out",
                "rule",
            ),
            [_protocol_row(run, name) for name in names],
        ),
        "",
        *_citations(run, names),
        f"## Metrics under {main}",
        "",
        *_table(
            ("metric", "value", "interval", "method", ""),
            _metric_rows(run, results[main]),
        ),
    ]
    if run.ladder is not None:
        lines += ["", "## Under other published rules", ""]
        lines += [describe_ladder_questions(run.ladder), ""]
        lines += ladder_table(run.ladder, run.ladder.runs[0])
        lines += ["", *describe_spread(run.ladder.runs[0])]
    lines += _judgment_lines(run)
    for slicing, groups in list(results[main].slices.items())[:MAX_SLICINGS]:
        if len(groups) > 1:
            title = f"## {_escape(slice_label(slicing))}"
            lines += ["", title, "", *_slice_table(largest(groups, MAX_GROUPS))]
    return "\n".join([*lines, ""])


def _judgment_lines(run: Run) -> list[str]:
    """The verdicts of every judge, and comparisons with other runs."""
    lines = []
    for judgments in read_judgments(run):
        lines += ["", f"## Answers, judged by {_escape(judgments.info.judge)}", ""]
        rows = [
            (CRITERION_LABELS.get(name, name), _with_interval(share))
            for name, share in judgments.shares.items()
        ]
        lines += _table(("criterion", "share"), rows)
        sentences = [describe_judge(judgments.info), *describe_verdicts(judgments)]
        lines += ["", _escape(" ".join(sentences), MAX_TEXT)]
        if judgments.calibration is not None:
            lines += ["", *_calibration_lines(judgments.calibration)]
    for pairs in read_pairs(run):
        sentences = [*describe_pairs(pairs), describe_judge(pairs.info)]
        lines += ["", _escape(" ".join(sentences), MAX_TEXT)]
    return lines


def _calibration_lines(calibration: Calibration) -> list[str]:
    """A judge beside people."""
    rows = [
        (
            CRITERION_LABELS.get(name, name),
            format_metric(row.judge),
            _with_interval(row.corrected),
            _with_interval(row.people),
            format_value(row.kappa.value, "count"),
        )
        for name, row in calibration.criteria.items()
    ]
    head = ("criterion", "judge", "corrected", "people alone", "kappa")
    return [
        *_table(head, rows),
        "",
        _escape(describe_calibration(calibration), MAX_TEXT),
    ]


def _citations(run: Run, names: Sequence[str]) -> list[str]:
    """The sentence to quote for each protocol."""
    lines = []
    for name in names:
        sentence = run.scores.protocols[name].cite
        if sentence:
            lines += [f"To quote, {name}: {sentence}", ""]
    return lines


def _protocol_row(run: Run, name: str) -> tuple[str, ...]:
    result = run.scores.protocols[name]
    role = protocol_role(run, name)
    counts = result.counts
    return (
        f"{name} ({role})" if role else name,
        *(_with_interval(result.metrics[metric]) for metric in MAIN_METRICS),
        *(
            str(number)
            for number in (
                counts.scored,
                counts.failed + counts.missing,
                counts.excluded,
            )
        ),
        result.rule,
    )


def _metric_rows(run: Run, result: ProtocolScores) -> list[tuple[str, ...]]:
    return [
        (
            metric_label(name).label,
            format_metric(metric),
            format_interval(metric),
            metric.method,
            metric_label(name).meaning,
        )
        for name, metric in result.metrics.items()
        if metric.value is not None
        and not metric.gated
        and (name != "mask_type_accuracy" or states_mask_types(run))
    ]


def _with_interval(metric: MetricValue) -> str:
    interval = format_interval(metric)
    return (
        f"{format_metric(metric)} ({interval})" if interval else format_metric(metric)
    )


def _slice_table(groups: Sequence[SliceGroup]) -> list[str]:
    rows = [
        (
            group.name,
            str(group.samples),
            *(_with_interval(group.metrics[name]) for name in MAIN_METRICS),
        )
        for group in groups
    ]
    return _table(("group", "questions", "gIoU", "cIoU"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(map(_escape, row)) + " |" for row in rows]
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines]


def _escape(text: str, limit: int = 2 * MAX_NAME) -> str:
    """The text on one line, with Markdown's special characters escaped."""
    return safe_markdown(shorten(" ".join(text.split()), limit))


def run_to_summary(run: Run) -> dict[str, Any]:
    """The small JSON form: what was scored, counts and metrics of every protocol."""
    info = run.info
    return {
        "format": FORMAT,
        "run": run.location,
        "dataset": info.dataset.name,
        "official_protocol": info.dataset.protocol,
        "predictions": run.predictions_info.path,
        "model": info.evaluation and info.evaluation.inputs.model.name,
        "notices": run.notices,
        "maskwise": info.maskwise,
        "samples": info.dataset.samples,
        "all_samples": info.dataset.all_samples,
        "images": info.dataset.images,
        "level": info.intervals.level,
        "judgments": [summarize_verdicts(item) for item in read_judgments(run)],
        "pairs": [summarize_verdicts(item) for item in read_pairs(run)],
        "protocols": {
            name: _summarize(run.scores.protocols[name])
            for name in order_protocols(run)
        },
    }


def _summarize(result: ProtocolScores) -> dict[str, Any]:
    counts = result.counts
    return {
        "rule": result.rule,
        "cite": result.cite,
        "options": result.options,
        "counts": {
            name: getattr(counts, name)
            for name in ("samples", "scored", "failed", "missing", "excluded")
        },
        "metrics": {
            name: {
                key: getattr(metric, key)
                for key in ("value", "low", "high", "method", "unit")
            }
            for name, metric in result.metrics.items()
        },
    }
