"""Write the accepted samples of a review as a dataset, with who decided what.

The new folder holds the samples that were accepted or fixed. Open and disputed ones are left out and counted, as are
rejected ones. The tag `review` of a sample says `accepted` or `fixed`, the tag `reviewed_by` names the pseudonyms.
`provenance.jsonl` in the folder has one line per sample of the source, with every decision that counts.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import select

from maskwise.errors import StoreError
from maskwise.review import tables
from maskwise.review.audit_log import decode_edit, to_iso
from maskwise.review.edits import to_sample
from maskwise.review.items import FLAGS_TAG
from maskwise.review.records import ControlAnswer, EditedSample, Verdict
from maskwise.review.region_versions import merge_region_versions
from maskwise.review.review import Review
from maskwise.schema import Sample
from maskwise.store import Dataset, DatasetWriter

PROVENANCE = "provenance.jsonl"
EXPORTED = ("accepted", "fixed")


class ProvenanceDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decision that counts. reviewer: a pseudonym."""

    reviewer: str
    verdict: Verdict
    kind: str
    at: str
    reason: str | None = None
    note: str = ""


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was decided about a sample. decided_by: `review`, `adjudication` or `control`; renamed: ids of regions."""

    sample: str
    status: str
    decided_by: str | None = None
    decisions: list[ProvenanceDecision] = []
    renamed: dict[str, str] = {}


class ExportSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples of each status there were; accepted and fixed ones were written."""

    out: str
    written: int
    images: int
    statuses: dict[str, int]


class _Item(msgspec.Struct, frozen=True, kw_only=True):
    """What the database has about an item. edit: the content of a fix."""

    status: str
    decided_by: str | None
    decisions: list[ProvenanceDecision]
    edit: EditedSample | None


def export_review(
    review: Review, out: str | os.PathLike[str], *, overwrite: bool = False
) -> ExportSummary:
    """Write the accepted dataset as the new folder `out`."""
    dataset = review.dataset
    items = _read_items(review)
    statuses = Counter(item.status for item in items.values())
    if not any(statuses[status] for status in EXPORTED):
        raise StoreError(
            f"nothing to export: no sample of {dataset.path} was accepted or fixed yet"
        )
    root = None if dataset.image_root is None else str(dataset.image_root.resolve())
    about = dict(dataset.manifest.about) | {"reviewed": _describe(statuses)}
    written = images = 0
    with (
        DatasetWriter(
            out, name=dataset.name, image_root=root, about=about, overwrite=overwrite
        ) as writer,
        open(writer.folder / PROVENANCE, "wb") as lines,
    ):
        for image, samples in dataset.groups():
            found = [
                (sample, items[dataset.samples.row[sample.id]]) for sample in samples
            ]
            count, renamed = _write_image(writer, dataset, image.id, found)
            written = written + count
            images = images + bool(count)
            for sample, item in found:
                line = _provenance(sample, item, renamed.get(sample.id, {}))
                lines.write(msgspec.json.encode(line) + b"\n")
    return ExportSummary(
        out=str(out), written=written, images=images, statuses=dict(statuses)
    )


def _write_image(
    writer: DatasetWriter,
    dataset: Dataset,
    image: str,
    found: Sequence[tuple[Sample, _Item]],
) -> tuple[int, dict[str, dict[str, str]]]:
    """Write an image with its exported samples; returns their number, and the renamed regions of each sample."""
    exported = [
        _exported(sample, item) for sample, item in found if item.status in EXPORTED
    ]
    if not exported:
        return 0, {}
    merged = merge_region_versions(dataset.regions_of(image), exported)
    data = dataset.images.table["data"][dataset.images.row[image]].as_py()
    writer.add_image(dataset.image(image), merged.regions, data)
    for sample in merged.samples:
        writer.add_sample(sample)
    return len(exported), merged.renamed


def _exported(sample: Sample, item: _Item) -> Sample:
    """The sample as it was decided, with tags that say so."""
    final = sample if item.edit is None else to_sample(sample, item.edit)
    tags = {name: value for name, value in sample.tags.items() if name != FLAGS_TAG}
    tags["review"] = item.status
    if item.decisions:
        tags["reviewed_by"] = ",".join(
            sorted({decision.reviewer for decision in item.decisions})
        )
    return msgspec.structs.replace(final, tags=tags)


def _read_items(review: Review) -> dict[int, _Item]:
    """Every item with its status and decisions."""
    with review.database.read() as connection:
        items = connection.execute(select(tables.items)).all()
        made = tables.decisions
        rows = connection.execute(
            select(made).where(made.c.undone.is_(False)).order_by(made.c.seq)
        ).all()
    by_item: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        if row.verdict != "skip":
            by_item[row.item].append(row)
    return {item.item: _to_item(item, by_item[item.item]) for item in items}


def _to_item(item: Any, rows: Iterable[Any]) -> _Item:
    decisions = {row.id: row for row in rows}
    if item.control is not None:
        edit = msgspec.json.decode(item.control, type=ControlAnswer).edit
        return _Item(status=item.status, decided_by="control", decisions=[], edit=edit)
    final = decisions.get(item.final)
    edit = None if final is None else decode_edit(final.edit)
    shown = [
        ProvenanceDecision(
            reviewer=row.reviewer,
            verdict=row.verdict,
            kind=row.kind,
            at=to_iso(row.at),
            reason=row.reason,
            note=row.note,
        )
        for row in decisions.values()
    ]
    decided_by = None if final is None else final.kind
    return _Item(status=item.status, decided_by=decided_by, decisions=shown, edit=edit)


def _provenance(sample: Sample, item: _Item, renamed: dict[str, str]) -> Provenance:
    return Provenance(
        sample=sample.id,
        status=item.status,
        decided_by=item.decided_by,
        decisions=item.decisions,
        renamed=renamed,
    )


def _describe(statuses: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))


def read_provenance(dataset: str | os.PathLike[str]) -> list[Provenance]:
    """The lines of `provenance.jsonl` in an exported folder."""
    lines = (Path(dataset) / PROVENANCE).read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Provenance) for line in lines]
