"""Begin the review of predictions: items in an order, and on sides, that nobody can guess; control items.

The order and the sides are drawn at random and written to the audit log, which only the owner sees. Numbers of items
are positions in that order, so that they say nothing about the runs.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from maskwise.errors import MaskwiseError, RecordError, StoreError, UnknownNameError
from maskwise.review import tables
from maskwise.review.audit_log import (
    analyze_tables,
    append_event,
    decode_criteria,
    decode_ratings,
)
from maskwise.review.criteria import CRITERIA
from maskwise.review.judged_runs import JudgedItem, JudgedRuns
from maskwise.review.project import ITEMS_PER_EVENT, read_lines
from maskwise.review.records import ControlAnswer, Ratings, Verdict

MAX_ITEMS = 200_000
"""Judgments that one review asks for: a year of work for ten people."""


class JudgmentControl(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A line of a file of control items: which of two runs is better, or the ratings of one, for a question."""

    sample: str
    better: str | None = None
    worse: str | None = None
    run: str | None = None
    ratings: Ratings = {}


class KnownJudgment(msgspec.Struct, frozen=True, kw_only=True):
    """A control item: what is shown, and the right answer."""

    item: JudgedItem
    answer: ControlAnswer


class Judgment(msgspec.Struct, frozen=True, kw_only=True):
    """A judgment that counts. row: of the sample. left, right: numbers of runs; right is None where one was rated."""

    item: int
    row: int
    left: int
    right: int | None
    reviewer: str
    verdict: Verdict
    ratings: dict[str, int]
    criteria: list[str]
    note: str
    seconds: float | None


@dataclass(frozen=True)
class JudgmentOptions:
    """double_share: share of the items that two people judge. samples: questions drawn at random, None for all.
    controls: items whose answer is known.
    """

    double_share: float = 0.0
    samples: int | None = None
    controls: Sequence[KnownJudgment] = ()


def create_judgments(
    connection: Connection, runs: JudgedRuns, options: JudgmentOptions
) -> None:
    """Write the beginning of the audit log."""
    # The system's generator: reviewers who have the runs must not be able to repeat it.
    chance = random.SystemRandom()
    rows = list(range(len(runs.dataset)))
    if options.samples is not None and options.samples < len(rows):
        rows = sorted(chance.sample(rows, options.samples))
    items, identical = runs.list_items(rows)
    if not items:
        raise StoreError("the runs predict the same everywhere: nothing to compare")
    if len(items) > MAX_ITEMS:
        raise StoreError(
            f"{len(items):,} judgments are too many to ask for; draw questions with --samples"
        )
    known = {control.item: control.answer for control in options.controls}
    items = [item for item in items if _both_sides(item).isdisjoint(known)]
    everything = [*items, *known]
    chance.shuffle(everything)
    facts = {
        "hash": runs.hash,
        "name": runs.dataset.name,
        "path": str(runs.dataset.path.absolute()),
        "samples": len(rows),
        "double_share": options.double_share,
        "mode": runs.mode,
    }
    append_event(connection, "project_created", facts)
    append_event(connection, "runs_added", _run_rows(runs, identical))
    lines = []
    answers = {}
    for number, item in enumerate(everything):
        shown = item
        answer = known.get(item)
        if item.right is not None and chance.random() < 0.5:
            shown = JudgedItem(item.row, item.right, item.left)
            answer = None if answer is None else _turn(answer)
        if answer is not None:
            answers[number] = answer
        needed = 2 if chance.random() < options.double_share else 1
        sample = f"{runs.dataset.samples.id[item.row]}/{number}"
        line = {"item": number, "sample": sample, "place": number, "needed": needed}
        lines.append(line | shown._asdict())
    for first in range(0, len(lines), ITEMS_PER_EVENT):
        append_event(connection, "items_added", lines[first : first + ITEMS_PER_EVENT])
    if answers:
        append_event(connection, "controls_added", answers)
    analyze_tables(connection)


def read_judgment_controls(path: Path, runs: JudgedRuns) -> list[KnownJudgment]:
    """The control items of a JSONL file: {"sample": ID, "better": RUN, "worse": RUN}, or {"sample": ID, "run": RUN,
    "ratings": {...}} where one prediction is rated.
    """
    controls = []
    for number, line in read_lines(path):
        try:
            control = msgspec.json.decode(line, type=JudgmentControl)
            controls.append(_to_known(control, runs))
        except (msgspec.DecodeError, UnicodeDecodeError, MaskwiseError) as error:
            raise RecordError(f"{path}, line {number}: {error}") from None
    return controls


def read_judgments(connection: Connection) -> list[Judgment]:
    """All judgments that count, oldest first: neither undone, nor skips, nor of control items."""
    made = tables.decisions.c
    items = tables.items.c
    query = (
        select(tables.decisions, items.row, items.left, items.right)
        .join_from(tables.decisions, tables.items, made.item == items.item)
        .where(made.undone.is_(False), made.verdict != "skip", made.kind == "review")
        .order_by(made.seq)
    )
    return [
        Judgment(
            item=row.item,
            row=row.row,
            left=row.left,
            right=row.right,
            reviewer=row.reviewer,
            verdict=row.verdict,
            ratings=decode_ratings(row.ratings),
            criteria=decode_criteria(row.criteria),
            note=row.note,
            seconds=row.seconds,
        )
        for row in connection.execute(query)
    ]


def _to_known(control: JudgmentControl, runs: JudgedRuns) -> KnownJudgment:
    if control.sample not in runs.dataset.samples.row:
        raise RecordError(f"the runs have no sample {control.sample!r}")
    row = runs.dataset.samples.row[control.sample]
    if runs.mode == "compare":
        if control.better is None or control.worse is None:
            raise RecordError("expected the fields sample, better and worse")
        better = _number(control.better, runs)
        worse = _number(control.worse, runs)
        if better == worse:
            raise RecordError("`better` and `worse` name the same run")
        item = JudgedItem(row, better, worse)
        return KnownJudgment(item=item, answer=ControlAnswer(verdict="left"))
    if control.run is None or not control.ratings:
        raise RecordError("expected the fields sample, run and ratings")
    for name in control.ratings:
        if name not in CRITERIA:
            raise UnknownNameError("criterion", name, CRITERIA)
    item = JudgedItem(row, _number(control.run, runs), None)
    answer = ControlAnswer(verdict="rated", ratings=control.ratings)
    return KnownJudgment(item=item, answer=answer)


def _number(name: str, runs: JudgedRuns) -> int:
    if name not in runs.names:
        raise UnknownNameError("run", name, runs.names)
    return runs.names.index(name)


def _both_sides(item: JudgedItem) -> set[JudgedItem]:
    """The item, and the same with its sides exchanged."""
    if item.right is None:
        return {item}
    return {item, JudgedItem(item.row, item.right, item.left)}


def _turn(answer: ControlAnswer) -> ControlAnswer:
    """The same answer where the sides are exchanged."""
    if answer.verdict == "left":
        return msgspec.structs.replace(answer, verdict="right")
    return answer


def _run_rows(runs: JudgedRuns, identical: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {
            "number": number,
            "name": name,
            "folder": "" if run.folder is None else str(run.folder.absolute()),
            "identical": identical[number],
        }
        for number, (name, run) in enumerate(zip(runs.names, runs.runs))
    ]
