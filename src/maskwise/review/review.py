"""A dataset under review: the dataset, its database, and what reviewers do with them.

review = Review(dataset, ReviewDatabase("DATASET.review.sqlite"))
review.create(ProjectOptions(double_share=0.2))
token = review.add_reviewer("ada", "reviewer")
reviewer = review.find_reviewer(token)
for item in review.queue(reviewer, 3): ...   # leases items
review.decide(reviewer, decision)            # appends to the audit log
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from maskwise.errors import MaskwiseError, StoreError
from maskwise.masks import Mask
from maskwise.review import decisions, project, tables
from maskwise.review.additions import (
    AddedFacts,
    add_sample,
    decode_added,
    make_addition,
    to_added_sample,
    withdraw_sample,
)
from maskwise.review.audit_log import Event, page_of_events
from maskwise.review.database import DatabaseUnavailableError, ReviewDatabase
from maskwise.review.edits import (
    InvalidDecisionError,
    apply_edit,
    changes_nothing,
    check_decision,
    check_mask,
)
from maskwise.review.integrity import check_integrity, find_damage, rebuild_review
from maskwise.review.items import (
    BlindOpinion,
    DecisionResult,
    ItemView,
    ReviewerProgress,
    UndoResult,
    blind_opinions,
    view_item,
    view_judgment,
)
from maskwise.review.judged_runs import JudgedRuns
from maskwise.review.judgment_results import (
    JudgmentResults,
    compute_judgment_results,
)
from maskwise.review.judgments import (
    Judgment,
    JudgmentOptions,
    create_judgments,
    read_judgments,
)
from maskwise.review.project import ProjectOptions
from maskwise.review.queue import (
    Lease,
    Reviewer,
    count_items,
    count_open,
    find_item,
    find_lease,
    lease_items,
    release_leases,
    renew_leases,
)
from maskwise.review.records import (
    DecisionDraft,
    DecisionFacts,
    EditedSample,
    Mode,
    NewDecision,
    NewSample,
    Role,
    SampleEdit,
)
from maskwise.review.refine import Click, Refiner
from maskwise.review.statistics import ReviewStats, compute_review_stats
from maskwise.schema import Sample
from maskwise.store import Dataset

ATTEMPTS = 4
"""How often a transaction is tried: two requests of one reviewer may collide on a constraint."""

T = TypeVar("T")


class BlindItemError(MaskwiseError):
    """An item that this reviewer may not see: review is blind."""


class UnknownItemError(MaskwiseError):
    """A number that is no item."""


class Review:
    """A dataset under review, or predictions for it. lease_seconds: how long an item is kept for a reviewer who says
    nothing. runs: whose predictions are judged; None to check the dataset.
    """

    def __init__(
        self,
        dataset: Dataset,
        database: ReviewDatabase,
        *,
        lease_seconds: float = 900.0,
        runs: JudgedRuns | None = None,
    ) -> None:
        self.dataset = dataset if runs is None else runs.dataset
        self.database = database
        self.runs = runs
        self.mode: Mode = "check" if runs is None else runs.mode
        self.lease_seconds = lease_seconds
        self._items = 0
        self._open_items = 0
        self._open_until = 0.0

    # -- the project

    def create(
        self,
        options: ProjectOptions | None = None,
        *,
        judgments: JudgmentOptions | None = None,
    ) -> bool:
        """Begin the review, unless the database has it already. Returns whether it was begun now.

        options: to check a dataset. judgments: to judge predictions.
        """
        self.database.create_tables()

        def begin(connection: Connection) -> bool:
            if self._is_begun(connection):
                return False
            if self.runs is None:
                begun = options or ProjectOptions()
                project.create_project(connection, self.dataset, begun)
            else:
                chosen = judgments or JudgmentOptions()
                create_judgments(connection, self.runs, chosen)
            return True

        return self._write(begin)

    def _is_begun(self, connection: Connection) -> bool:
        """Whether the database has this review; StoreError if it has another one."""
        if self.runs is None:
            hash = project.dataset_hash(self.dataset)
            what = f"{self.dataset.path} is another dataset or has changed since"
        else:
            hash = self.runs.hash
            what = "these are other runs, or another mode, or a run has changed since"
        return project.check_project(connection, hash, what)

    def exists(self) -> bool:
        """Whether the database has the review of this dataset; StoreError if it has that of another one."""
        if self.database.is_missing():
            return False
        self.database.create_tables()
        with self.database.read() as connection:
            return self._is_begun(connection)

    def facts(self) -> Any:
        """The row of the project: hash, name, path, samples, double_share."""
        with self.database.read() as connection:
            return connection.execute(select(tables.project)).one()

    def add_reviewer(
        self, name: str, role: Role = "reviewer", *, actor: str = ""
    ) -> str:
        """Add a reviewer, or make a new token for one; returns the token."""
        return self._write(
            lambda connection: project.add_reviewer(connection, name, role, actor=actor)
        )

    def add_reviewers(self, roles: Mapping[str, Role]) -> dict[str, str]:
        """Add all these reviewers, or none if one cannot be added; returns their tokens by name."""
        return self._write(
            lambda connection: {
                name: project.add_reviewer(connection, name, role)
                for name, role in roles.items()
            }
        )

    def reviewers(self) -> dict[str, Role]:
        """The roles of all reviewers, by name."""
        names = tables.reviewers.c
        with self.database.read() as connection:
            return {
                row.name: row.role
                for row in connection.execute(select(names.name, names.role))
            }

    def find_reviewer(self, token: str) -> Reviewer | None:
        """The reviewer with this token."""
        with self.database.read() as connection:
            row = project.find_reviewer(connection, token)
        return None if row is None else Reviewer(row.name, row.role)

    def events(self, after: int, limit: int) -> list[Event]:
        """A page of the audit log."""
        with self.database.read() as connection:
            return page_of_events(connection, after, limit)

    def stats(self) -> ReviewStats:
        """Progress, throughput, agreement and reviewers."""
        with self.database.read() as connection:
            return compute_review_stats(connection)

    def judgments(self) -> list[Judgment]:
        """All judgments of predictions that count, oldest first."""
        with self.database.read() as connection:
            return read_judgments(connection)

    def results(self) -> JudgmentResults:
        """What people say about the runs, and which metrics agree with them."""
        if self.runs is None:
            raise StoreError("this is the review of a dataset; results are about runs")
        numbers = tables.runs.c
        with self.database.read() as connection:
            judgments = read_judgments(connection)
            identical = connection.scalars(
                select(numbers.identical).order_by(numbers.number)
            ).all()
            agreement = compute_review_stats(connection).agreement
        return compute_judgment_results(
            self.runs, judgments, identical=identical, agreement=agreement
        )

    def rebuild(self) -> tuple[int, list[str]]:
        """Make the state again from the audit log; returns the number of events, and what had to be left out."""
        return rebuild_review(self.database)

    def is_damaged(self) -> bool:
        """Whether the database exists and is damaged."""
        return not self.database.is_missing() and bool(find_damage(self.database))

    def check_integrity(self) -> None:
        """DamagedReviewError, which says what is damaged and what to do; nothing is written."""
        check_integrity(self.database, self.arguments)

    @property
    def arguments(self) -> str:
        """What a command is given to open this review."""
        if self.runs is None:
            return str(self.dataset.path)
        return " ".join(["--runs", *(run.location for run in self.runs.runs)])

    # -- the queue

    def queue(self, reviewer: Reviewer, count: int) -> list[ItemView]:
        """Lease items until the reviewer holds `count`; those already held come first."""
        leases = self._write(
            lambda connection: lease_items(
                connection, reviewer, count, seconds=self.lease_seconds
            )
        )
        return self._show(reviewer, leases)

    def progress(self, reviewer: Reviewer) -> ReviewerProgress:
        """How far a reviewer and the whole review are."""
        decided = self.count_decisions(reviewer)
        return ReviewerProgress(decided=decided, open=self.count_open())

    def count_decisions(self, reviewer: Reviewer) -> int:
        """How many decisions of a reviewer count: neither undone nor skips."""
        with self.database.read() as connection:
            return decisions.count_decisions(connection, reviewer.name)

    def count_open(self) -> int:
        """How many items of the review are not settled yet; on large reviews some seconds old."""
        started = time.monotonic()
        if started >= self._open_until:
            with self.database.read() as connection:
                self._open_items = count_open(connection)
            now = time.monotonic()
            # Counting takes longer the larger the review is, so that it may take one fiftieth of the time.
            self._open_until = now + 50 * (now - started)
        return self._open_items

    def item(self, reviewer: Reviewer, item: int) -> ItemView:
        """One item, if the reviewer holds it or has decided about it."""
        self._check_item(item)
        with self.database.read() as connection:
            lease = find_lease(connection, reviewer.name, item)
            if lease is None and not decisions.has_decided(
                connection, reviewer.name, item
            ):
                raise BlindItemError(f"item {item} is not yours")
        if lease is not None:
            return self._show(reviewer, [lease])[0]
        with self.database.read() as connection:
            return self._view(connection, item)

    def renew(
        self, reviewer: Reviewer, renewed: Sequence[int], released: Sequence[int]
    ) -> dict[int, float]:
        """Prolong and give back leases; returns the ends of those still held."""
        for item in (*renewed, *released):
            self._check_item(item)

        def change(connection: Connection) -> dict[int, float]:
            release_leases(connection, reviewer, released)
            return renew_leases(
                connection, reviewer, renewed, seconds=self.lease_seconds
            )

        return self._write(change)

    # -- decisions

    def decide(self, reviewer: Reviewer, decision: NewDecision) -> DecisionResult:
        """Store a decision, and lease `decision.next` items."""
        self._check_item(decision.item)
        check_decision(decision, self.mode)
        edited = None
        if decision.edit is not None:
            edited = self._apply_edit(decision.item, decision.edit)
            if changes_nothing(self._sample(decision.item), edited):
                raise InvalidDecisionError(
                    "the edit changes nothing; accept the sample instead"
                )

        def store(connection: Connection) -> tuple[DecisionFacts, bool, list[Lease]]:
            replayed = decisions.decide(connection, reviewer, decision, edited)
            facts = decisions.find_decision(connection, str(decision.id))
            leases = lease_items(
                connection, reviewer, decision.next, seconds=self.lease_seconds
            )
            return facts, replayed, leases

        facts, replayed, leases = self._write(store)
        return DecisionResult(
            decision=facts,
            replayed=replayed,
            items=self._show(reviewer, leases),
            progress=self.progress(reviewer),
        )

    def undo(
        self, reviewer: Reviewer, id: str, decision: str | None = None
    ) -> UndoResult:
        """Take back a decision, the latest by default; its item is leased to the reviewer again."""
        undone, item, replayed = self._write(
            lambda connection: decisions.undo(
                connection, reviewer, id, decision=decision, seconds=self.lease_seconds
            )
        )
        return UndoResult(
            undone=undone,
            item=self.item(reviewer, item),
            replayed=replayed,
            progress=self.progress(reviewer),
        )

    def add_sample(self, reviewer: Reviewer, new: NewSample) -> AddedFacts:
        """Store a question that a reviewer adds about the image of an item; somebody else checks it."""
        if self.runs is not None:
            raise InvalidDecisionError("questions are added to datasets, not to runs")
        # Review is blind: the image has to be one that this reviewer was given.
        self.item(reviewer, new.item)
        source = self._sample(new.item)
        added = make_addition(self.dataset, source, new, reviewer.name)
        return self._write(
            lambda connection: add_sample(connection, reviewer, new, added)
        )

    def withdraw_sample(self, reviewer: Reviewer, item: int) -> None:
        """Take back an own addition about which nobody has decided."""
        self._check_item(item)
        self._write(lambda connection: withdraw_sample(connection, reviewer, item))

    def save_draft(self, reviewer: Reviewer, item: int, draft: DecisionDraft) -> float:
        """Keep an unfinished decision and renew the lease; returns the time."""
        self._check_item(item)
        check_decision(draft, self.mode)
        if draft.edit is not None:
            self._apply_edit(item, draft.edit)

        def save(connection: Connection) -> float:
            if not renew_leases(
                connection, reviewer, [item], seconds=self.lease_seconds
            ):
                raise BlindItemError(f"item {item} is not yours")
            return decisions.save_draft(connection, reviewer.name, item, draft)

        return self._write(save)

    def discard_draft(self, reviewer: Reviewer, item: int) -> None:
        """Remove a draft."""
        self._check_item(item)
        self._write(
            lambda connection: decisions.discard_draft(connection, reviewer.name, item)
        )

    def history(
        self, reviewer: Reviewer, *, before: int | None, limit: int
    ) -> list[DecisionFacts]:
        """A reviewer's decisions, latest first."""
        with self.database.read() as connection:
            return decisions.list_decisions(
                connection, reviewer.name, before=before, limit=limit
            )

    def refine(
        self,
        reviewer: Reviewer,
        refiner: Refiner,
        *,
        item: int,
        mask: Mask | None,
        points: Sequence[Click],
    ) -> Mask:
        """The mask that a promptable model makes of clicks on the image of an item."""
        image = self.item(reviewer, item).image
        if mask is not None:
            check_mask(mask, (image.height, image.width), "mask")
        for point in points:
            if not (0 <= point.x <= image.width and 0 <= point.y <= image.height):
                raise InvalidDecisionError(
                    f"point {point.x}, {point.y} lies outside the image"
                )
        return refiner.refine(self.dataset.open_image(image.id), mask, points)

    # -- inside

    def _show(self, reviewer: Reviewer, leases: Sequence[Lease]) -> list[ItemView]:
        """Leased items as the reviewer sees them."""
        if not leases:
            return []
        items = [lease.item for lease in leases]
        opinions: dict[int, list[BlindOpinion]] = {}
        with self.database.read() as connection:
            drafts = decisions.read_drafts(connection, reviewer.name, items)
            for lease in leases:
                if lease.kind == "adjudication":
                    opinions[lease.item] = blind_opinions(connection, lease.item)
            return [
                self._view(
                    connection,
                    lease.item,
                    expires=lease.expires,
                    draft=drafts.get(lease.item),
                    opinions=opinions.get(lease.item),
                )
                for lease in leases
            ]

    def _view(
        self,
        connection: Connection,
        item: int,
        *,
        expires: float | None = None,
        draft: DecisionDraft | None = None,
        opinions: list[BlindOpinion] | None = None,
    ) -> ItemView:
        row = find_item(connection, item)
        if self.runs is not None:
            return view_judgment(self.runs, row, expires=expires, draft=draft)
        return view_item(
            self.dataset,
            item,
            self._read_sample(connection, item),
            expires=expires,
            draft=draft,
            opinions=opinions,
            doubts=row.doubts,
        )

    def _sample(self, item: int) -> Sample:
        with self.database.read() as connection:
            return self._read_sample(connection, item)

    def _read_sample(self, connection: Connection, item: int) -> Sample:
        """The sample of an item: of the dataset, or one that a reviewer added."""
        if item < len(self.dataset):
            return self.dataset[item]
        added = decode_added(find_item(connection, item).added)
        assert added is not None
        return to_added_sample(added)

    def _apply_edit(self, item: int, edit: SampleEdit) -> EditedSample:
        sample = self._sample(item)
        image = self.dataset.image(sample.image_id)
        regions = self.dataset.regions_of(sample.image_id)
        return apply_edit(sample, regions, edit, size=(image.height, image.width))

    def _check_item(self, item: int) -> None:
        # Reviewers may have added items since they were counted.
        if not 0 <= item < self._items:
            with self.database.read() as connection:
                self._items = count_items(connection)
        if not 0 <= item < self._items:
            raise UnknownItemError(f"no item {item}: expected 0 to {self._items - 1}")

    def _write(self, work: Callable[[Connection], T]) -> T:
        """Run a transaction. It is repeated where another one was in the way."""
        for _ in range(ATTEMPTS):
            try:
                return self.database.write(work)
            except IntegrityError:
                continue  # Another request of the same reviewer was faster.
        raise DatabaseUnavailableError("other requests were in the way; try again")
