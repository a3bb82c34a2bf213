"""The audit log: append an event, and apply it to the tables that follow from the log.

Appending and rebuilding use the same function, `apply_event`, so that the state always is what the log says. Kinds of
events: `project_created`, `runs_added`, `items_added`, `controls_added`, `reviewer_added`, `decided`, `undone`,
`sample_added`, `sample_withdrawn`.
"""

import contextlib
import datetime
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import (
    Connection,
    Row,
    and_,
    bindparam,
    create_engine,
    delete,
    func,
    insert,
    select,
    text,
    update,
)

from maskwise.errors import MaskwiseError
from maskwise.review import tables
from maskwise.review.consensus import Opinion, settle
from maskwise.review.database import DamagedReviewError
from maskwise.review.records import (
    STATUS_OF,
    AddedSample,
    ControlAnswer,
    DecidedPayload,
    EditedSample,
)

BATCH = 500
"""Events that `read_events` takes from the database at once."""


class Event(NamedTuple):
    """One line of the audit log."""

    seq: int
    uuid: str
    at: float
    kind: str
    actor: str
    item: int | None
    payload: str


def to_iso(seconds: float) -> str:
    """A time (seconds since 1970) as ISO 8601 in UTC, with microseconds."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def append_event(
    connection: Connection,
    kind: str,
    payload: object,
    *,
    actor: str = "",
    item: int | None = None,
    id: str | None = None,
) -> Event:
    """Append an event and apply it, in the transaction of the connection."""
    values: dict[str, Any] = {
        "uuid": id or str(uuid.uuid4()),
        "at": time.time(),
        "kind": kind,
        "actor": actor,
        "item": item,
        "payload": msgspec.json.encode(payload).decode(),
    }
    key = connection.execute(_INSERT_EVENT, values).inserted_primary_key
    assert key is not None
    event = Event(seq=key[0], **values)
    apply_event(connection, event)
    return event


def find_event(connection: Connection, id: str) -> Event | None:
    """The event with this UUID."""
    row = connection.execute(_FIND_EVENT, {"id": id}).first()
    return None if row is None else Event(*row)


def read_events(connection: Connection, after: int = 0) -> Iterator[Event]:
    """All events with a larger number than `after`, in order."""
    while True:
        events = page_of_events(connection, after, BATCH)
        yield from events
        if len(events) < BATCH:
            return
        after = events[-1].seq


def page_of_events(connection: Connection, after: int, limit: int) -> list[Event]:
    """At most `limit` events with a larger number than `after`, in order."""
    seq = tables.events.c.seq
    query = select(tables.events).where(seq > after).order_by(seq).limit(limit)
    return [Event(*row) for row in connection.execute(query)]


def rebuild_state(connection: Connection) -> int:
    """Make the derived tables again from the audit log; returns the number of events. Leases are dropped.

    The events are applied to tables in memory, which are then copied: on a database server that saves a round trip per
    statement.
    """
    if connection.dialect.name != "sqlite":
        # No decision may come between reading the log and writing the tables.
        connection.execute(text("LOCK TABLE slots, events IN EXCLUSIVE MODE"))
    memory = create_engine("sqlite://")
    with contextlib.closing(memory.connect()) as scratch:
        tables.metadata.create_all(scratch, tables=tables.DERIVED)
        count = 0
        for event in read_events(connection):
            apply_event(scratch, event)
            count += 1
        for table in tables.DERIVED:
            connection.execute(delete(table))
            for rows in scratch.execute(select(table)).mappings().partitions(BATCH):
                connection.execute(insert(table), [dict(row) for row in rows])
    analyze_tables(connection)
    memory.dispose()
    return count


def analyze_tables(connection: Connection) -> None:
    """Tell PostgreSQL how large the tables are that were just filled.

    Without these statistics it expects few rows, and reads and sorts the whole queue for every item that it hands out,
    until its autovacuum comes by after a minute. The plans of SQLite do not depend on them.
    """
    if connection.dialect.name != "sqlite":
        connection.execute(text("ANALYZE items, slots, decisions"))


def apply_event(connection: Connection, event: Event) -> None:
    """Change the derived tables as an event says; DamagedReviewError where it says nothing valid."""
    if event.kind not in _APPLY:
        raise DamagedReviewError(_damage(event, "unknown kind"))
    _APPLY[event.kind](connection, event)


def check_event(event: Event) -> None:
    """DamagedReviewError where an event is not one that this program writes."""
    if event.kind not in PAYLOADS:
        raise DamagedReviewError(_damage(event, "unknown kind"))
    payload = decode_payload(event)
    if event.kind in ABOUT_AN_ITEM and event.item is None:
        raise DamagedReviewError(_damage(event, "it names no item"))
    if event.kind == "undone" and "decision" not in payload:
        raise DamagedReviewError(_damage(event, "it names no decision"))


def decode_payload(event: Event) -> Any:
    """The payload of an event, of the type that its kind has in PAYLOADS; DamagedReviewError for any other."""
    try:
        return msgspec.json.decode(event.payload, type=PAYLOADS[event.kind])
    except (msgspec.DecodeError, UnicodeError, MaskwiseError, TypeError) as error:
        raise DamagedReviewError(_damage(event, str(error))) from None


def _damage(event: Event, problem: str) -> str:
    return f"event {event.seq} ({event.kind!r}) of the audit log is damaged: {problem}"


# -- one function per kind


def _create_project(connection: Connection, event: Event) -> None:
    connection.execute(insert(tables.project).values(**decode_payload(event)))


def _add_runs(connection: Connection, event: Event) -> None:
    connection.execute(insert(tables.runs), decode_payload(event))


def _add_items(connection: Connection, event: Event) -> None:
    added: list[dict[str, Any]] = decode_payload(event)
    undecided = {"status": "open", "final": None, "control": None}
    # Only items that an audit doubts have the field.
    rows = [{"doubts": None} | item | undecided for item in added]
    connection.execute(insert(tables.items), rows)
    slots = []
    for item in added:
        for number in range(item["needed"]):
            slots.append(_slot(item["item"], number, "review", place=item["place"]))
    connection.execute(insert(tables.slots), slots)


def _add_controls(connection: Connection, event: Event) -> None:
    """Control items are decided already; each reviewer gets a slot of their own."""
    names = connection.scalars(_measured_reviewers()).all()
    answers: dict[int, ControlAnswer] = decode_payload(event)
    for item, answer in answers.items():
        values = {
            "status": STATUS_OF[answer.verdict],
            "control": msgspec.json.encode(answer).decode(),
        }
        same = tables.items.c.item == item
        connection.execute(update(tables.items).where(same).values(**values))
        connection.execute(delete(tables.slots).where(tables.slots.c.item == item))
        for name in names:
            _add_control_slot(connection, item, name)


def _add_reviewer(connection: Connection, event: Event) -> None:
    values: dict[str, str] = decode_payload(event)
    same = tables.reviewers.c.name == values["name"]
    # A known name gets a new token and keeps the control items.
    if connection.scalar(select(tables.reviewers.c.name).where(same)) is not None:
        connection.execute(update(tables.reviewers).where(same).values(**values))
        return
    connection.execute(insert(tables.reviewers).values(**values))
    if values["role"] != "owner":
        controls = select(tables.items.c.item).where(
            tables.items.c.control.is_not(None)
        )
        for item in connection.scalars(controls.order_by(tables.items.c.item)).all():
            _add_control_slot(connection, item, values["name"])


def _decide(connection: Connection, event: Event) -> None:
    payload: DecidedPayload = decode_payload(event)
    assert event.item is not None
    values = {
        "id": event.uuid,
        "seq": event.seq,
        "item": event.item,
        "slot": payload.slot,
        "kind": payload.kind,
        "reviewer": event.actor,
        "verdict": payload.verdict,
        "reason": payload.reason,
        "note": payload.note,
        "edit": _encode_or_none(payload.edit),
        "seconds": payload.seconds,
        "at": event.at,
        "undone": False,
        "ratings": _encode_or_none(payload.ratings),
        "criteria": _encode_or_none(payload.criteria),
    }
    connection.execute(_INSERT_DECISION, values)
    # A skip gives the slot back; every other verdict keeps it for good.
    skipped = payload.verdict == "skip"
    _set_slot(connection, event.item, payload.slot, None if skipped else event.actor)
    if not skipped:
        _settle_item(connection, event.item)


def _encode_or_none(value: object) -> str | None:
    """JSON for a column; None where there is nothing to store."""
    return msgspec.json.encode(value).decode() if value else None


def _undo(connection: Connection, event: Event) -> None:
    decision = decode_payload(event)["decision"]
    same = tables.decisions.c.id == decision
    connection.execute(update(tables.decisions).where(same).values(undone=True))
    row = connection.execute(select(tables.decisions).where(same)).one()
    if row.verdict != "skip":
        _set_slot(connection, row.item, row.slot, None)
        _settle_item(connection, row.item)


def _add_sample(connection: Connection, event: Event) -> None:
    """A reviewer's addition, last in the queue. Its author has a slot that is done, and so gets no other."""
    added: AddedSample = decode_payload(event)
    assert event.item is not None
    last = connection.scalar(select(func.max(tables.items.c.place)))
    place = 0 if last is None else last + 1
    values = {
        "item": event.item,
        "sample": added.sample,
        "place": place,
        "needed": 1,
        "status": "open",
        "added": event.payload,
    }
    connection.execute(insert(tables.items).values(**values))
    review = _slot(event.item, 0, "review", place=place)
    own = _slot(event.item, 1, "addition", place=place, reserved=added.reviewer)
    own |= {"done": True, "holder": added.reviewer}
    connection.execute(insert(tables.slots), [review, own])


