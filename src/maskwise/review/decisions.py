"""Decide about an item, take a decision back, and keep drafts.

The client makes the id of every decision and undo. A request that is repeated after a lost response finds its event in
the audit log and gets the same answer; nothing is counted twice.
"""

import hashlib
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from maskwise.errors import MaskwiseError
from maskwise.review import tables
from maskwise.review.audit_log import (
    Event,
    append_event,
    decode_criteria,
    decode_payload,
    decode_ratings,
    find_event,
    to_iso,
)
from maskwise.review.queue import Reviewer, free_slot, lease_slot, lock_slots
from maskwise.review.records import (
    DecidedPayload,
    DecisionDraft,
    DecisionFacts,
    EditedSample,
    NewDecision,
)

made = tables.decisions.c


class ReviewConflictError(MaskwiseError):
    """A decision that cannot be taken now: the item belongs to somebody else, or there is nothing to undo."""


def decide(
    connection: Connection,
    reviewer: Reviewer,
    decision: NewDecision,
    edited: EditedSample | None,
) -> bool:
    """Append a decision to the audit log; returns whether it was there already. edited: the sample after a fix."""
    sent = _hash_request(decision)
    # Locked before the log is read, so that a repeated request waits for the first.
    rows = lock_slots(connection, decision.item)
    event = find_event(connection, str(decision.id))
    if event is not None:
        is_same = event.kind == "decided" and decode_payload(event).sent == sent
        _check_replay(event, reviewer, "decided", is_same)
        return True
    slot = free_slot(rows, reviewer)
    if slot is None:
        raise ReviewConflictError(_why_not(rows, reviewer, decision.item))
    payload = DecidedPayload(
        slot=slot.slot,
        kind=slot.kind,
        verdict=decision.verdict,
        sent=sent,
        reason=decision.reason,
        note=decision.note,
        edit=edited,
        seconds=decision.seconds,
        ratings=decision.ratings,
        criteria=decision.criteria,
    )
    append_event(
        connection,
        "decided",
        payload,
        actor=reviewer.name,
        item=decision.item,
        id=str(decision.id),
    )
    discard_draft(connection, reviewer.name, decision.item)
    return False


def undo(
    connection: Connection,
    reviewer: Reviewer,
    id: str,
    *,
    decision: str | None,
    seconds: float,
) -> tuple[str, int, bool]:
    """Take back a decision, by default the reviewer's latest, and lease its item to the reviewer again.

    The content of the decision becomes the reviewer's draft. Returns the id of the decision, its item, and whether it
    was taken back before.
    """
    event = find_event(connection, id)
    if event is not None:
        payload = decode_payload(event) if event.kind == "undone" else {}
        undone = payload.get("decision", "")
        _check_replay(event, reviewer, "undone", decision in (None, undone))
        assert event.item is not None
        return undone, event.item, True
    row = _decision_to_undo(connection, reviewer.name, decision)
    slots = lock_slots(connection, row.item)
    slot = next((slot for slot in slots if slot.slot == row.slot), None)
    if row.verdict == "skip":
        # A skip gave its slot back; any free slot of the item will do.
        slot = free_slot(slots, reviewer)
    if slot is None:
        raise ReviewConflictError(
            f"item {row.item} cannot be given back: somebody else is reviewing it now"
        )
    append_event(
        connection,
        "undone",
        {"decision": row.id},
        actor=reviewer.name,
        item=row.item,
        id=id,
    )
    lease_slot(connection, reviewer, slot, seconds=seconds)
    save_draft(connection, reviewer.name, row.item, _to_draft(row))
    return row.id, row.item, False


def find_decision(connection: Connection, id: str) -> DecisionFacts:
    """A stored decision."""
    return _to_facts(connection.execute(_FIND_DECISION, {"id_": id}).one())


def list_decisions(
    connection: Connection, reviewer: str, *, before: int | None, limit: int
) -> list[DecisionFacts]:
    """A reviewer's decisions, latest first. before: only those with a smaller `seq`."""
    query = _DECISIONS.where(made.reviewer == reviewer)
    if before is not None:
        query = query.where(made.seq < before)
    rows = connection.execute(query.order_by(made.seq.desc()).limit(limit))
    return [_to_facts(row) for row in rows]


def count_decisions(connection: Connection, reviewer: str) -> int:
    """How many decisions of a reviewer count: neither undone nor skips."""
    return connection.execute(_COUNT_DECISIONS, {"me": reviewer}).scalar_one()


def has_decided(connection: Connection, reviewer: str, item: int) -> bool:
    """Whether a reviewer has ever decided about an item, and so has seen it; undone decisions count, too."""
    query = select(made.id).where(made.item == item, made.reviewer == reviewer)
    return connection.execute(query.limit(1)).first() is not None


