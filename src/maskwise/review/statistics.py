"""What the owner sees: progress, throughput, reviewers with their control items, agreement, reject reasons."""

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, func, select

from maskwise.review import tables
from maskwise.review.agreement import cohen_kappa, krippendorff_alpha
from maskwise.review.audit_log import decode_edit, decode_ratings, to_iso
from maskwise.review.consensus import Opinion, agree, mask_ious
from maskwise.review.reasons import REJECT_REASONS, ReasonTitle
from maskwise.review.records import JUDGED, VERDICTS, ControlAnswer

HOUR = 3600.0
"""Seconds."""


class ReviewProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Items by status. `items` has them all, control items included; the others leave control items out. `added`: how
    many of the items reviewers added.
    """

    items: int
    open: int
    accepted: int
    fixed: int
    rejected: int
    disputed: int
    judged: int
    added: int
    withdrawn: int
    decisions: int
    controls: int


class HourCount(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions within an hour."""

    hour: str
    decisions: int


class ControlAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """How a reviewer decided about control items; accuracy is null before the first."""

    seen: int
    right: int
    accuracy: float | None


class ReviewerStats(msgspec.Struct, frozen=True, kw_only=True):
    """One reviewer's decisions. seconds_median: time per decision, null where it is not known."""

    name: str
    role: str
    decisions: int
    accept: int
    fix: int
    reject: int
    skip: int
    undone: int
    seconds_median: float | None
    last: str | None
    controls: ControlAccuracy


class PairAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two reviewers on the items that both decided. equal: with the same verdict. masks: pairs that both edited."""

    a: str
    b: str
    items: int
    equal: int
    kappa: float | None
    mask_iou: float | None
    masks: int


class AgreementStats(msgspec.Struct, frozen=True, kw_only=True):
    """All double reviews together, and each pair of reviewers."""

    items: int
    equal: int
    alpha: float | None
    pairs: list[PairAgreement]
    mask_iou: float | None
    masks: int


class ReasonCount(ReasonTitle, frozen=True, kw_only=True):
    """How often a reject reason was given."""

    count: int


class ReviewStats(msgspec.Struct, frozen=True, kw_only=True):
    """Everything on the owner's page."""

    progress: ReviewProgress
    throughput: list[HourCount]
    reviewers: list[ReviewerStats]
    agreement: AgreementStats
    reasons: list[ReasonCount]
    double_share: float


def compute_review_stats(connection: Connection) -> ReviewStats:
    """The statistics of a review, from the tables."""
    made = tables.decisions.c
    rows = connection.execute(select(tables.decisions).order_by(made.seq)).all()
    counted = [row for row in rows if not row.undone and row.verdict != "skip"]
    controls = _controls(connection)
    return ReviewStats(
        progress=_progress(connection, len(counted), len(controls)),
        throughput=_throughput(counted),
        reviewers=_all_reviewer_stats(connection, rows, controls),
        agreement=_agreement([row for row in counted if row.kind == "review"]),
        reasons=_reasons(counted),
        double_share=connection.execute(
            select(tables.project.c.double_share)
        ).scalar_one(),
    )


def _controls(connection: Connection) -> dict[int, ControlAnswer]:
    items = tables.items.c
    query = select(items.item, items.control).where(items.control.is_not(None))
    return {
        row.item: msgspec.json.decode(row.control, type=ControlAnswer)
        for row in connection.execute(query)
    }


def _progress(connection: Connection, decisions: int, controls: int) -> ReviewProgress:
    items = tables.items.c
    query = (
        select(items.status, func.count().label("items"))
        .where(items.control.is_(None))
        .group_by(items.status)
    )
    counts = {row.status: row.items for row in connection.execute(query)}
    return ReviewProgress(
        items=sum(counts.values()) + controls,
        open=counts.get("open", 0),
        accepted=counts.get("accepted", 0),
        fixed=counts.get("fixed", 0),
        rejected=counts.get("rejected", 0),
        disputed=counts.get("disputed", 0),
        judged=counts.get(JUDGED, 0),
        added=_count_added(connection),
        withdrawn=counts.get("withdrawn", 0),
        decisions=decisions,
        controls=controls,
    )


def _count_added(connection: Connection) -> int:
    """Questions that reviewers added and did not withdraw."""
    items = tables.items.c
    query = select(func.count()).where(
        items.added.is_not(None), items.status != "withdrawn"
    )
    return connection.execute(query).scalar_one()


def _throughput(rows: Sequence[Any]) -> list[HourCount]:
    """Decisions per hour; hours without a decision are left out."""
    hours = Counter(math.floor(row.at / HOUR) for row in rows)
    return [
        HourCount(hour=to_iso(hour * HOUR), decisions=count)
        for hour, count in sorted(hours.items())
    ]


