"""Queue, decisions, undo, double review, adjudication and controls, on SQLite and on PostgreSQL."""

import threading
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from sqlalchemy import delete, select, text
from sqlalchemy.exc import DatabaseError

from maskwise.errors import StoreError
from maskwise.review import tables
from maskwise.review.database import (
    CHECKPOINT_PAGES,
    DatabaseUnavailableError,
    ReviewDatabase,
)
from maskwise.review.decisions import ReviewConflictError
from maskwise.review.edits import InvalidDecisionError
from maskwise.review.queue import Reviewer
from maskwise.review.records import (
    ControlAnswer,
    DecisionDraft,
    NewDecision,
    SampleEdit,
)
from maskwise.review.review import BlindItemError, Review, UnknownItemError
from maskwise.store import Dataset
from tests.review.conftest import StartReview
from tests.review.datasets import box, write_samples


def join(review: Review, name: str, role: Any = "reviewer") -> Reviewer:
    found = review.find_reviewer(review.add_reviewer(name, role))
    assert found is not None
    return found


def decision(item: int, verdict: str = "accept", **fields: Any) -> NewDecision:
    values = {"id": str(uuid4()), "item": item, "verdict": verdict} | fields
    return msgspec.convert(values, NewDecision)


def status(review: Review, item: int) -> str:
    with review.database.read() as connection:
        return connection.execute(
            select(tables.items.c.status).where(tables.items.c.item == item)
        ).scalar_one()


def state(review: Review) -> dict[str, list[tuple[Any, ...]]]:
    """All derived tables, without leases."""
    found = {}
    with review.database.read() as connection:
        for table in tables.DERIVED:
            rows = [
                row._asdict()
                for row in connection.execute(
                    select(table).order_by(*table.primary_key)
                )
            ]
            for row in rows:
                if table is tables.slots and not row["done"]:
                    row["holder"] = row["expires"] = None
            found[table.name] = [tuple(row.values()) for row in rows]
    return found


EDIT = {
    "question": "What holds tea?",
    "targets": [{"id": "cup", "amodal": box(2, 2, 5, 6)}],
}


def test_flagged_items_come_first_and_no_item_goes_to_two_reviewers(
    start: StartReview,
) -> None:
    review = start()
    ada = join(review, "ada")
    bob = join(review, "bob")
    assert [item.item for item in review.queue(ada, 3)] == [5, 7, 0]
    assert [item.item for item in review.queue(bob, 3)] == [1, 2, 3]
    assert review.queue(ada, 3)[0].flags == ["mask-type-wording"]


def test_the_queue_returns_held_items_until_they_are_decided(
    start: StartReview,
) -> None:
    review = start()
    ada = join(review, "ada")
    first = [item.item for item in review.queue(ada, 2)]
    assert [item.item for item in review.queue(ada, 2)] == first
    result = review.decide(ada, decision(first[0], next=2))
    assert [item.item for item in result.items] == [first[1], 0]


def test_many_threads_never_get_the_same_item(start: StartReview) -> None:
    review = start()
    reviewers = [join(review, f"r{number}") for number in range(6)]
    got: list[int] = []

    def work(reviewer: Reviewer) -> None:
        while items := review.queue(reviewer, 1):
            review.decide(reviewer, decision(items[0].item))
            got.append(items[0].item)

    threads = [
        threading.Thread(target=work, args=(reviewer,)) for reviewer in reviewers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(12))


def test_an_expired_lease_goes_to_somebody_else_and_the_late_decision_is_refused(
    start: StartReview,
) -> None:
    review = start(lease_seconds=-1.0)
    ada = join(review, "ada")
    bob = join(review, "bob")
    item = review.queue(ada, 1)[0].item
    assert review.queue(bob, 1)[0].item == item
    review.decide(bob, decision(item))
    with pytest.raises(ReviewConflictError, match="not yours"):
        review.decide(ada, decision(item))


def test_a_late_decision_counts_where_nobody_took_the_item(start: StartReview) -> None:
    review = start(lease_seconds=-1.0)
    ada = join(review, "ada")
    item = review.queue(ada, 1)[0].item
    review.decide(ada, decision(item))
    assert status(review, item) == "accepted"


