"""A static site of runs: one table per dataset and protocol, with intervals; each row links to its report.

Runs share a table only if they were scored on the same questions (same manifest, same samples) under the same protocol
with the same options. Models that were given the ground truth or the answer come after the others, whatever their
values; before them come runs of which the protocol leaves out questions that it counts for others. Every pair of the
other runs is tested on gIoU, and each run has the set of ranks that the tests allow. Published results have a section
of their own and are never ranked with measured ones.
"""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from maskwise.errors import StoreError
from maskwise.registry import PROTOCOLS
from maskwise.report.charts import Axis, Bar, fraction_axis, make_bar
from maskwise.report.metric_labels import HEADLINE_METRICS, metric_label
from maskwise.report.protocol_order import protocol_role, states_mask_types
from maskwise.report.published_results import PublishedTable, read_published
from maskwise.report.ranking import count_left_out, rank_runs
from maskwise.report.render import render
from maskwise.report.rule_groups import (
    ResultRule,
    group_by_rule,
    mixed_rules_note,
    published_rule,
)
from maskwise.runs import Run
from maskwise.runs.files import write_errors
from maskwise.runs.schema import MetricValue, ProtocolScores, StatusCounts
from maskwise.runs.tables import MAIN_METRICS
from maskwise.store.atomic import PARTIAL, atomic_write

PAGE = "index.html"
DATA = "leaderboard.json"
REPORTS = "reports"
FORMAT = "maskwise leaderboard 4"


class LeaderboardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run under one protocol. report: its page, relative to the site.

    ranks: the first and the last rank that it may have (see `ranking`); None for a run that is not ranked. left_out:
    questions that the protocol leaves out of this run and counts for another.
    """

    model: str
    run: str
    tags: list[str]
    metrics: dict[str, MetricValue]
    counts: StatusCounts
    report: str
    ranks: tuple[int, int] | None = None
    left_out: int = 0

    @property
    def giou(self) -> MetricValue:
        """gIoU; undefined where the protocol fixes its value, as that of a run without any mask under `mmr`."""
        undefined = MetricValue(value=None, low=None, high=None, unit="fraction")
        return self.metrics.get("giou", undefined)


class LeaderboardTable(msgspec.Struct, frozen=True, kw_only=True):
    """Runs under one protocol with one set of options, best gIoU first. Runs with tags come after those without: first
    the partial and the teacher-forced ones, then models that were given the ground truth. role: official, recommended
    or empty. detectable: the smallest difference in gIoU between two such runs that a test at 0.05 finds with a power
    of 0.8; None if unknown.
    """

    protocol: str
    role: str
    options: dict[str, Any]
    rule: str
    cite: str
    rows: list[LeaderboardRow]
    detectable: float | None = None


class LeaderboardDataset(msgspec.Struct, frozen=True, kw_only=True):
    """All tables on one set of questions. all_samples: questions of the whole dataset; subset: how they were drawn."""

    dataset: str
    sha256: str
    samples: int
    all_samples: int | None
    images: int
    subset: str
    tables: list[LeaderboardTable]


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """What the site shows; its JSON form."""

    format: str
    datasets: list[LeaderboardDataset]
    published: list[PublishedTable]


def make_leaderboard(runs: Sequence[Run]) -> Leaderboard:
    """The tables of runs; a run given twice counts once. Datasets are sorted by name, then by hash."""
    unique = {report_name(run): run for run in runs}
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for name in sorted(unique):
        run = unique[name]
        groups.setdefault(
            (run.info.dataset.name, run.info.dataset.sha256, _hash_ids(run)), []
        ).append(run)
    # The whole dataset comes before its subsets.
    keys = sorted(
        groups, key=lambda key: (*key[:2], -groups[key][0].info.dataset.samples, key[2])
    )
    datasets = [_dataset_tables(groups[key]) for key in keys]
    return Leaderboard(format=FORMAT, datasets=datasets, published=read_published())


def write_site(
    folder: str | Path,
    runs: Sequence[Run],
    write_report: Callable[[Run], str],
    *,
    track: Callable[[Sequence[Run]], Iterable[Run]] = iter,
) -> Leaderboard:
    """Write index.html, leaderboard.json and a report of every run. An existing site is replaced after the last report
    is written.

    write_report: the page of a run. The reports are written again, so that they agree with the tables.
    """
    out = Path(folder)
    leaderboard = make_leaderboard(runs)
    reports = out / (REPORTS + PARTIAL)
    with write_errors(out):
        _check_place(out)
        _remove(reports)
        reports.mkdir(parents=True)
    unique = {report_name(run): run for run in runs}
    for run in track([unique[name] for name in sorted(unique)]):
        page = write_report(run)
        with write_errors(out):
            (reports / report_name(run)).write_text(page, encoding="utf-8")
    with write_errors(out):
        # The data file comes first: a folder that has it is known as a site, even if writing is interrupted.
        _write(out / DATA, leaderboard_to_json(leaderboard))
        _remove(out / REPORTS)
        reports.replace(out / REPORTS)
        _write(out / PAGE, leaderboard_to_html(leaderboard).encode())
    return leaderboard


def leaderboard_to_json(leaderboard: Leaderboard) -> bytes:
    """The JSON form, indented."""
    return msgspec.json.format(msgspec.json.encode(leaderboard), indent=2) + b"\n"


def report_name(run: Run) -> str:
    """The file name of a run's report: readable, and different for different runs."""
    digest = hashlib.sha256(msgspec.json.encode(run.info)).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', run.name).strip('-')[:40] or 'run'}-{digest}.html"