def _all_reviewer_stats(
    connection: Connection, rows: Sequence[Any], controls: Mapping[int, ControlAnswer]
) -> list[ReviewerStats]:
    """The statistics of every reviewer, by name; also of those who have not decided anything."""
    columns = tables.reviewers.c
    rows_by_name = defaultdict(list)
    for row in rows:
        rows_by_name[row.reviewer].append(row)
    people = connection.execute(
        select(columns.name, columns.role).order_by(columns.name)
    )
    return [
        _reviewer_stats(name, role, rows_by_name[name], controls)
        for name, role in people
    ]


def _reviewer_stats(
    name: str, role: str, rows: Sequence[Any], controls: Mapping[int, ControlAnswer]
) -> ReviewerStats:
    valid = [row for row in rows if not row.undone]
    verdicts = Counter(row.verdict for row in valid)
    seconds = [
        row.seconds
        for row in valid
        if row.seconds is not None and row.verdict != "skip"
    ]
    return ReviewerStats(
        name=name,
        role=role,
        decisions=len(valid) - verdicts["skip"],
        **{verdict: verdicts[verdict] for verdict in VERDICTS["check"]},
        undone=len(rows) - len(valid),
        seconds_median=statistics.median(seconds) if seconds else None,
        last=to_iso(rows[-1].at) if rows else None,
        controls=_control_accuracy(valid, controls),
    )


def _control_accuracy(
    rows: Sequence[Any], controls: Mapping[int, ControlAnswer]
) -> ControlAccuracy:
    """A control item is right if the decision agrees with the known answer, as two reviews would."""
    seen = 0
    right = 0
    for row in rows:
        if row.kind != "control" or row.verdict == "skip":
            continue
        known = controls[row.item]
        answer = Opinion("", known.verdict, known.edit, known.ratings)
        ratings = decode_ratings(row.ratings)
        decision = Opinion(row.id, row.verdict, decode_edit(row.edit), ratings)
        seen += 1
        right += agree(decision, answer)
    accuracy = right / seen if seen else None
    return ControlAccuracy(seen=seen, right=right, accuracy=accuracy)


def _agreement(rows: Sequence[Any]) -> AgreementStats:
    """Agreement of the reviews, before adjudication."""
    rows_by_item: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        rows_by_item[row.item].append(row)
    double = [reviews for reviews in rows_by_item.values() if len(reviews) > 1]
    verdicts = [[row.verdict for row in reviews] for reviews in double]
    pairs = _pair_agreements(double)
    masks = sum(pair.masks for pair in pairs)
    # The mean over masks, not over pairs: pairs with more masks count more.
    iou_sum = sum((pair.mask_iou or 0.0) * pair.masks for pair in pairs)
    return AgreementStats(
        items=len(double),
        equal=sum(len(set(given)) == 1 for given in verdicts),
        alpha=krippendorff_alpha(verdicts),
        pairs=pairs,
        mask_iou=iou_sum / masks if masks else None,
        masks=masks,
    )


def _pair_agreements(double: Iterable[Sequence[Any]]) -> list[PairAgreement]:
    """Agreement of every two reviewers who decided about the same items. double: the reviews of each item."""
    rows_by_pair: dict[tuple[str, str], list[tuple[Any, Any]]] = defaultdict(list)
    for reviews in double:
        # In the order of names, so that (a, b) and (b, a) are one pair.
        by_name = sorted(reviews, key=lambda row: str(row.reviewer))
        for first, second in itertools.combinations(by_name, 2):
            rows_by_pair[first.reviewer, second.reviewer].append((first, second))
    return [
        _pair_agreement(a, b, rows) for (a, b), rows in sorted(rows_by_pair.items())
    ]


def _pair_agreement(a: str, b: str, rows: Sequence[tuple[Any, Any]]) -> PairAgreement:
    verdicts = [(first.verdict, second.verdict) for first, second in rows]
    ious: list[float] = []
    for first, second in rows:
        ious += _edited_ious(first, second)
    return PairAgreement(
        a=a,
        b=b,
        items=len(rows),
        equal=sum(first == second for first, second in verdicts),
        kappa=cohen_kappa(verdicts),
        mask_iou=statistics.fmean(ious) if ious else None,
        masks=len(ious),
    )


def _edited_ious(first: Any, second: Any) -> list[float]:
    """IoU of the masks of two fixes; nothing where a reviewer changed nothing."""
    first_edit = decode_edit(first.edit)
    second_edit = decode_edit(second.edit)
    if first_edit is None or second_edit is None:
        return []
    return mask_ious(first_edit, second_edit)


def _reasons(rows: Iterable[Any]) -> list[ReasonCount]:
    counts = Counter(row.reason for row in rows if row.verdict == "reject")
    return [
        ReasonCount(code=code, title=REJECT_REASONS.get(code, code), count=count)
        for code, count in counts.most_common()
    ]
