"""Check what a reviewer changed, and apply it to the sample.

Everything is checked on the server: texts, sizes, run lengths and bytes of masks, targets and phrases.
"""

import re
from collections.abc import Iterable

import msgspec
from msgspec import UNSET

from maskwise.errors import MaskwiseError, RecordError, did_you_mean
from maskwise.masks import Mask
from maskwise.review.criteria import CRITERIA
from maskwise.review.reasons import REJECT_REASONS
from maskwise.review.records import (
    MAX_ANSWER,
    MAX_MASK_BYTES,
    VERDICTS,
    DecisionDraft,
    EditedSample,
    Mode,
    NewDecision,
    SampleEdit,
    TargetEdit,
)
from maskwise.schema import Answer, Region, Sample

# Tabs and line feeds are allowed; lone surrogates cannot be encoded as UTF-8.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class InvalidDecisionError(MaskwiseError):
    """A decision, draft or edit with an invalid field."""


def check_decision(decision: NewDecision | DecisionDraft, mode: Mode = "check") -> None:
    """Check the fields that do not depend on the sample."""
    _check_text("note", decision.note)
    if decision.verdict is not None and decision.verdict not in VERDICTS[mode]:
        raise InvalidDecisionError(
            f"verdict {decision.verdict!r} does not fit here; expected one of {', '.join(VERDICTS[mode])}"
        )
    if len(set(decision.criteria)) != len(decision.criteria):
        raise InvalidDecisionError("a criterion is named twice")
    for name in (*decision.ratings, *decision.criteria):
        if name not in CRITERIA:
            raise InvalidDecisionError(
                f"criterion {name!r} is unknown; known: {', '.join(CRITERIA)}"
            )
    if decision.reason is not None and decision.reason not in REJECT_REASONS:
        raise InvalidDecisionError(
            f"reason {decision.reason!r} is unknown; known: {', '.join(REJECT_REASONS)}"
            f"{did_you_mean(decision.reason, REJECT_REASONS)}"
        )
    if isinstance(decision, DecisionDraft):
        return
    if (decision.verdict == "reject") != (decision.reason is not None):
        raise InvalidDecisionError(
            "`reject` needs a reason, and no other verdict takes one"
        )
    if (decision.verdict == "rated") != bool(decision.ratings):
        raise InvalidDecisionError(
            "`rated` needs ratings, and no other verdict takes them"
        )
    if decision.criteria and mode != "compare":
        raise InvalidDecisionError("only a comparison says which criteria decided it")
    if (decision.verdict == "fix") != (decision.edit is not None):
        raise InvalidDecisionError(
            "`fix` needs an edit, and no other verdict takes one"
        )


def apply_edit(
    sample: Sample,
    regions: Iterable[Region],
    edit: SampleEdit,
    *,
    size: tuple[int, int],
) -> EditedSample:
    """The sample after an edit. regions: those of its image. size: height and width of the image."""
    known = {region.id: region for region in regions}
    known |= {region.id: region for region in sample.targets}
    question = sample.question if edit.question is UNSET else edit.question
    answer = sample.answer if edit.answer is UNSET else edit.answer
    mask_type = sample.mask_type if edit.mask_type is UNSET else edit.mask_type
    _check_text("question", question)
    _check_answer(answer)
    targets = (
        sample.targets
        if edit.targets is UNSET
        else tuple(_apply_target(known, target, size) for target in edit.targets)
    )
    if len({target.id for target in targets}) != len(targets):
        raise InvalidDecisionError("a region occurs twice among the targets")
    try:
        # The record checks sizes, and that phrases refer to targets.
        Sample(
            id=sample.id,
            image_id=sample.image_id,
            question=question,
            answer=answer,
            targets=targets,
        )
    except RecordError as error:
        raise InvalidDecisionError(str(error)) from None
    return EditedSample(
        question=question, mask_type=mask_type, targets=targets, answer=answer
    )


def changes_nothing(sample: Sample, edited: EditedSample) -> bool:
    """Whether an edited sample equals the original."""
    return edited == EditedSample(
        question=sample.question,
        mask_type=sample.mask_type,
        targets=sample.targets,
        answer=sample.answer,
    )


def to_sample(sample: Sample, edited: EditedSample) -> Sample:
    """The sample with the content of an edit."""
    return Sample(
        id=sample.id,
        image_id=sample.image_id,
        question=edited.question,
        mask_type=edited.mask_type,
        targets=edited.targets,
        answer=edited.answer,
        ignore=sample.ignore,
        tags=sample.tags,
        other_targets=sample.other_targets,
        turns=sample.turns,
    )


def check_mask(mask: Mask, size: tuple[int, int], name: str) -> None:
    """Refuse a mask of another size than the image, or with too many bytes. Its runs were checked when it was made."""
    if mask.size != size:
        raise InvalidDecisionError(
            f"{name}: expected a mask of height and width {size}, found {mask.size}"
        )
    if len(mask.counts) > MAX_MASK_BYTES:
        raise InvalidDecisionError(
            f"{name}: the mask has {len(mask.counts)} bytes, more than the limit of {MAX_MASK_BYTES}"
        )


def _apply_target(
    known: dict[str, Region], edit: TargetEdit, size: tuple[int, int]
) -> Region:
    _check_text("target id", edit.id)
    if edit.name is not UNSET:
        _check_text("target name", edit.name)
    for name, mask in (("visible", edit.visible), ("amodal", edit.amodal)):
        if isinstance(mask, Mask):
            check_mask(mask, size, f"target {edit.id!r}, {name}")
    changes = {}
    for field in ("name", "visible", "amodal"):
        value = getattr(edit, field)
        if value is not UNSET:
            changes[field] = value
    if edit.id not in known and "name" not in changes:
        raise InvalidDecisionError(
            f"target {edit.id!r} is a new region and needs a name"
        )
    try:
        if edit.id in known:
            return msgspec.structs.replace(known[edit.id], **changes)
        return Region(id=edit.id, **changes)
    except RecordError as error:
        raise InvalidDecisionError(str(error)) from None


def _check_answer(answer: Answer | None) -> None:
    if answer is None:
        return
    _check_text("answer", answer.text)
    if len(answer.text) > MAX_ANSWER:
        raise InvalidDecisionError(
            f"the answer has {len(answer.text)} characters, more than the limit of {MAX_ANSWER}"
        )


def _check_text(name: str, text: str) -> None:
    """Refuse control characters: databases cannot store them all, and no question needs them."""
    match = _CONTROL.search(text)
    if match is not None:
        raise InvalidDecisionError(
            f"{name}: control character U+{ord(match[0]):04X} is not allowed"
        )
