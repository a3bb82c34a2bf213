"""The tables of a review: the audit log, the state that follows from it, and working tables.

`events` is the audit log and the source of truth. It is append-only: triggers refuse changes. `project`, `reviewers`,
`items`, `slots` and `decisions` are derived from it in the transaction that appends, and can be rebuilt. Leases
(`holder` and `expires` of open slots) and `drafts` are working state: losing them loses no decision.
"""

from sqlalchemy import (
    DDL,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
)

metadata = MetaData()

events = Table(
    "events",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("uuid", Text, nullable=False, unique=True),
    Column("at", Float, nullable=False),
    Column("kind", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("item", Integer),
    Column("payload", Text, nullable=False),
    sqlite_autoincrement=True,
)
"""`at`: seconds since 1970. `actor`: a pseudonym, or empty for the program. `payload`: JSON."""

project = Table(
    "project",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("samples", Integer, nullable=False),
    Column("double_share", Float, nullable=False),
    Column("mode", Text),
)
"""One row: the reviewed dataset. `mode`: what people do; empty for `check`."""

runs = Table(
    "runs",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("identical", Integer, nullable=False),
)
"""The runs whose predictions are judged. `identical`: questions that were left out, because another run predicts the
same there.
"""

reviewers = Table(
    "reviewers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("token_hash", Text, nullable=False, unique=True),
)

items = Table(
    "items",
    metadata,
    Column("item", Integer, primary_key=True, autoincrement=False),
    Column("sample", Text, nullable=False, unique=True),
    Column("place", Integer, nullable=False),
    Column("needed", Integer, nullable=False),
    Column("status", Text, nullable=False, index=True),
    Column("final", Text),
    Column("control", Text),
    Column("row", Integer),
    Column("left", Integer),
    Column("right", Integer),
    Column("added", Text),
    Column("doubts", Text),
)
"""`item`: row of the sample in the dataset. `place`: position in the queue. `needed`: how many reviews. `final`: the
decision that counts. `control`: for a control item the known answer, as JSON.

`added`: what a reviewer added, as JSON; empty for a sample of the dataset. `doubts`: why an audit doubts the sample, as
a JSON list; empty where it does not.

Where predictions are judged, an item has a number of its own, `row` is that of the sample, `left` and `right` are
numbers of runs (`right` is empty where one prediction is rated), and `sample` is unique by the number of the item.
"""

slots = Table(
    "slots",
    metadata,
    Column("item", Integer, primary_key=True, autoincrement=False),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("reserved", Text),
    Column("done", Boolean, nullable=False),
    Column("holder", Text),
    Column("expires", Float),
    UniqueConstraint("item", "holder"),
    Index("slots_queue", "done", "kind", "place", "slot"),
    Index("slots_holder", "holder", "done"),
)
"""One row per review that an item needs. `reserved`: only for this reviewer (control items). `holder`: who has leased
it, or decided. The unique constraint keeps one reviewer from deciding twice about an item.
"""

decisions = Table(
    "decisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("item", Integer, nullable=False),
    Column("slot", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("reviewer", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("reason", Text),
    Column("note", Text, nullable=False),
    Column("edit", Text),
    Column("seconds", Float),
    Column("at", Float, nullable=False),
    Column("undone", Boolean, nullable=False),
    Column("ratings", Text),
    Column("criteria", Text),
    Index("decisions_item", "item"),
    Index("decisions_reviewer", "reviewer", "seq"),
)
"""`edit`: for a fix the complete edited sample, as JSON. `ratings`: by criterion, `criteria`: a list, as JSON."""

drafts = Table(
    "drafts",
    metadata,
    Column("item", Integer, primary_key=True, autoincrement=False),
    Column("reviewer", Text, primary_key=True),
    Column("at", Float, nullable=False),
    Column("body", Text, nullable=False),
)

DERIVED = (project, runs, reviewers, items, slots, decisions)
"""What follows from the audit log."""

_MESSAGE = "the audit log is append-only"
_TRIGGERS = [
    (
        "sqlite",
        f"CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END",
    ),
    (
        "sqlite",
        f"CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END",
    ),
    (
        "postgresql",
        "CREATE OR REPLACE FUNCTION refuse_event_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_MESSAGE}'; END $$",
    ),
    (
        "postgresql",
        "CREATE TRIGGER events_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_event_change()",
    ),
]
for _dialect, _statement in _TRIGGERS:
    event.listen(events, "after_create", DDL(_statement).execute_if(dialect=_dialect))  # type: ignore[no-untyped-call]
