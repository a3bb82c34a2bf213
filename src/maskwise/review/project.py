"""Begin the review of a dataset: its items, control items and reviewers.

A database holds the review of one dataset. What is chosen at the beginning (share of double reviews, control items)
stays; reviewers can be added at any time.
"""

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from maskwise.errors import MaskwiseError, RecordError, StoreError, UnknownNameError
from maskwise.review import tables
from maskwise.review.audit_log import analyze_tables, append_event
from maskwise.review.database import ReviewDatabase
from maskwise.review.edits import InvalidDecisionError, apply_edit
from maskwise.review.integrity import find_damage
from maskwise.review.items import FLAGS_TAG, sample_flags
from maskwise.review.records import ROLES, ControlAnswer, Mode, Role, SampleEdit
from maskwise.store import Dataset

ITEMS_PER_EVENT = 5000
"""A line of the audit log then has about 0.3 megabytes."""

TOKEN_BYTES = 32
"""256 random bits."""

OWNER = "owner"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


@dataclass(frozen=True)
class ProjectOptions:
    """double_share: share of the items that two reviewers decide, 0 to 1. controls: known answers by sample id. first:
    the samples at the beginning of the queue, in order, each with why an audit doubts it.
    """

    double_share: float = 0.0
    controls: Mapping[str, ControlAnswer] = field(default_factory=dict)
    first: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0.0 <= self.double_share <= 1.0:
            raise MaskwiseError(
                f"the share of double reviews must be 0 to 1, not {self.double_share}"
            )