# -- drafts


def save_draft(
    connection: Connection, reviewer: str, item: int, draft: DecisionDraft
) -> float:
    """Store a draft in place of the one before; returns the time."""
    now = time.time()
    body = msgspec.json.encode(draft).decode()
    mine = (tables.drafts.c.item == item, tables.drafts.c.reviewer == reviewer)
    # Update first: most drafts replace an earlier one, and neither database needs its own kind of upsert.
    changed = connection.execute(
        update(tables.drafts).where(*mine).values(at=now, body=body)
    )
    if not changed.rowcount:
        values = {"item": item, "reviewer": reviewer, "at": now, "body": body}
        connection.execute(insert(tables.drafts).values(**values))
    return now


def discard_draft(connection: Connection, reviewer: str, item: int) -> None:
    """Remove a draft, if there is one."""
    connection.execute(_DISCARD_DRAFT, {"item_": item, "me": reviewer})


def read_drafts(
    connection: Connection, reviewer: str, items: Sequence[int]
) -> dict[int, DecisionDraft]:
    """A reviewer's drafts about these items."""
    rows = connection.execute(_READ_DRAFTS, {"me": reviewer, "wanted": list(items)})
    return {row.item: msgspec.json.decode(row.body, type=DecisionDraft) for row in rows}


# -- inside


def _decision_to_undo(
    connection: Connection, reviewer: str, decision: str | None
) -> Any:
    query = select(tables.decisions).where(
        made.reviewer == reviewer, made.undone.is_(False)
    )
    if decision is not None:
        query = query.where(made.id == decision)
    row = connection.execute(
        query.order_by(made.seq.desc()).limit(1).with_for_update()
    ).first()
    if row is None:
        raise ReviewConflictError("there is no decision to undo")
    return row


def _to_facts(row: Any) -> DecisionFacts:
    return DecisionFacts(
        id=row.id,
        seq=row.seq,
        item=row.item,
        sample=row.sample,
        kind="adjudication" if row.kind == "adjudication" else "review",
        verdict=row.verdict,
        reason=row.reason,
        note=row.note,
        at=to_iso(row.at),
        undone=row.undone,
    )


def _to_draft(row: Any) -> DecisionDraft:
    edit = None
    if row.edit is not None:
        # A complete sample is a valid edit: every field is given.
        content = msgspec.json.decode(row.edit, type=EditedSample)
        edit = {
            "question": content.question,
            "answer": content.answer,
            "mask_type": content.mask_type,
            "targets": [
                {
                    "id": region.id,
                    "name": region.name,
                    "visible": region.visible,
                    "amodal": region.amodal,
                }
                for region in content.targets
            ],
        }
    draft = {
        "verdict": row.verdict,
        "reason": row.reason,
        "note": row.note,
        "edit": edit,
    }
    draft["seconds"] = row.seconds
    draft["ratings"] = decode_ratings(row.ratings)
    draft["criteria"] = decode_criteria(row.criteria)
    return msgspec.convert(draft, DecisionDraft)


def _hash_request(decision: NewDecision) -> str:
    # How many items come next is no part of the decision: a repeated request may ask for another number.
    content = msgspec.structs.replace(decision, next=0)
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:32]


def _check_replay(event: Event, reviewer: Reviewer, kind: str, same: bool) -> None:
    if event.actor != reviewer.name or event.kind != kind or not same:
        raise ReviewConflictError(
            f"the id {event.uuid} was used for another decision; make a new one"
        )


def _why_not(rows: Sequence[Any], reviewer: Reviewer, item: int) -> str:
    if any(row.holder == reviewer.name and row.done for row in rows):
        return f"you have already decided about item {item}; undo that decision first"
    return f"item {item} is not yours: its lease expired and somebody else took it, or it needs no decision"


# -- statements, made once: making one takes longer than running it

_DECISIONS = select(tables.decisions, tables.items.c.sample).join_from(
    tables.decisions, tables.items, made.item == tables.items.c.item
)
_FIND_DECISION = _DECISIONS.where(made.id == bindparam("id_"))
_COUNT_DECISIONS = (
    select(func.count())
    .select_from(tables.decisions)
    .where(
        made.reviewer == bindparam("me"), made.undone.is_(False), made.verdict != "skip"
    )
)
_DISCARD_DRAFT = delete(tables.drafts).where(
    tables.drafts.c.item == bindparam("item_"),
    tables.drafts.c.reviewer == bindparam("me"),
)
_READ_DRAFTS = select(tables.drafts.c.item, tables.drafts.c.body).where(
    tables.drafts.c.reviewer == bindparam("me"),
    tables.drafts.c.item.in_(bindparam("wanted", expanding=True)),
)
