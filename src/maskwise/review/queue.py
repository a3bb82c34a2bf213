"""The queue: hands out items by leases that expire, so that no two reviewers get the same one.

A lease is the `holder` and `expires` of a slot, in the row that is locked when it is handed out: on PostgreSQL by
SELECT ... FOR UPDATE SKIP LOCKED, on SQLite by the write transaction. That holds across server processes, too.
"""

import hashlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    Connection,
    Select,
    bindparam,
    exists,
    func,
    or_,
    select,
    update,
)

from maskwise.review import tables
from maskwise.review.records import Role, SlotKind

CONTROL_EVERY = 10
"""Of so many items that a reviewer gets, one is a control item, as long as there are any: a tenth of the work."""

RENEWED_BELOW = 0.9
"""Handing out renews the leases of which less than this share is left."""

slots = tables.slots.c


class Reviewer(NamedTuple):
    """Who is asking."""

    name: str
    role: Role


class Lease(NamedTuple):
    """A slot that a reviewer holds until `expires` (seconds since 1970)."""

    item: int
    kind: SlotKind
    expires: float


def lease_items(
    connection: Connection, reviewer: Reviewer, count: int, *, seconds: float
) -> list[Lease]:
    """Lease items until the reviewer holds `count`, and return them; those already held are renewed and come first."""
    if not count:
        return []
    now = time.time()
    expires = now + seconds
    held = connection.execute(_HELD, {"me": reviewer.name, "now": now}).all()
    leases = []
    for row in held[:count]:
        # A lease that has hardly begun needs no renewal, which saves most of the writing.
        if row.expires > now + RENEWED_BELOW * seconds:
            leases.append(Lease(row.item, row.kind, row.expires))
        else:
            leases.append(_take(connection, reviewer, row, expires))
    while len(leases) < count:
        row = _next_slot(connection, reviewer, len(leases))
        if row is None:
            break
        leases.append(_take(connection, reviewer, row, expires))
    return leases


def renew_leases(
    connection: Connection, reviewer: Reviewer, items: Sequence[int], *, seconds: float
) -> dict[int, float]:
    """Prolong the reviewer's leases of these items; returns the items still held, with their new end."""
    expires = time.time() + seconds
    held = {}
    # In one order for all, so that two requests cannot wait for each other's rows.
    for item in sorted(set(items)):
        values = {
            "item_": item,
            "me": reviewer.name,
            "holder": reviewer.name,
            "expires": expires,
        }
        if connection.execute(_CHANGE_LEASE, values).rowcount:
            held[item] = expires
    return held


def release_leases(
    connection: Connection, reviewer: Reviewer, items: Sequence[int]
) -> None:
    """Give items back that the reviewer has not decided."""
    for item in sorted(set(items)):
        values = {"item_": item, "me": reviewer.name, "holder": None, "expires": None}
        connection.execute(_CHANGE_LEASE, values)


def find_lease(connection: Connection, reviewer: str, item: int) -> Lease | None:
    """A reviewer's lease of an item, even if it expired and nobody took it since."""
    row = connection.execute(_FIND_LEASE, {"item_": item, "me": reviewer}).first()
    if row is None:
        return None
    return Lease(row.item, row.kind, row.expires or 0.0)


def lease_slot(
    connection: Connection, reviewer: Reviewer, row: Any, *, seconds: float
) -> Lease:
    """Lease one slot that is locked and free."""
    return _take(connection, reviewer, row, time.time() + seconds)


def lock_slots(connection: Connection, item: int) -> Sequence[Any]:
    """All slots of an item, locked until the transaction ends, so that decisions about one item come one by one."""
    return connection.execute(_LOCK_SLOTS, {"item_": item}).all()


def free_slot(rows: Sequence[Any], reviewer: Reviewer) -> Any:
    """Among the slots of an item the one that the reviewer holds or may take; None if there is none."""
    for row in rows:
        if row.holder == reviewer.name:
            return None if row.done else row
    now = time.time()
    allowed = _kinds_of(reviewer.role)
    for row in rows:
        is_free = row.holder is None or (row.expires or 0.0) < now
        may_take = row.kind in allowed and row.reserved in (None, reviewer.name)
        if is_free and may_take and not row.done:
            return row
    return None


def count_open(connection: Connection) -> int:
    """How many items of the review are not settled: neither decided nor disputed."""
    return connection.execute(_COUNT_OPEN).scalar_one()


def count_items(connection: Connection) -> int:
    """How many items the review has."""
    return connection.execute(_COUNT_ITEMS).scalar_one()


def find_item(connection: Connection, item: int) -> Any:
    """The row of an item that exists."""
    return connection.execute(_FIND_ITEM, {"item_": item}).one()