class ControlLine(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A line of a file of control items: the sample and its known answer."""

    sample: str
    verdict: str
    reason: str | None = None
    edit: SampleEdit | None = None


def create_project(
    connection: Connection, dataset: Dataset, options: ProjectOptions
) -> None:
    """Write the beginning of the audit log."""
    if not len(dataset):
        raise StoreError(f"{dataset.path} has no samples to review")
    facts = {
        "hash": dataset_hash(dataset),
        "name": dataset.name,
        "path": str(dataset.path.absolute()),
        "samples": len(dataset),
        "double_share": options.double_share,
    }
    append_event(connection, "project_created", facts)
    items = list(_review_items(dataset, options))
    for first in range(0, len(items), ITEMS_PER_EVENT):
        append_event(connection, "items_added", items[first : first + ITEMS_PER_EVENT])
    if options.controls:
        rows = {
            dataset.samples.row[sample]: answer
            for sample, answer in options.controls.items()
        }
        append_event(connection, "controls_added", rows)
    analyze_tables(connection)


def check_project(connection: Connection, hash: str, what: str) -> bool:
    """Whether the database has a review; StoreError if it is that of something else. what: to review, in words."""
    row = connection.execute(select(tables.project)).first()
    if row is None:
        return False
    if row.hash != hash:
        judged = "" if row.mode is None else f" (--mode {row.mode})"
        raise StoreError(
            f"the database holds the review of {row.name!r} ({row.path}){judged}, and {what}; "
            "use another database (--db)"
        )
    return True


def stored_mode(database: ReviewDatabase) -> Mode | None:
    """How predictions are judged in a review that exists; None for a new or damaged database, and for a dataset."""
    if database.is_missing() or find_damage(database):
        return None
    database.create_tables()
    with database.read() as connection:
        row = connection.execute(select(tables.project)).first()
    mode: Mode | None = None if row is None else row.mode
    return mode


def add_reviewer(
    connection: Connection, name: str, role: Role, *, actor: str = ""
) -> str:
    """Add a reviewer, or give one a new token; returns the token, of which the database has only the hash."""
    if not _NAME.fullmatch(name):
        raise MaskwiseError(
            f"a reviewer's name is a pseudonym of up to 40 letters, digits, dots, - and _, not {name!r}"
        )
    if role not in ROLES:
        raise UnknownNameError("role", role, ROLES)
    before = connection.scalar(
        select(tables.reviewers.c.role).where(tables.reviewers.c.name == name)
    )
    if before is not None and before != role:
        raise MaskwiseError(
            f"{name!r} is registered as {before}; choose another name for a {role}"
        )
    # A new token ends the old one: the table has one hash per reviewer.
    token = secrets.token_urlsafe(TOKEN_BYTES)
    facts = {"name": name, "role": role, "token_hash": hash_token(token)}
    append_event(connection, "reviewer_added", facts, actor=actor)
    return token


def hash_token(token: str) -> str:
    """What the database stores of a token. Tokens are random, so that a plain hash is enough."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def dataset_hash(dataset: Dataset) -> str:
    """A hash of the content of a dataset, from the hashes in its manifest."""
    files = {name: facts.sha256 for name, facts in dataset.manifest.files.items()}
    return hashlib.sha256(msgspec.json.encode(files, order="sorted")).hexdigest()[:32]


def read_controls(path: Path, dataset: Dataset) -> dict[str, ControlAnswer]:
    """The control items of a JSONL file: {"sample": ID, "verdict": "accept" | "fix" | "reject", "edit": ...}."""
    answers = {}
    for number, line in read_lines(path):
        try:
            control = msgspec.json.decode(line, type=ControlLine)
            answers[control.sample] = _to_answer(control, dataset)
        except (msgspec.DecodeError, UnicodeDecodeError, MaskwiseError) as error:
            raise RecordError(f"{path}, line {number}: {error}") from None
    return answers


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not empty, with their numbers."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line


def _to_answer(control: ControlLine, dataset: Dataset) -> ControlAnswer:
    if control.verdict not in ("accept", "fix", "reject"):
        raise InvalidDecisionError(
            f"verdict must be accept, fix or reject, not {control.verdict!r}"
        )
    if (control.verdict == "fix") != (control.edit is not None):
        raise InvalidDecisionError(
            "`fix` needs an edit, and no other verdict takes one"
        )
    sample = dataset.sample(control.sample)
    edit = None
    if control.edit is not None:
        image = dataset.image(sample.image_id)
        regions = dataset.regions_of(sample.image_id)
        edit = apply_edit(
            sample, regions, control.edit, size=(image.height, image.width)
        )
    return msgspec.convert(
        {"verdict": control.verdict, "reason": control.reason, "edit": edit},
        ControlAnswer,
    )


def _review_items(
    dataset: Dataset, options: ProjectOptions
) -> Iterator[dict[str, Any]]:
    """All samples: those that were named first, then flagged ones, otherwise in the order of the dataset.

    item: row of the sample. place: in the queue. needed: how many reviews.
    """
    named = dict.fromkeys(dataset.samples.row[sample] for sample in options.first)
    seed = dataset_hash(dataset)
    everything = dict.fromkeys(range(len(dataset)))
    # A row that occurs again keeps its first place.
    order = named | _flagged_rows(dataset) | everything
    for place, row in enumerate(order):
        sample = dataset.samples.id[row]
        double = _is_double(seed, sample, options.double_share)
        needed = 2 if double else 1
        facts = {"item": row, "sample": sample, "place": place, "needed": needed}
        if sample in options.first:
            facts["doubts"] = msgspec.json.encode(options.first[sample]).decode()
        yield facts


def _flagged_rows(dataset: Dataset) -> dict[int, None]:
    if FLAGS_TAG not in dataset.samples.tag_names:
        return {}
    return {row: None for row, sample in enumerate(dataset) if sample_flags(sample)}


def _is_double(seed: str, sample: str, share: float) -> bool:
    """Whether two reviewers decide about a sample: chosen by a hash, so that it does not depend on the order."""
    # 48 bits of the hash as a number from 0 to 1: exact in floating point.
    digest = hashlib.sha256(f"{seed}/{sample}".encode()).digest()
    return int.from_bytes(digest[:6], "big") < share * 2**48


def find_reviewer(connection: Connection, token: str) -> Any:
    """The row of the reviewer with this token, or None."""
    same = tables.reviewers.c.token_hash == hash_token(token)
    return connection.execute(select(tables.reviewers).where(same)).first()
