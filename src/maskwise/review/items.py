"""What a reviewer is shown: the sample with its image, masks, flags and problems, and the reviewer's draft."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from sqlalchemy import Connection, select

from maskwise.language.intent import CueSpan, classify_intent
from maskwise.masks import Mask
from maskwise.review import tables
from maskwise.review.audit_log import decode_edit, to_iso
from maskwise.review.judged_runs import JudgedRuns
from maskwise.review.mask_problems import MaskProblem, find_mask_problems
from maskwise.review.records import DecisionDraft, DecisionFacts, EditedSample, Verdict
from maskwise.schema import Answer, MaskType, Prediction, Region, Sample
from maskwise.store import Dataset

IMAGE_URL = "/review/api/images/"
"""Where the page finds an image; the row of the image follows."""

FLAGS_TAG = "flags"
"""The tag in which the builder names, separated by commas, why a person should look at a sample."""


class ItemImage(msgspec.Struct, frozen=True, kw_only=True):
    """The image of an item."""

    id: str
    url: str
    width: int
    height: int


class ItemRegion(msgspec.Struct, frozen=True, kw_only=True):
    """A region of an item; masks that are not known are null."""

    id: str
    name: str
    visible: Mask | None
    amodal: Mask | None
    part_of: str | None
    order: int | None


class BlindOpinion(msgspec.Struct, frozen=True, kw_only=True):
    """A decision shown for adjudication, without its reviewer."""

    label: str
    verdict: Verdict
    reason: str | None
    note: str
    edit: EditedSample | None


class JudgedRegion(msgspec.Struct, frozen=True, kw_only=True):
    """A region of a prediction. Its score is not shown: people judge what they see."""

    name: str | None
    visible: Mask | None
    amodal: Mask | None


class JudgedPrediction(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction to judge, without anything that names its run. missing: there is none; why would name the model."""

    answer: Answer | None
    mask_type: MaskType | None
    regions: list[JudgedRegion]
    no_target: bool
    missing: bool


class ItemView(msgspec.Struct, frozen=True, kw_only=True):
    """An item as a reviewer sees it; `docs/reference/review_api.md` describes the fields."""

    item: int
    sample: str
    kind: Literal["review", "adjudication", "compare", "rate"]
    lease_expires: str | None
    image: ItemImage
    question: str
    cues: list[CueSpan]
    answer: Answer | None
    mask_type: MaskType | None
    targets: list[ItemRegion]
    regions: list[ItemRegion]
    ignore: Mask | None
    tags: dict[str, str]
    flags: list[str]
    doubts: list[str]
    problems: list[MaskProblem]
    draft: DecisionDraft | None
    opinions: list[BlindOpinion]
    candidates: list[JudgedPrediction]


class ReviewerProgress(msgspec.Struct, frozen=True, kw_only=True):
    """decided: decisions of a reviewer. open: items of the whole review that are not settled."""

    decided: int
    open: int


class QueueResult(msgspec.Struct, frozen=True, kw_only=True):
    """The items that a reviewer holds."""

    items: list[ItemView]
    progress: ReviewerProgress


class DecisionResult(QueueResult, frozen=True, kw_only=True):
    """A stored decision, and the items that the reviewer holds now. replayed: it was stored before."""

    decision: DecisionFacts
    replayed: bool


class UndoResult(msgspec.Struct, frozen=True, kw_only=True):
    """undone: the id of the decision that was taken back. replayed: it was taken back before."""

    undone: str
    item: ItemView
    replayed: bool
    progress: ReviewerProgress