def _check_place(out: Path) -> None:
    """Refuse to replace a folder that is not a site."""
    known = (out / DATA).is_file() or not out.is_dir()
    if not known and any(not entry.name.endswith(PARTIAL) for entry in out.iterdir()):
        raise StoreError(
            f"{out} holds something that is not a leaderboard; choose another folder"
        )


def _remove(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)


def _write(path: Path, content: bytes) -> None:
    with atomic_write(path) as file:
        file.write(content)


def _hash_ids(run: Run) -> str:
    """Which samples a run was scored on."""
    return hashlib.sha256(msgspec.json.encode(run.ids)).hexdigest()


def _dataset_tables(runs: Sequence[Run]) -> LeaderboardDataset:
    first = runs[0].info.dataset
    rows: dict[tuple[int, str, str], list[tuple[Run, ProtocolScores]]] = {}
    order = list(dict.fromkeys([first.protocol, *PROTOCOLS.built_in]))
    for run in runs:
        for name, result in run.scores.protocols.items():
            place = order.index(name) if name in order else len(order)
            options = msgspec.json.encode(result.options, order="sorted").decode()
            rows.setdefault((place, name, options), []).append((run, result))
    return LeaderboardDataset(
        dataset=first.name,
        sha256=first.sha256,
        samples=first.samples,
        all_samples=first.all_samples,
        images=first.images,
        subset=_describe_subset(runs[0]),
        tables=[_table(key[1], rows[key]) for key in sorted(rows)],
    )


def _table(
    protocol: str, scored_runs: Sequence[tuple[Run, ProtocolScores]]
) -> LeaderboardTable:
    result = scored_runs[0][1]
    runs = [run for run, _ in scored_runs]
    left_out = count_left_out(runs, protocol)
    rows = [
        _row(run, scores, count)
        for (run, scores), count in zip(scored_runs, left_out, strict=True)
    ]
    # Only runs that answered the same questions by themselves are ranked.
    ranked = [item for item, row in enumerate(rows) if not row.tags]
    ranking = rank_runs([runs[item] for item in ranked], protocol)
    if ranking.ranks is not None:
        for item, ranks in zip(ranked, ranking.ranks, strict=True):
            rows[item] = msgspec.structs.replace(rows[item], ranks=ranks)
    return LeaderboardTable(
        protocol=protocol,
        role=protocol_role(scored_runs[0][0], protocol),
        options=result.options,
        rule=result.rule,
        cite=result.cite,
        rows=sorted(rows, key=_sort_key),
        detectable=ranking.detectable,
    )