def _withdraw_sample(connection: Connection, event: Event) -> None:
    same = tables.items.c.item == event.item
    connection.execute(update(tables.items).where(same).values(status="withdrawn"))
    connection.execute(delete(tables.slots).where(tables.slots.c.item == event.item))


ABOUT_AN_ITEM = ("decided", "sample_added", "sample_withdrawn")
"""Kinds of events that name an item."""

PAYLOADS: dict[str, Any] = {
    "project_created": dict[str, str | int | float],
    "runs_added": list[dict[str, str | int]],
    "items_added": list[dict[str, Any]],
    "controls_added": dict[int, ControlAnswer],
    "reviewer_added": dict[str, str],
    "decided": DecidedPayload,
    "undone": dict[str, str],
    "sample_added": AddedSample,
    "sample_withdrawn": dict[str, int],
}
"""The type of the payload of each kind of event."""

_APPLY: dict[str, Callable[[Connection, Event], None]] = {
    "project_created": _create_project,
    "runs_added": _add_runs,
    "items_added": _add_items,
    "controls_added": _add_controls,
    "reviewer_added": _add_reviewer,
    "decided": _decide,
    "undone": _undo,
    "sample_added": _add_sample,
    "sample_withdrawn": _withdraw_sample,
}


# Statements that every decision runs are made once: making one takes longer than running it.
_INSERT_EVENT = insert(tables.events)
_INSERT_DECISION = insert(tables.decisions)
_FIND_EVENT = select(tables.events).where(tables.events.c.uuid == bindparam("id"))
_FIND_ITEM = select(tables.items).where(tables.items.c.item == bindparam("item_"))
_SET_SLOT = update(tables.slots).where(
    tables.slots.c.item == bindparam("item_"), tables.slots.c.slot == bindparam("slot_")
)
_SET_ITEM = update(tables.items).where(tables.items.c.item == bindparam("item_"))
_OPINIONS = (
    select(
        tables.decisions.c.id,
        tables.decisions.c.kind,
        tables.decisions.c.verdict,
        tables.decisions.c.edit,
    )
    .where(
        tables.decisions.c.item == bindparam("item_"),
        tables.decisions.c.undone.is_(False),
        tables.decisions.c.verdict != "skip",
    )
    .order_by(tables.decisions.c.seq)
)


