"""Review in Label Studio: write the items as its tasks, and import what people changed there as decisions.

A task is one image with its regions. A sample whose target masks were changed becomes a fix with those masks, exactly
as Label Studio exported them. A sample whose masks are unchanged becomes an acceptance if a person worked on its task
(the annotation has a `lead_time`); otherwise it stays open.
"""

import hashlib
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import UNSET
from sqlalchemy import select

from maskwise.formats import find_format
from maskwise.formats.format_reader import convert_annotations
from maskwise.formats.format_writer import write_dataset
from maskwise.formats.json_files import read_json
from maskwise.formats.labelstudio import TASKS, LabelStudioTask
from maskwise.review import tables
from maskwise.review.decisions import ReviewConflictError
from maskwise.review.edits import InvalidDecisionError
from maskwise.review.queue import Reviewer
from maskwise.review.records import NewDecision, SampleEdit, TargetEdit
from maskwise.review.review import Review
from maskwise.schema import Region, Sample
from maskwise.store import Dataset

FORMAT = "labelstudio"


def write_labelstudio(review: Review, out: Path, *, with_images: bool = True) -> int:
    """Write the items that are still open or disputed as Label Studio tasks; returns the number of samples."""
    items = tables.items.c
    with review.database.read() as connection:
        query = (
            select(items.item)
            .where(
                items.status.in_(("open", "disputed")),
                # Additions are not in the dataset, and are checked on the page.
                items.added.is_(None),
            )
            .order_by(items.item)
        )
        rows = list(connection.scalars(query))
    write_dataset(review.dataset.take(rows), FORMAT, out, with_images=with_images)
    return len(rows)


def import_labelstudio(
    review: Review, path: Path, reviewer: Reviewer
) -> dict[str, int]:
    """Store what an export of Label Studio says, as decisions of a reviewer; returns counts.

    Importing a file again changes nothing. Counts: accept, fix, untouched (nobody worked on the task), unknown (not in
    the dataset), conflict (somebody else has the item, or it was decided), invalid (a target was removed that the
    answer names).
    """
    counts: Counter[str] = Counter(
        accept=0, fix=0, untouched=0, unknown=0, conflict=0, invalid=0
    )
    with tempfile.TemporaryDirectory() as folder:
        convert_annotations(
            find_format(FORMAT), path, Path(folder) / "data", with_images=False
        )
        imported = Dataset.open(Path(folder) / "data")
        for decision in _decisions(
            review, imported, _worked_on(path), reviewer, counts
        ):
            try:
                review.decide(reviewer, decision)
                counts[decision.verdict] += 1
            except ReviewConflictError:
                counts["conflict"] += 1
            except InvalidDecisionError:
                counts["invalid"] += 1
    return dict(counts)


def _worked_on(path: Path) -> set[str]:
    """Ids of the images on which a person worked."""
    file = path / TASKS if path.is_dir() else path
    images = set()
    for task in read_json(file, list[LabelStudioTask]):
        for annotation in task.annotations:
            if annotation.lead_time is not None and not annotation.was_cancelled:
                images.add(task.data.maskwise.id)
    return images


def _decisions(
    review: Review,
    imported: Dataset,
    worked_on: set[str],
    reviewer: Reviewer,
    counts: "Counter[str]",
) -> Iterator[NewDecision]:
    for sample in imported:
        row = review.dataset.samples.row.get(sample.id)
        if row is None:
            counts["unknown"] += 1
            continue
        edit = _changes(review.dataset[row], sample)
        if edit is None and sample.image_id not in worked_on:
            counts["untouched"] += 1
            continue
        content = msgspec.json.encode((reviewer.name, sample.id, edit))
        id = uuid.UUID(bytes=hashlib.sha256(content).digest()[:16])
        yield NewDecision(
            id=id, item=row, verdict="accept" if edit is None else "fix", edit=edit
        )


def _changes(original: Sample, changed: Sample) -> SampleEdit | None:
    """The edit that gives the original the masks of the changed sample; None if no mask differs."""
    regions = {region.id: region for region in changed.targets}
    edits = []
    differs = False
    for region in original.targets:
        if region.id not in regions:
            differs = True
            continue
        edit = _change(region, regions[region.id])
        has_changes = edit.visible is not UNSET or edit.amodal is not UNSET
        differs = differs or has_changes
        edits.append(edit)
    return SampleEdit(targets=edits) if differs else None


def _change(original: Region, changed: Region) -> TargetEdit:
    """The edit of one target: only the masks that differ."""
    same_visible = original.visible == changed.visible
    same_amodal = original.amodal == changed.amodal
    return TargetEdit(
        id=original.id,
        visible=UNSET if same_visible else changed.visible,
        amodal=UNSET if same_amodal else changed.amodal,
    )
