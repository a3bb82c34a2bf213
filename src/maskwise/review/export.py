"""Write the accepted samples of a review as a dataset, with who decided what.

The new folder holds the samples that were accepted or fixed. Open and disputed ones are left out and counted, as are
rejected ones. The tag `review` of a sample says `accepted` or `fixed`, the tag `reviewed_by` names the pseudonyms.
`provenance.jsonl` in the folder has one line per sample of the source, with every decision that counts.
"""

import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import select

from maskwise.builder.lineage import AGREEMENT, PROVENANCE, REVIEWED
from maskwise.builder.lineage import read_provenance as read_lines
from maskwise.errors import StoreError
from maskwise.review import tables
from maskwise.review.additions import decode_added, to_added_sample
from maskwise.review.audit_log import decode_edit, to_iso
from maskwise.review.edits import to_sample
from maskwise.review.items import FLAGS_TAG
from maskwise.review.records import ControlAnswer, EditedSample, Verdict
from maskwise.review.region_versions import merge_region_versions
from maskwise.review.review import Review
from maskwise.review.statistics import compute_review_stats
from maskwise.schema import Sample
from maskwise.store import Dataset, DatasetWriter
from maskwise.store.folder import refuse_source_folder

EXPORTED = ("accepted", "fixed", "added")
"""The statuses of samples that are written; open, disputed and rejected ones are counted. `added`: by a reviewer, and
checked by nobody yet; only on request.
"""

UNCHECKED = "unchecked"
"""The status of additions about which nobody has decided."""

REJECTED = "rejected"
"""The status of samples that a corrected dataset lacks."""


class ProvenanceDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision that counts. reviewer: a pseudonym."""

    reviewer: str
    verdict: Verdict
    kind: str
    at: str
    reason: str | None = None
    note: str = ""


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was decided about a sample. decided_by: `review`, `adjudication` or `control`; added_by: the reviewer who
    added it; renamed: ids of regions; origin: who wrote the sample, where its dataset says so.
    """

    sample: str
    status: str
    origin: dict[str, Any] = {}
    decided_by: str | None = None
    decisions: list[ProvenanceDecision] = []
    added_by: str | None = None
    renamed: dict[str, str] = {}


class ExportSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples of each status there were; accepted and fixed ones were written."""

    out: str
    written: int
    images: int
    statuses: dict[str, int]


def export_review(
    review: Review,
    out: str | os.PathLike[str],
    *,
    keep_undecided: bool = False,
    overwrite: bool = False,
    unchecked: bool = False,
) -> ExportSummary:
    """Write the accepted dataset as the new folder `out`.

    keep_undecided: also samples without a decision, as they are: the whole dataset, corrected where people looked.
    unchecked: also additions that nobody has checked.
    """
    dataset = review.dataset
    refuse_source_folder(Path(out), [dataset.path])
    lines, edits = _read_decisions(review)
    additions = _read_additions(review)
    for sample in itertools.chain.from_iterable(additions.values()):
        line = lines[sample.id]
        if line.status == "open":
            status = "added" if unchecked else UNCHECKED
            lines[sample.id] = msgspec.structs.replace(line, status=status)
    statuses = Counter(line.status for line in lines.values())
    if not any(statuses[status] for status in (*EXPORTED, REJECTED)):
        raise StoreError(
            f"nothing to export: no sample of {dataset.path} was decided yet"
        )
    if not keep_undecided and not any(statuses[status] for status in EXPORTED):
        raise StoreError(
            f"nothing to export: no sample of {dataset.path} was accepted or fixed yet"
        )
    written_statuses = (
        set(statuses) - {REJECTED, UNCHECKED} if keep_undecided else EXPORTED
    )
    root = None if dataset.image_root is None else str(dataset.image_root.resolve())
    origins = read_lines(dataset.path)
    about = dict(dataset.manifest.about) | {
        REVIEWED: _describe(statuses),
        AGREEMENT: _describe_agreement(review),
    }
    written = 0
    images = 0
    with (
        DatasetWriter(
            out, name=dataset.name, image_root=root, about=about, overwrite=overwrite
        ) as writer,
        open(writer.folder / PROVENANCE, "wb") as file,
    ):
        for image, originals in dataset.groups():
            samples = [*originals, *additions.get(image.id, ())]
            exported = [
                _decided_sample(sample, lines[sample.id], edits.get(sample.id))
                for sample in samples
                if lines[sample.id].status in written_statuses
            ]
            renamed = _write_image(writer, dataset, image.id, exported)
            written += len(exported)
            images += bool(exported)
            for sample in samples:
                line = msgspec.structs.replace(
                    lines[sample.id],
                    origin=origins.get(sample.id, {}),
                    renamed=renamed.get(sample.id, {}),
                )
                file.write(msgspec.json.encode(line) + b"\n")
    return ExportSummary(
        out=str(out), written=written, images=images, statuses=dict(statuses)
    )


def _write_image(
    writer: DatasetWriter, dataset: Dataset, image: str, samples: Sequence[Sample]
) -> dict[str, dict[str, str]]:
    """Write an image with its exported samples, if there are any; returns the renamed regions of each sample."""
    if not samples:
        return {}
    originals = dataset.regions_of(image)
    regions, fitting, renamed = merge_region_versions(originals, samples)
    data = dataset.images.table["data"][dataset.images.row[image]].as_py()
    writer.add_image(dataset.image(image), regions, data)
    for sample in fitting:
        writer.add_sample(sample)
    return renamed


def _decided_sample(
    sample: Sample, line: Provenance, edit: EditedSample | None
) -> Sample:
    """The sample as it was decided, with tags that say so."""
    final = sample if edit is None else to_sample(sample, edit)
    tags = {name: value for name, value in sample.tags.items() if name != FLAGS_TAG}
    tags["review"] = line.status
    reviewers = {decision.reviewer for decision in line.decisions}
    if reviewers:
        tags["reviewed_by"] = ",".join(sorted(reviewers))
    return msgspec.structs.replace(final, tags=tags)


def _read_decisions(
    review: Review,
) -> tuple[dict[str, Provenance], dict[str, EditedSample]]:
    """What was decided about every sample, and the content of fixes, both by sample id."""
    made = tables.decisions
    counting = (
        select(made)
        .where(made.c.undone.is_(False), made.c.verdict != "skip")
        .order_by(made.c.seq)
    )
    with review.database.read() as connection:
        items = connection.execute(select(tables.items)).all()
        rows = connection.execute(counting).all()
    rows_by_item: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        rows_by_item[row.item].append(row)
    lines = {}
    edits = {}
    for item in items:
        line, edit = _to_provenance(item, rows_by_item[item.item])
        lines[item.sample] = line
        if edit is not None:
            edits[item.sample] = edit
    return lines, edits


def _read_additions(review: Review) -> dict[str, list[Sample]]:
    """What reviewers added and did not withdraw, by image."""
    items = tables.items.c
    query = select(items.added).where(
        items.added.is_not(None), items.status != "withdrawn"
    )
    additions: dict[str, list[Sample]] = defaultdict(list)
    with review.database.read() as connection:
        for text in connection.scalars(query.order_by(items.item)):
            added = decode_added(text)
            assert added is not None
            additions[added.image].append(to_added_sample(added))
    return additions


def _to_provenance(
    item: Any, rows: Sequence[Any]
) -> tuple[Provenance, EditedSample | None]:
    """What was decided about an item, and the content of a fix. item, rows: of the database."""
    if item.control is not None:
        answer = msgspec.json.decode(item.control, type=ControlAnswer)
        line = Provenance(sample=item.sample, status=item.status, decided_by="control")
        return line, answer.edit
    decisions = [
        ProvenanceDecision(
            reviewer=row.reviewer,
            verdict=row.verdict,
            kind=row.kind,
            at=to_iso(row.at),
            reason=row.reason,
            note=row.note,
        )
        for row in rows
    ]
    final = next((row for row in rows if row.id == item.final), None)
    added = decode_added(item.added)
    line = Provenance(
        sample=item.sample,
        status=item.status,
        decided_by=None if final is None else final.kind,
        decisions=decisions,
        added_by=None if added is None else added.reviewer,
    )
    return line, None if final is None else decode_edit(final.edit)


def _describe(statuses: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))


def _describe_agreement(review: Review) -> str:
    """How far reviewers of the same samples agreed, in words."""
    with review.database.read() as connection:
        agreement = compute_review_stats(connection).agreement
    if not agreement.items:
        return "no sample was reviewed twice"
    text = f"{agreement.equal} of {agreement.items} samples reviewed twice have equal verdicts"
    if agreement.alpha is not None:
        text += f", Krippendorff's alpha {agreement.alpha:.3f}"
    if agreement.mask_iou is not None:
        text += f", mean IoU of {agreement.masks} masks that two edited {agreement.mask_iou:.3f}"
    return text


def read_provenance(dataset: str | os.PathLike[str]) -> list[Provenance]:
    """The lines of `provenance.jsonl` in an exported folder."""
    lines = (Path(dataset) / PROVENANCE).read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Provenance) for line in lines]