def _set_slot(
    connection: Connection, item: int, slot: int, decided_by: str | None
) -> None:
    values = {"done": decided_by is not None, "holder": decided_by, "expires": None}
    connection.execute(_SET_SLOT, {"item_": item, "slot_": slot, **values})


def _settle_item(connection: Connection, item: int) -> None:
    """Derive the status of an item from its decisions; a disputed item gets a slot for adjudication."""
    row = connection.execute(_FIND_ITEM, {"item_": item}).one()
    # The answer of a control item is known; decisions about it measure the reviewer.
    if row.control is not None:
        return
    decisions = connection.execute(_OPINIONS, {"item_": item}).all()
    reviews = _opinions(decisions, "review")
    adjudications = _opinions(decisions, "adjudication")
    status, final = settle(reviews, adjudications, row.needed)
    if (status, final) != (row.status, row.final):
        values = {"item_": item, "status": status, "final": final}
        connection.execute(_SET_ITEM, values)
    if row.needed > 1:
        _open_adjudication(connection, row, disputed=status == "disputed")


def _open_adjudication(
    connection: Connection, item: Row[Any], *, disputed: bool
) -> None:
    """Offer a disputed item for adjudication, and withdraw the offer where the dispute is over."""
    slots = tables.slots
    number = item.needed
    place = and_(slots.c.item == item.item, slots.c.slot == number)
    exists = connection.scalar(select(func.count()).select_from(slots).where(place))
    if disputed and not exists:
        values = _slot(item.item, number, "adjudication", place=item.place)
        connection.execute(insert(slots).values(**values))
    elif not disputed and exists:
        connection.execute(delete(slots).where(place, slots.c.done.is_(False)))