def _next_slot(connection: Connection, reviewer: Reviewer, held: int) -> Any:
    """The first free slot for a reviewer who holds so many, locked, or None. What the reviewer skipped comes last."""
    kinds = _kinds(connection, reviewer, held)
    for skipped in (False, True):
        # All kinds of what was never skipped, before anything that was.
        for kind in kinds:
            values = {"me": reviewer.name, "kind_": kind, "now": time.time()}
            row = connection.execute(_FREE[skipped], values).first()
            if row is not None:
                return row
    return None


def _kinds(connection: Connection, reviewer: Reviewer, held: int) -> list[SlotKind]:
    """The kinds of slots to offer, in order."""
    if reviewer.role == "owner":
        return ["adjudication"]
    first: list[SlotKind] = ["adjudication"] if reviewer.role == "adjudicator" else []
    if _control_is_due(connection, reviewer.name, held):
        return [*first, "control", "review"]
    return [*first, "review", "control"]


def _control_is_due(connection: Connection, reviewer: str, held: int) -> bool:
    """Whether the next item should be a control: one per block of CONTROL_EVERY, at a place that is hard to guess."""
    done = connection.execute(_COUNT_DONE, {"me": reviewer}).scalar_one()
    # A hash of reviewer and block: the same after a restart, different for every reviewer.
    block, place = divmod(done + held, CONTROL_EVERY)
    digest = hashlib.sha256(f"{reviewer}/{block}".encode()).digest()
    return digest[0] % CONTROL_EVERY == place


def _kinds_of(role: Role) -> list[SlotKind]:
    """The kinds of slots that a role may decide."""
    if role == "owner":
        return ["adjudication"]
    if role == "adjudicator":
        return ["review", "control", "adjudication"]
    return ["review", "control"]


def _take(
    connection: Connection, reviewer: Reviewer, row: Any, expires: float
) -> Lease:
    values = {
        "item_": row.item,
        "slot_": row.slot,
        "holder": reviewer.name,
        "expires": expires,
    }
    connection.execute(_TAKE, values)
    return Lease(row.item, row.kind, expires)


# -- statements, made once: making one takes longer than running it

_ME: BindParameter[str] = bindparam("me")
_ITEM: BindParameter[int] = bindparam("item_")
_other = tables.slots.alias()
_HAS_OTHER_SLOT = exists().where(
    _other.c.item == slots.item, _other.c.holder == _ME, _other.c.slot != slots.slot
)
"""Whether the reviewer holds or has decided another slot of the same item."""


def _free_slots(*, skipped: bool) -> Select[Any]:
    """The first free slot of a kind, in the order of the queue. skipped: among those that the reviewer skipped."""
    made = tables.decisions.c
    was_skipped = exists().where(
        made.item == slots.item,
        made.reviewer == _ME,
        made.verdict == "skip",
        made.undone.is_(False),
    )
    query = select(tables.slots).where(
        slots.done.is_(False),
        slots.kind == bindparam("kind_"),
        or_(slots.holder.is_(None), slots.expires < bindparam("now")),
        or_(slots.reserved.is_(None), slots.reserved == _ME),
        ~_HAS_OTHER_SLOT,
        was_skipped if skipped else ~was_skipped,
    )
    return (
        query.order_by(slots.place, slots.slot)
        .limit(1)
        .with_for_update(skip_locked=True)
    )


_FREE = {skipped: _free_slots(skipped=skipped) for skipped in (False, True)}
_TAKE = update(tables.slots).where(
    slots.item == _ITEM, slots.slot == bindparam("slot_")
)
_LOCK_SLOTS = (
    select(tables.slots)
    .where(slots.item == _ITEM)
    .order_by(slots.slot)
    .with_for_update()
)
_FIND_LEASE = select(tables.slots).where(
    slots.item == _ITEM, slots.holder == _ME, slots.done.is_(False)
)
_CHANGE_LEASE = update(tables.slots).where(
    slots.item == _ITEM, slots.holder == _ME, slots.done.is_(False)
)
# Another request of the reviewer may be deciding about a held item just now; such rows are left out.
_HELD = (
    select(tables.slots)
    .where(
        slots.holder == _ME, slots.done.is_(False), slots.expires >= bindparam("now")
    )
    .order_by(slots.place, slots.item)
    .with_for_update(skip_locked=True)
)
_COUNT_DONE = (
    select(func.count())
    .select_from(tables.slots)
    .where(slots.holder == _ME, slots.done.is_(True))
)
_COUNT_ITEMS = select(func.count()).select_from(tables.items)
_FIND_ITEM = select(tables.items).where(tables.items.c.item == _ITEM)
_COUNT_OPEN = (
    select(func.count())
    .select_from(tables.items)
    .where(tables.items.c.status == "open", tables.items.c.control.is_(None))
)
