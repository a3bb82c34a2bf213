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
from maskwise.review.audit_log import decode_edit, to_iso
from maskwise.review.consensus import Opinion, agree, mask_ious
from maskwise.review.reasons import REJECT_REASONS, ReasonTitle
from maskwise.review.records import VERDICTS, ControlAnswer

HOUR = 3600.0


class ReviewProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Items by status. `items` has them all, control items included; the others leave control items out."""

    items: int
    open: int
    accepted: int
    fixed: int
    rejected: int
    disputed: int
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
        reviewers=_reviewer_stats(connection, rows, controls),
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
        select(items.status, func.count().label("found"))
        .where(items.control.is_(None))
        .group_by(items.status)
    )
    found = {row.status: row.found for row in connection.execute(query)}
    return ReviewProgress(
        items=sum(found.values()) + controls,
        open=found.get("open", 0),
        accepted=found.get("accepted", 0),
        fixed=found.get("fixed", 0),
        rejected=found.get("rejected", 0),
        disputed=found.get("disputed", 0),
        decisions=decisions,
        controls=controls,
    )


def _throughput(rows: Sequence[Any]) -> list[HourCount]:
    """Decisions per hour; hours without a decision are left out."""
    hours = Counter(math.floor(row.at / HOUR) for row in rows)
    return [
        HourCount(hour=to_iso(hour * HOUR), decisions=count)
        for hour, count in sorted(hours.items())
    ]


def _reviewer_stats(
    connection: Connection, rows: Sequence[Any], controls: Mapping[int, ControlAnswer]
) -> list[ReviewerStats]:
    names = tables.reviewers.c
    by_name = defaultdict(list)
    for row in rows:
        by_name[row.reviewer].append(row)
    return [
        _one_reviewer(name, role, by_name[name], controls)
        for name, role in connection.execute(
            select(names.name, names.role).order_by(names.name)
        )
    ]


def _one_reviewer(
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
        **{verdict: verdicts[verdict] for verdict in VERDICTS},
        undone=len(rows) - len(valid),
        seconds_median=statistics.median(seconds) if seconds else None,
        last=to_iso(rows[-1].at) if rows else None,
        controls=_control_accuracy(valid, controls),
    )


def _control_accuracy(
    rows: Sequence[Any], controls: Mapping[int, ControlAnswer]
) -> ControlAccuracy:
    """A control item is right if the decision agrees with the known answer, as two reviews would."""
    right = [
        agree(
            Opinion(row.id, row.verdict, decode_edit(row.edit)),
            Opinion("", controls[row.item].verdict, controls[row.item].edit),
        )
        for row in rows
        if row.kind == "control" and row.verdict != "skip"
    ]
    accuracy = sum(right) / len(right) if right else None
    return ControlAccuracy(seen=len(right), right=sum(right), accuracy=accuracy)


def _agreement(rows: Sequence[Any]) -> AgreementStats:
    """Agreement of the reviews, before adjudication."""
    by_item: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        by_item[row.item].append(row)
    double = [found for found in by_item.values() if len(found) > 1]
    by_pair: dict[tuple[str, str], list[tuple[Any, Any]]] = defaultdict(list)
    for found in double:
        for one, two in itertools.combinations(
            sorted(found, key=lambda row: str(row.reviewer)), 2
        ):
            by_pair[one.reviewer, two.reviewer].append((one, two))
    pairs = [_pair_agreement(*names, found) for names, found in sorted(by_pair.items())]
    masks = sum(pair.masks for pair in pairs)
    return AgreementStats(
        items=len(double),
        equal=sum(len({row.verdict for row in found}) == 1 for found in double),
        alpha=krippendorff_alpha([[row.verdict for row in found] for found in double]),
        pairs=pairs,
        mask_iou=sum((pair.mask_iou or 0.0) * pair.masks for pair in pairs) / masks
        if masks
        else None,
        masks=masks,
    )


def _pair_agreement(a: str, b: str, rows: Sequence[tuple[Any, Any]]) -> PairAgreement:
    verdicts = [(one.verdict, two.verdict) for one, two in rows]
    ious = [iou for one, two in rows for iou in _edited_ious(one, two)]
    return PairAgreement(
        a=a,
        b=b,
        items=len(rows),
        equal=sum(one == two for one, two in verdicts),
        kappa=cohen_kappa(verdicts),
        mask_iou=statistics.fmean(ious) if ious else None,
        masks=len(ious),
    )


def _edited_ious(one: Any, two: Any) -> list[float]:
    """IoU of the masks of two fixes; nothing where a reviewer changed nothing."""
    first = decode_edit(one.edit)
    second = decode_edit(two.edit)
    return [] if first is None or second is None else mask_ious(first, second)


def _reasons(rows: Iterable[Any]) -> list[ReasonCount]:
    counts = Counter(row.reason for row in rows if row.verdict == "reject")
    return [
        ReasonCount(code=code, title=REJECT_REASONS.get(code, code), count=count)
        for code, count in counts.most_common()
    ]