def view_item(
    dataset: Dataset,
    item: int,
    sample: Sample,
    *,
    expires: float | None,
    draft: DecisionDraft | None,
    opinions: Sequence[BlindOpinion] | None,
    doubts: str | None = None,
) -> ItemView:
    """An item with its sample. opinions: for an adjudication, the decisions to choose from. doubts: as in the table."""
    row = dataset.images.row[sample.image_id]
    # Targets come from the sample, whose version of a region may differ from that of the image.
    shown = {target.id for target in sample.targets}
    others = [region for region in dataset.regions_of(row) if region.id not in shown]
    (intent,) = classify_intent([sample.question])
    return ItemView(
        item=item,
        sample=sample.id,
        kind="review" if opinions is None else "adjudication",
        lease_expires=None if expires is None else to_iso(expires),
        image=_view_image(dataset, row),
        question=sample.question,
        cues=list(intent.spans),
        answer=sample.answer,
        mask_type=sample.mask_type,
        targets=[_view_region(region) for region in sample.targets],
        regions=[_view_region(region) for region in others],
        ignore=sample.ignore,
        tags=sample.tags,
        flags=sample_flags(sample),
        doubts=[] if doubts is None else msgspec.json.decode(doubts, type=list[str]),
        problems=find_mask_problems(sample.targets),
        draft=draft,
        opinions=list(opinions or ()),
        candidates=[],
    )


def view_judgment(
    runs: JudgedRuns,
    item: Any,
    *,
    expires: float | None,
    draft: DecisionDraft | None,
) -> ItemView:
    """One or two predictions to judge. item: row of the table `items`.

    Neither the runs nor the ground truth can be seen, nor what a program takes the question for.
    """
    sample = runs.dataset[item.row]
    sides = [item.left] if item.right is None else [item.left, item.right]
    return ItemView(
        item=item.item,
        sample=item.sample,
        kind="rate" if item.right is None else "compare",
        lease_expires=None if expires is None else to_iso(expires),
        image=_view_image(runs.dataset, int(runs.dataset.samples.image[item.row])),
        question=sample.question,
        cues=[],
        answer=None,
        mask_type=None,
        targets=[],
        regions=[],
        ignore=None,
        tags={},
        flags=[],
        doubts=[],
        problems=[],
        draft=draft,
        opinions=[],
        candidates=[_view_prediction(runs.prediction(run, item.row)) for run in sides],
    )


def _view_prediction(prediction: Prediction | None) -> JudgedPrediction:
    if prediction is None or prediction.error is not None:
        return JudgedPrediction(
            answer=None, mask_type=None, regions=[], no_target=False, missing=True
        )
    regions = [
        JudgedRegion(name=region.name, visible=region.visible, amodal=region.amodal)
        for region in prediction.regions
    ]
    return JudgedPrediction(
        answer=prediction.answer,
        mask_type=prediction.mask_type,
        regions=regions,
        no_target=prediction.no_target,
        missing=False,
    )


def _view_image(dataset: Dataset, row: int) -> ItemImage:
    image = dataset.image(row)
    return ItemImage(
        id=image.id, url=f"{IMAGE_URL}{row}", width=image.width, height=image.height
    )


def blind_opinions(connection: Connection, item: int) -> list[BlindOpinion]:
    """The reviews of a disputed item, labelled A, B, ... in an order that says nothing about who made them."""
    made = tables.decisions.c
    query = select(made.id, made.verdict, made.reason, made.note, made.edit).where(
        made.item == item,
        made.kind == "review",
        made.undone.is_(False),
        made.verdict != "skip",
    )
    # The ids are random, so their order is, too.
    rows: Sequence[Any] = connection.execute(query.order_by(made.id)).all()
    return [
        BlindOpinion(
            label=chr(ord("A") + number),
            verdict=row.verdict,
            reason=row.reason,
            note=row.note,
            edit=decode_edit(row.edit),
        )
        for number, row in enumerate(rows)
    ]


def sample_flags(sample: Sample) -> list[str]:
    """Why the builder wants a person to look at a sample; empty for most."""
    return [
        flag.strip()
        for flag in sample.tags.get(FLAGS_TAG, "").split(",")
        if flag.strip()
    ]


def _view_region(region: Region) -> ItemRegion:
    return ItemRegion(
        id=region.id,
        name=region.name,
        visible=region.visible,
        amodal=region.amodal,
        part_of=region.part_of,
        order=region.order,
    )
