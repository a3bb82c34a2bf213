"""A table of any number of runs for a paper: chosen metrics, intervals, and published rows beside them.

    table = make_result_table([load_run(a), load_run(b)], metrics=["giou", "ciou"])
    print(table_to_latex(table))

The best value of a metric is bold only if it is significantly better than that of every other run: paired tests over
the same images, p-values of all such tests of the table adjusted by Holm. Rows are grouped by their rule, and a table
with several rules says so.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from maskwise.errors import ProtocolError, UnknownNameError
from maskwise.protocols.significance import adjust_by_holm
from maskwise.report.comparison import SIGNIFICANT, pair_runs
from maskwise.report.formatting import UNDEFINED, format_value
from maskwise.report.metric_labels import metric_label
from maskwise.report.published_results import MISSING, PublishedTable, read_published
from maskwise.report.ranking import compare_pair, count_left_out
from maskwise.report.render import render
from maskwise.report.rule_groups import (
    ResultRule,
    group_by_rule,
    measured_rule,
    mixed_rules_note,
    published_rule,
)
from maskwise.runs import Run
from maskwise.runs.schema import MetricValue
from maskwise.terminal import safe_cell, safe_markdown, safe_text

TableFormat = Literal["latex", "csv", "markdown", "html"]
Spread = Literal["interval", "plusminus", "none"]
DEFAULT_METRICS = ("giou", "ciou")
LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{character: "\\" + character for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "−": "$-$",
    "±": r"$\pm$",
}


@dataclass(frozen=True)
class ResultCell:
    """One value: as text, with the text of its spread, and whether it is bold. value: None if unknown."""

    value: float | None
    text: str
    spread: str = ""
    bold: bool = False


@dataclass(frozen=True)
class ResultRow:
    """A run or a published system. notes: why it is not compared with the others."""

    name: str
    cells: list[ResultCell]
    rule: ResultRule
    published: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultTable:
    """Rows by rule, the rule of each group first. footnotes: everything that has to stand below the table."""

    caption: str
    columns: list[str]
    groups: list[tuple[ResultRule, list[ResultRow]]]
    footnotes: list[str]


def make_result_table(
    runs: Sequence[Run],
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    protocol: str | None = None,
    spread: Spread = "interval",
    published: str | None = None,
) -> ResultTable:
    """The table of runs that were scored on the same questions under the same protocol and options.

    protocol: `strict` if None. published: a split whose published results are shown as well, such as `val`.
    """
    if not runs:
        raise ProtocolError("a table needs at least one run")
    name = runs[0].main_protocol(protocol)
    for run in runs[1:]:
        name = pair_runs(runs[0], run, protocol).protocol
    scores = runs[0].scores.protocols[name]
    for metric in metrics:
        if metric not in scores.metrics:
            raise UnknownNameError(f"metric of {name}", metric, scores.metrics)
    rule = measured_rule(name, scores.options, description=scores.rule)
    left_out = count_left_out(runs, name)
    notes = [_run_notes(run, count) for run, count in zip(runs, left_out, strict=True)]
    compared = [item for item, texts in enumerate(notes) if not texts]
    bold = _find_bold([runs[item] for item in compared], name, metrics)
    is_bold = {(compared[item], metric) for item, metric in bold}
    rows = []
    for item, run in enumerate(runs):
        values = run.scores.protocols[name].metrics
        cells = [
            _cell(values[metric], spread, bold=(item, metric) in is_bold)
            for metric in metrics
        ]
        rows.append(ResultRow(_run_label(run, runs), cells, rule, notes=notes[item]))
    footnotes = [rule.sentence]
    if published is not None:
        benchmark = runs[0].info.dataset.name.split(" ")[0]
        tables = _published_tables(benchmark, published)
        for table in tables:
            rows += _published_rows(table, published, metrics)
            footnotes.append(_describe_source(table))
    groups = group_by_rule([(row.rule, row) for row in rows])
    mixed = mixed_rules_note([row.rule for row in rows])
    if mixed:
        footnotes.insert(0, mixed)
    footnotes += _describe_marks(runs, spread, has_bold=bool(bold))
    for row in rows:
        footnotes += [f"{row.name}: {note}." for note in row.notes]
    dataset = runs[0].info.dataset
    caption = f"{dataset.name}: {dataset.samples:,} questions about {dataset.images:,} images, rule {rule.name}"
    columns = [metric_label(metric).label for metric in metrics]
    return ResultTable(caption, columns, groups, list(dict.fromkeys(footnotes)))


def _run_label(run: Run, runs: Sequence[Run]) -> str:
    """The model's name, with the run's where two runs share it."""
    names = [other.model_name for other in runs]
    if names.count(run.model_name) == 1:
        return run.model_name
    return f"{run.model_name} ({run.name})"


def _run_notes(run: Run, left_out: int) -> tuple[str, ...]:
    """Why a run is shown but not compared with the others."""
    notes = []
    if run.uses_ground_truth:
        notes.append("given the ground truth")
    if run.teacher_forced:
        notes.append("teacher-forced")
    if left_out:
        notes.append(f"{left_out:,} questions that count for other runs are left out")
    return tuple(notes)


def _find_bold(
    runs: Sequence[Run], protocol: str, metrics: Sequence[str]
) -> list[tuple[int, str]]:
    """Run and metric of the values that are significantly better than those of every other run."""
    best_of: dict[str, int] = {}
    tests: list[tuple[str, float | None]] = []
    for metric in metrics:
        sign = 1.0 if metric_label(metric).better == "higher" else -1.0
        known = []
        for item, run in enumerate(runs):
            value = run.scores.protocols[protocol].metrics[metric].value
            if value is not None:
                known.append((sign * value, item))
        if len(known) < 2:
            continue
        best = max(known)[1]
        best_of[metric] = best
        for _, other in known:
            if other != best:
                pair = compare_pair(runs[other], runs[best], protocol, [metric])
                comparison = pair.get(metric)
                p = None if comparison is None else comparison.p_value
                tests.append((metric, p))
    adjusted = adjust_by_holm([p for _, p in tests])
    not_shown = {
        metric
        for (metric, _), p in zip(tests, adjusted, strict=True)
        if p is None or p >= SIGNIFICANT
    }
    return [
        (item, metric) for metric, item in best_of.items() if metric not in not_shown
    ]


def _cell(metric: MetricValue, spread: Spread, *, bold: bool) -> ResultCell:
    text = format_value(metric.value, metric.unit)
    if spread == "none" or metric.value is None or metric.low is None:
        return ResultCell(metric.value, text, bold=bold)
    assert metric.high is not None
    if spread == "interval":
        low = format_value(metric.low, metric.unit)
        high = format_value(metric.high, metric.unit)
        return ResultCell(metric.value, text, f"[{low}, {high}]", bold)
    # The interval is not symmetric; the longer side is the honest one.
    reach = max(metric.high - metric.value, metric.value - metric.low)
    return ResultCell(metric.value, text, f"± {format_value(reach, metric.unit)}", bold)


def _published_tables(benchmark: str, split: str) -> list[PublishedTable]:
    tables = [table for table in read_published() if table.benchmark == benchmark]
    with_split = [table for table in tables if split in table.splits]
    if not with_split:
        splits = [name for table in tables for name in table.splits]
        raise UnknownNameError(f"published split of {benchmark}", split, splits)
    return with_split


def _published_rows(
    table: PublishedTable, split: str, metrics: Sequence[str]
) -> list[ResultRow]:
    """The systems of a published table with the figures that have the label of a metric."""
    first = table.splits.index(split) * len(table.figures)
    rows = []
    for system, texts in table.cells:
        figures = dict(zip(table.figures, texts[first:], strict=False))
        cells = []
        for metric in metrics:
            text = figures.get(metric_label(metric).label, MISSING)
            if text == MISSING:
                cells.append(ResultCell(None, UNDEFINED))
            else:
                cells.append(ResultCell(float(text) / 100, text))
        if any(cell.value is not None for cell in cells):
            rule = published_rule(table, system)
            rows.append(ResultRow(system, cells, rule, published=True))
    return rows


def _describe_source(table: PublishedTable) -> str:
    return f"Published, not measured here: {table.source}. {table.conditions}".strip()


def _describe_marks(
    runs: Sequence[Run], spread: Spread, *, has_bold: bool
) -> list[str]:
    """What intervals and bold values mean."""
    level = f"{100 * runs[0].info.intervals.level:g} %"
    notes = []
    if spread == "interval":
        notes.append(f"Brackets: {level} intervals over images.")
    elif spread == "plusminus":
        notes.append(f"±: the longer side of the {level} interval over images.")
    if has_bold:
        notes.append(
            "Bold: significantly better than every other run (paired tests over images, adjusted by Holm, p < 0.05)."
        )
    elif len(runs) > 1:
        notes.append(
            "No value is bold: no run is significantly better than every other one (paired tests, adjusted by Holm)."
        )
    return notes


# -- formats -----------------------------------------------------------------------------------------------------------


def format_table(table: ResultTable, format: TableFormat) -> str:
    """The table as text in one of the formats, with a newline at the end."""
    writers = {
        "latex": table_to_latex,
        "csv": table_to_csv,
        "markdown": table_to_markdown,
        "html": table_to_html,
    }
    if format not in writers:
        raise UnknownNameError("format of a table", format, writers)
    return writers[format](table)


def table_to_latex(table: ResultTable) -> str:
    """A table for the packages booktabs and threeparttable."""
    columns = "l" + "c" * len(table.columns)
    lines = [
        "% needs \\usepackage{booktabs,threeparttable}",
        "\\begin{table}",
        "\\begin{threeparttable}",
        f"\\caption{{{_latex(table.caption)}}}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        " & ".join(["", *[_latex(column) for column in table.columns]]) + r" \\",
    ]
    for rule, rows in table.groups:
        lines.append("\\midrule")
        if len(table.groups) > 1:
            width = len(table.columns) + 1
            label = _latex(f"rule {rule.label}")
            lines.append(f"\\multicolumn{{{width}}}{{l}}{{\\textit{{{label}}}}} \\\\")
        for row in rows:
            cells = [_latex(_row_name(row))]
            for cell in row.cells:
                text = _latex(cell.text)
                shown = f"\\textbf{{{text}}}" if cell.bold else text
                if cell.spread:
                    shown += f" {{\\small {_latex(cell.spread)}}}"
                cells.append(shown)
            lines.append(" & ".join(cells) + r" \\")
    lines += ["\\bottomrule", "\\end{tabular}", "\\begin{tablenotes}\\footnotesize"]
    lines += [f"\\item {_latex(note)}" for note in table.footnotes]
    lines += ["\\end{tablenotes}", "\\end{threeparttable}", "\\end{table}"]
    return "\n".join(lines) + "\n"


def table_to_markdown(table: ResultTable) -> str:
    """A table with its rule below; rows of several rules have a column for the rule."""
    has_rules = len(table.groups) > 1
    head = ["", *(["rule"] if has_rules else []), *table.columns]
    lines = [
        f"**{safe_markdown(table.caption)}**",
        "",
        "| " + " | ".join(safe_markdown(text) for text in head) + " |",
        "|" + "---|" * len(head),
    ]
    for _, rows in table.groups:
        for row in rows:
            cells = [safe_markdown(_row_name(row))]
            if has_rules:
                cells.append(safe_markdown(row.rule.label))
            for cell in row.cells:
                shown = f"**{cell.text}**" if cell.bold else cell.text
                cells.append(f"{shown} {cell.spread}".strip())
            lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *[f"- {safe_markdown(note)}" for note in table.footnotes]]
    return "\n".join(lines) + "\n"


def table_to_csv(table: ResultTable) -> str:
    """One line per row: name, rule, whether it was published, and for every metric its value, spread and bold."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    head = ["name", "rule", "published", "notes"]
    for column in table.columns:
        head += [column, f"{column} spread", f"{column} best"]
    writer.writerow(head)
    for _, rows in table.groups:
        for row in rows:
            fields: list[object] = [
                safe_cell(row.name),
                safe_cell(row.rule.label),
                row.published,
                safe_cell("; ".join(row.notes)),
            ]
            for cell in row.cells:
                value = "" if cell.value is None else repr(cell.value)
                fields += [value, cell.spread, cell.bold]
            writer.writerow(fields)
    return file.getvalue()


def table_to_html(table: ResultTable) -> str:
    """One offline page."""
    return render("table.html", table=table, row_name=_row_name) + "\n"


def _row_name(row: ResultRow) -> str:
    return f"{row.name} (published)" if row.published else row.name


def _latex(text: str) -> str:
    safe = safe_text(" ".join(text.split()))
    escaped = "".join(LATEX_SPECIAL.get(character, character) for character in safe)
    # After the end of a row LaTeX takes a bracket or an asterisk for an option of that end.
    return "{}" + escaped if escaped.startswith(("[", "*")) else escaped