def test_a_repeated_decision_is_stored_once(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    made = decision(review.queue(ada, 1)[0].item, next=1)
    first = review.decide(ada, made)
    second = review.decide(ada, made)
    assert (first.replayed, second.replayed) == (False, True)
    assert first.decision == second.decision
    assert review.count_decisions(ada) == 1
    other = msgspec.structs.replace(made, verdict="skip")
    with pytest.raises(ReviewConflictError, match="another decision"):
        review.decide(ada, other)
    with pytest.raises(ReviewConflictError, match="already decided"):
        review.decide(ada, msgspec.structs.replace(made, id=UUID(int=1)))


def test_undo_is_unlimited_and_gives_the_edit_back_as_a_draft(
    start: StartReview,
) -> None:
    review = start()
    ada = join(review, "ada")
    items = [item.item for item in review.queue(ada, 3)]
    review.decide(ada, decision(items[0], "fix", edit=EDIT))
    review.decide(
        ada, decision(items[1], "reject", reason="ambiguous", note="two cups")
    )
    undone = [review.undo(ada, str(uuid4())).item.item for _ in range(2)]
    assert undone == [items[1], items[0]]
    assert [status(review, item) for item in items] == ["open"] * 3
    drafts = [review.item(ada, item).draft for item in items[:2]]
    assert drafts[0] is not None
    assert drafts[0].edit is not None
    assert drafts[0].edit.question == "What holds tea?"
    assert drafts[1] is not None
    assert (drafts[1].verdict, drafts[1].reason, drafts[1].note) == (
        "reject",
        "ambiguous",
        "two cups",
    )
    with pytest.raises(ReviewConflictError, match="no decision to undo"):
        review.undo(ada, str(uuid4()))
    again = msgspec.to_builtins(drafts[0])
    review.decide(ada, decision(items[0], **again))
    assert status(review, items[0]) == "fixed"


def test_a_repeated_undo_takes_back_one_decision(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    for item in review.queue(ada, 2):
        review.decide(ada, decision(item.item))
    id = str(uuid4())
    first = review.undo(ada, id)
    second = review.undo(ada, id)
    assert (first.undone, second.replayed) == (second.undone, True)
    assert review.count_decisions(ada) == 1


def test_a_skipped_item_comes_back_last(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    bob = join(review, "bob")
    review.decide(ada, decision(review.queue(ada, 1)[0].item, "skip"))
    assert review.queue(bob, 1)[0].item == 5
    review.renew(bob, [], [5])
    order = []
    while items := review.queue(ada, 1):
        order.append(items[0].item)
        review.decide(ada, decision(items[0].item))
    assert order[-1] == 5
    assert len(order) == 12


def test_double_review_is_blind_and_agreement_settles_it(start: StartReview) -> None:
    review = start(double_share=1.0)
    ada = join(review, "ada")
    bob = join(review, "bob")
    cy = join(review, "cy")
    item = review.queue(ada, 1)[0].item
    assert review.queue(bob, 1)[0].item == item
    assert review.queue(cy, 1)[0].item != item
    with pytest.raises(BlindItemError):
        review.item(cy, item)
    review.decide(ada, decision(item))
    assert status(review, item) == "open"
    assert not review.item(bob, item).opinions
    review.decide(bob, decision(item))
    assert status(review, item) == "accepted"
    assert item not in [one.item for one in review.queue(ada, 12)]


def test_disagreement_is_adjudicated_without_names(start: StartReview) -> None:
    review = start(double_share=1.0)
    ada = join(review, "ada")
    bob = join(review, "bob")
    eve = join(review, "eve", "adjudicator")
    item = review.queue(ada, 1)[0].item
    review.queue(bob, 1)
    review.decide(ada, decision(item, "reject", reason="ambiguous"))
    review.decide(bob, decision(item, "fix", edit=EDIT))
    assert status(review, item) == "disputed"
    found = review.queue(eve, 1)[0]
    assert (found.item, found.kind) == (item, "adjudication")
    assert {opinion.verdict for opinion in found.opinions} == {"reject", "fix"}
    assert [opinion.label for opinion in found.opinions] == ["A", "B"]
    shown = msgspec.json.encode(found).decode()
    assert "ada" not in shown
    assert "bob" not in shown
    review.decide(eve, decision(item, "fix", edit=EDIT))
    assert status(review, item) == "fixed"
    review.undo(eve, str(uuid4()))
    assert status(review, item) == "disputed"
    review.undo(bob, str(uuid4()))
    assert status(review, item) == "open"
    with pytest.raises(ReviewConflictError):
        review.decide(eve, decision(item))


def test_an_adjudication_is_undone_after_the_dispute_ended(start: StartReview) -> None:
    review = start(double_share=1.0)
    ada = join(review, "ada")
    bob = join(review, "bob")
    eve = join(review, "eve", "adjudicator")
    item = review.queue(ada, 1)[0].item
    review.queue(bob, 1)
    review.decide(ada, decision(item))
    review.decide(bob, decision(item, "reject", reason="ambiguous"))
    review.decide(eve, decision(review.queue(eve, 1)[0].item))
    review.undo(bob, str(uuid4()))
    assert status(review, item) == "accepted"
    undone = review.undo(eve, str(uuid4()))
    assert status(review, item) == "open"
    seen = undone.item
    assert (seen.lease_expires, seen.opinions) == (None, [])


def test_fixes_agree_if_their_masks_nearly_do(start: StartReview) -> None:
    review = start(double_share=1.0)
    ada = join(review, "ada")
    bob = join(review, "bob")
    items = [one.item for one in review.queue(ada, 2)]
    review.queue(bob, 2)
    for item, other in zip(items, (box(2, 2, 5, 6), box(2, 2, 9, 6))):
        review.decide(ada, decision(item, "fix", edit=EDIT))
        edit = {
            "question": "What  holds tea?",
            "targets": [{"id": "cup", "amodal": other}],
        }
        review.decide(bob, decision(item, "fix", edit=edit))
    assert [status(review, item) for item in items] == ["fixed", "disputed"]


def test_controls_measure_every_reviewer_and_look_like_other_items(
    start: StartReview,
) -> None:
    controls = {
        "s0": ControlAnswer(verdict="accept"),
        "s1": ControlAnswer(verdict="reject"),
    }
    review = start(controls=controls)
    for reviewer in (join(review, "ada"), join(review, "bob")):
        seen = []
        while items := review.queue(reviewer, 1):
            assert items[0].kind == "review"
            seen.append(items[0].item)
            review.decide(reviewer, decision(items[0].item))
        assert {0, 1} <= set(seen)
    stats = review.stats()
    assert [one.controls.accuracy for one in stats.reviewers] == [0.5, 0.5]
    assert (stats.progress.controls, stats.progress.accepted) == (2, 10)
    assert (status(review, 0), status(review, 1)) == ("accepted", "rejected")


def test_the_rebuilt_state_equals_the_state(start: StartReview) -> None:
    controls = {"s0": ControlAnswer(verdict="reject")}
    review = start(double_share=0.5, controls=controls)
    people = [
        join(review, "ada"),
        join(review, "bob"),
        join(review, "eve", "adjudicator"),
        join(review, "me", "owner"),
    ]
    choices: list[dict[str, Any]] = [
        {"verdict": "accept"},
        {"verdict": "fix", "edit": EDIT},
        {"verdict": "reject", "reason": "bad-mask"},
        {"verdict": "skip"},
    ]
    for number in range(40):
        reviewer = people[number % 4]
        for item in review.queue(reviewer, 1):
            review.decide(reviewer, decision(item.item, **choices[number * 7 % 4]))
        if number % 5 == 4 and review.count_decisions(reviewer):
            review.undo(reviewer, str(uuid4()))
    review.add_reviewer("ada")
    before = state(review)
    count, left_out = review.rebuild()
    assert left_out == []
    assert state(review) == before
    assert count == len(review.events(0, 1000))


def test_the_audit_log_refuses_changes(start: StartReview) -> None:
    review = start()
    for statement in ("UPDATE events SET actor = 'x'", "DELETE FROM events"):
        with pytest.raises(
            (DatabaseError, DatabaseUnavailableError), match="append-only"
        ):
            review.database.write(
                lambda connection, sql=statement: connection.execute(text(sql))
            )
    assert review.events(0, 10)[0].kind == "project_created"


def test_drafts_are_kept_until_the_decision(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    bob = join(review, "bob")
    item = review.queue(ada, 1)[0].item
    draft = DecisionDraft(
        verdict="fix", edit=msgspec.convert(EDIT, SampleEdit), note="not finished"
    )
    review.save_draft(ada, item, DecisionDraft(note="first"))
    review.save_draft(ada, item, draft)
    assert review.queue(ada, 1)[0].draft == draft
    with pytest.raises(BlindItemError):
        review.save_draft(bob, item, draft)
    review.decide(ada, decision(item))
    review.undo(ada, str(uuid4()))
    restored = review.item(ada, item).draft
    assert restored is not None
    assert restored.verdict == "accept"


def test_renewing_and_releasing_leases(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    bob = join(review, "bob")
    first, second = (item.item for item in review.queue(ada, 2))
    held = review.renew(ada, [first, 11], [second])
    assert list(held) == [first]
    assert review.queue(bob, 1)[0].item == second


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"verdict": "reject"}, "needs a reason"),
    ({"verdict": "accept", "reason": "ambiguous"}, "takes one"),
    ({"verdict": "reject", "reason": "bored"}, "unknown"),
    ({"verdict": "fix"}, "needs an edit"),
    ({"verdict": "fix", "edit": {}}, "changes nothing"),
    ({"verdict": "fix", "edit": {"targets": [{"id": "new"}]}}, "needs a name"),
    ({"verdict": "fix", "edit": {"targets": [{"id": "new", "name": "x"}]}}, "neither"),
    ({"verdict": "fix", "edit": {"targets": [{"id": "cup"}, {"id": "cup"}]}}, "twice"),
    ({"verdict": "fix", "edit": {"targets": []}}, "phrase"),
    ({"verdict": "fix", "edit": {"question": "a\0b"}}, "control character"),
    (
        {
            "verdict": "fix",
            "edit": {
                "targets": [{"id": "cup", "amodal": {"size": [2, 2], "counts": "4"}}]
            },
        },
        "height",
    ),
    ({"verdict": "accept", "note": "\x1b[2J"}, "control character"),
]


def test_invalid_decisions_are_refused(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    item = review.queue(ada, 1)[0].item
    for fields, message in INVALID:
        with pytest.raises(InvalidDecisionError, match=message):
            review.decide(ada, decision(item, **fields))
    assert review.count_decisions(ada) == 0


def test_unknown_items_are_refused(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    for item in (-1, 12, 2**70):
        with pytest.raises(UnknownItemError):
            review.decide(ada, decision(item))


def test_a_new_token_replaces_the_old_one(start: StartReview) -> None:
    review = start()
    old = review.add_reviewer("ada")
    new = review.add_reviewer("ada")
    assert review.find_reviewer(old) is None
    assert review.find_reviewer(new) == Reviewer("ada", "reviewer")
    with review.database.read() as connection:
        log = str(connection.execute(select(tables.events)).all())
    assert old not in log
    assert new not in log


def test_a_database_holds_the_review_of_one_dataset(
    start: StartReview, tmp_path: Any
) -> None:
    review = start()
    other: Dataset = write_samples(tmp_path / "other", 3)
    again = Review(
        other, ReviewDatabase(review.database.url.render_as_string(hide_password=False))
    )
    with pytest.raises(StoreError, match="cups"):
        again.create()
    again.database.close()
    assert not review.create()


def test_statistics_of_two_reviewers(start: StartReview) -> None:
    review = start(double_share=1.0)
    ada = join(review, "ada")
    bob = join(review, "bob")
    choices: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"verdict": "accept"}, {"verdict": "accept"}),
        ({"verdict": "accept"}, {"verdict": "reject", "reason": "ambiguous"}),
        (
            {"verdict": "reject", "reason": "bad-mask"},
            {"verdict": "reject", "reason": "ambiguous"},
        ),
        ({"verdict": "fix", "edit": EDIT}, {"verdict": "fix", "edit": EDIT}),
    ]
    for one, two in choices:
        item = review.queue(ada, 1)[0].item
        assert review.queue(bob, 1)[0].item == item
        review.decide(ada, decision(item, seconds=4.0, **one))
        review.decide(bob, decision(item, seconds=6.0, **two))
    stats = review.stats()
    assert (stats.agreement.items, stats.agreement.equal) == (4, 3)
    pair = stats.agreement.pairs[0]
    # po = 3/4; ada: accept 2, reject 1, fix 1; bob: accept 1, reject 2, fix 1; pe = (2*1 + 1*2 + 1*1) / 16 = 5/16
    assert pair.kappa == pytest.approx((3 / 4 - 5 / 16) / (1 - 5 / 16))
    assert (pair.mask_iou, pair.masks) == (1.0, 2)
    assert {reason.code: reason.count for reason in stats.reasons} == {
        "ambiguous": 2,
        "bad-mask": 1,
    }
    assert sum(hour.decisions for hour in stats.throughput) == 8
    assert [one.seconds_median for one in stats.reviewers] == [4.0, 6.0]


def test_drafts_survive_a_rebuild(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    item = review.queue(ada, 1)[0].item
    review.save_draft(ada, item, DecisionDraft(note="kept"))
    review.rebuild()
    found = review.queue(ada, 1)[0]
    assert (found.item, found.draft) == (item, DecisionDraft(note="kept"))


def test_an_interrupted_transaction_changes_nothing(start: StartReview) -> None:
    review = start()
    ada = join(review, "ada")
    before = state(review)

    def fail(connection: Any) -> None:
        connection.execute(delete(tables.items))
        raise StoreError("interrupted")

    with pytest.raises(StoreError, match="interrupted"):
        review.database.write(fail)
    assert state(review) == before
    assert review.queue(ada, 1)


def test_the_write_ahead_log_of_sqlite_stays_short_while_people_work(
    tmp_path: Path,
) -> None:
    review = Review(
        write_samples(tmp_path / "data", 60, per_image=60),
        ReviewDatabase(tmp_path / "review.sqlite"),
    )
    review.create()
    ada = join(review, "ada")
    for item in range(60):
        review.queue(ada, 5)
        review.decide(ada, decision(item))
        review.history(ada, before=None, limit=10)
        review.stats()
    length = (tmp_path / "review.sqlite-wal").stat().st_size
    review.database.close()
    assert length < 3 * CHECKPOINT_PAGES * 4096