def _row(run: Run, result: ProtocolScores, left_out: int) -> LeaderboardRow:
    wanted = [
        name for name in (*MAIN_METRICS, *HEADLINE_METRICS) if name in result.metrics
    ]
    shown = [
        name
        for name in wanted
        if name != "mask_type_accuracy" or states_mask_types(run)
    ]
    return LeaderboardRow(
        model=run.model_name,
        run=run.name,
        tags=_tags(run, left_out),
        metrics={
            name: result.metrics[name]
            for name in shown
            if not result.metrics[name].gated
        },
        counts=result.counts,
        report=f"{REPORTS}/{report_name(run)}",
        left_out=left_out,
    )


def _sort_key(row: LeaderboardRow) -> tuple[bool, bool, bool, float, str]:
    value = row.giou.value
    if value is None and "cgf1" in row.metrics:
        value = row.metrics["cgf1"].value
    return (
        KNOWS in row.tags,
        FORCED in row.tags,
        row.left_out > 0,
        -value if value is not None else 1.0,
        row.report,
    )


KNOWS = "given the ground truth"
FORCED = "teacher-forced"


def _tags(run: Run, left_out: int) -> list[str]:
    """Why a run is not ranked with the others."""
    tags = []
    if run.uses_ground_truth:
        tags.append(KNOWS)
    if run.teacher_forced:
        tags.append(FORCED)
    if left_out:
        questions = "question" if left_out == 1 else "questions"
        tags.append(f"leaves out {left_out:,} {questions} that count for other runs")
    return tags


def _describe_subset(run: Run) -> str:
    subset = run.subset
    return (
        "" if subset is None else f"{subset.limit} images drawn with seed {subset.seed}"
    )


# -- the page ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableView:
    """A table to be drawn: the columns of metrics, and for every row the bar of its gIoU."""

    table: LeaderboardTable
    columns: list[tuple[str, str]]
    bars: list[Bar | None]
    axis: Axis


def leaderboard_to_html(leaderboard: Leaderboard) -> str:
    """One offline page; links lead to the reports beside it."""
    datasets = [
        (dataset, [_view(table) for table in dataset.tables])
        for dataset in leaderboard.datasets
    ]
    names = {dataset.dataset.split(" ")[0] for dataset in leaderboard.datasets}
    return render(
        "leaderboard.html",
        script="leaderboard.js",
        datasets=datasets,
        runs=len(
            {
                row.report
                for dataset in leaderboard.datasets
                for table in dataset.tables
                for row in table.rows
            }
        ),
        published=[
            (table, table.benchmark in names, _published_groups(table))
            for table in leaderboard.published
        ],
    )


@dataclass(frozen=True)
class PublishedGroups:
    """A published table by rule: the note about its rules, and for each rule its systems, each with its values and how
    sure we are that they follow the rule.
    """

    note: str
    groups: list[tuple[ResultRule, list[tuple[str, list[str], str]]]]


def _published_groups(table: PublishedTable) -> PublishedGroups:
    rows = []
    for name, cells in table.cells:
        rule = published_rule(table, name)
        rows.append((rule, (name, cells, rule.sure)))
    note = mixed_rules_note([rule for rule, _ in rows])
    return PublishedGroups(note, group_by_rule(rows))


def _view(table: LeaderboardTable) -> TableView:
    axis = fraction_axis(row.giou for row in table.rows)
    known = [
        name
        for name in (*MAIN_METRICS, *HEADLINE_METRICS)
        if any(
            name in row.metrics and row.metrics[name].value is not None
            for row in table.rows
        )
    ]
    columns = [(name, metric_label(name).label) for name in known]
    return TableView(
        table,
        columns,
        [make_bar(row.giou, axis) for row in table.rows],
        axis,
    )
