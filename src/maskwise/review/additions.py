"""Reviewers add questions about an image, with answers and regions; somebody else checks them.

An added sample is an item like any other. Its author cannot decide about it: a slot of the author's is done from the
beginning. The author may withdraw it until somebody has decided.
"""

import hashlib

import msgspec
from sqlalchemy import Connection, func, select

from maskwise.review import tables
from maskwise.review.audit_log import append_event, decode_payload, find_event
from maskwise.review.decisions import ReviewConflictError
from maskwise.review.edits import InvalidDecisionError, apply_edit
from maskwise.review.queue import Reviewer, find_item, lock_slots
from maskwise.review.records import AddedSample, NewSample, SampleEdit
from maskwise.schema import Sample
from maskwise.store import Dataset

ADDED_BY = "added_by"
"""The tag of an added sample: the pseudonym of its author."""


class AddedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A stored addition. replayed: it was stored before."""

    item: int
    sample: str
    replayed: bool


def make_addition(
    dataset: Dataset, source: Sample, new: NewSample, reviewer: str
) -> AddedSample:
    """Check what a reviewer added, as an edit is checked. source: the sample whose image it is about."""
    image = dataset.image(source.image_id)
    sample = f"{source.id}+{str(new.id)[:8]}"
    empty = Sample(id=sample, image_id=source.image_id, question=new.question)
    edit = SampleEdit(
        question=new.question,
        answer=new.answer,
        mask_type=new.mask_type,
        targets=new.targets,
    )
    if not new.question.strip():
        raise InvalidDecisionError("question: it has no words")
    regions = [*dataset.regions_of(source.image_id), *source.targets]
    content = apply_edit(empty, regions, edit, size=(image.height, image.width))
    return AddedSample(
        sample=sample, image=source.image_id, reviewer=reviewer, content=content
    )


def add_sample(
    connection: Connection, reviewer: Reviewer, new: NewSample, added: AddedSample
) -> AddedFacts:
    """Append an addition to the audit log. A repeated request changes nothing."""
    sent = hashlib.sha256(msgspec.json.encode(added)).hexdigest()[:32]
    event = find_event(connection, str(new.id))
    if event is not None:
        is_same = event.kind == "sample_added" and decode_payload(event).sent == sent
        if not is_same or event.item is None:
            raise ReviewConflictError(
                f"the id {new.id} was used for something else; make a new one"
            )
        return AddedFacts(item=event.item, sample=added.sample, replayed=True)
    last = connection.scalar(select(func.max(tables.items.c.item)))
    item = 0 if last is None else last + 1
    append_event(
        connection,
        "sample_added",
        msgspec.structs.replace(added, sent=sent),
        actor=reviewer.name,
        item=item,
        id=str(new.id),
    )
    return AddedFacts(item=item, sample=added.sample, replayed=False)


def withdraw_sample(connection: Connection, reviewer: Reviewer, item: int) -> None:
    """Take back an own addition about which nobody has decided. Repeating it changes nothing."""
    slots = lock_slots(connection, item)
    row = find_item(connection, item)
    added = decode_added(row.added)
    if added is None or added.reviewer != reviewer.name:
        raise ReviewConflictError(f"item {item} is not your addition")
    if row.status == "withdrawn":
        return
    if row.status != "open" or any(
        slot.holder not in (None, reviewer.name) for slot in slots
    ):
        raise ReviewConflictError(
            f"item {item} cannot be withdrawn: somebody else is checking it, or has decided"
        )
    append_event(
        connection, "sample_withdrawn", {"item": item}, actor=reviewer.name, item=item
    )


def decode_added(text: str | None) -> AddedSample | None:
    """What a reviewer added; None for an item of the dataset."""
    return None if text is None else msgspec.json.decode(text, type=AddedSample)


def to_added_sample(added: AddedSample) -> Sample:
    """An addition as a sample."""
    return Sample(
        id=added.sample,
        image_id=added.image,
        question=added.content.question,
        mask_type=added.content.mask_type,
        targets=added.content.targets,
        answer=added.content.answer,
        tags={ADDED_BY: added.reviewer},
    )