def _opinions(rows: Sequence[Any], kind: str) -> list[Opinion]:
    return [
        Opinion(row.id, row.verdict, decode_edit(row.edit))
        for row in rows
        if row.kind == kind
    ]


def decode_edit(text: str | None) -> EditedSample | None:
    """The edited sample of a decision."""
    return None if text is None else msgspec.json.decode(text, type=EditedSample)


def decode_ratings(text: str | None) -> dict[str, int]:
    """The ratings of a decision, by criterion."""
    return {} if text is None else msgspec.json.decode(text, type=dict[str, int])


def decode_criteria(text: str | None) -> list[str]:
    """The criteria that decided a comparison."""
    return [] if text is None else msgspec.json.decode(text, type=list[str])


def _add_control_slot(connection: Connection, item: int, reviewer: str) -> None:
    slots = tables.slots
    same_item = slots.c.item == item
    last_slot = connection.scalar(select(func.max(slots.c.slot)).where(same_item))
    number = 0 if last_slot is None else last_slot + 1
    places = select(tables.items.c.place).where(tables.items.c.item == item)
    place = connection.execute(places).scalar_one()
    values = _slot(item, number, "control", place=place, reserved=reviewer)
    connection.execute(insert(slots).values(**values))


def _measured_reviewers() -> Any:
    names = tables.reviewers.c
    return select(names.name).where(names.role != "owner").order_by(names.name)


def _slot(
    item: int, slot: int, kind: str, *, place: int, reserved: str | None = None
) -> dict[str, Any]:
    return {
        "item": item,
        "slot": slot,
        "kind": kind,
        "place": place,
        "reserved": reserved,
        "done": False,
        "holder": None,
        "expires": None,
    }
