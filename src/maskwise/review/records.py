"""What reviewers send and what the audit log stores: decisions, edits, control items."""

from typing import Annotated, Literal, get_args
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from maskwise.masks import Mask
from maskwise.schema import Answer, MaskType, Region

Verdict = Literal[
    "accept", "fix", "reject", "skip", "left", "right", "tie", "bad", "rated"
]
"""`left`, `right`, `tie` and `bad` (both are) compare two predictions; `rated` comes with ratings of one."""

Mode = Literal["check", "compare", "rate"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""What people do: check the samples of a dataset, compare two predictions, or rate one."""

VERDICTS: dict[Mode, tuple[Verdict, ...]] = {
    "check": ("accept", "fix", "reject", "skip"),
    "compare": ("left", "right", "tie", "bad", "skip"),
    "rate": ("rated", "skip"),
}
"""The verdicts of each mode."""

BEST_RATING = 5
"""Ratings go from 1 to this: most people tell five steps apart."""

Role = Literal["reviewer", "adjudicator", "owner"]
ROLES: tuple[Role, ...] = get_args(Role)

SlotKind = Literal["review", "adjudication", "control"]

JUDGED = "judged"

STATUS_OF = {
    "accept": "accepted",
    "fix": "fixed",
    "reject": "rejected",
    "left": JUDGED,
    "right": JUDGED,
    "tie": JUDGED,
    "bad": JUDGED,
    "rated": JUDGED,
}
"""The status that a final verdict gives an item. Other statuses: `open` and `disputed`."""

Ratings = dict[str, Annotated[int, Meta(ge=1, le=BEST_RATING)]]
"""Ratings by criterion (`maskwise.review.criteria`)."""

DecidingCriteria = Annotated[tuple[str, ...], Meta(max_length=16)]
"""What decided a comparison; there are fewer criteria than this limit."""

# In characters: many times what a question or an answer needs, little for a database.
MAX_QUESTION = 2000
MAX_ANSWER = 8000
MAX_NOTE = 2000
MAX_NAME = 200

MAX_TARGETS = 256
"""Far more than an answer names."""

MAX_MASK_BYTES = 2**20
"""Of one mask, as run lengths: about a million runs. Masks of objects have kilobytes."""

MAX_BODY_BYTES = 2**23
"""Of a decision with all its masks."""

MAX_POINTS = 64
"""Clicks on one object."""

MAX_LEASED = 16
"""Items leased by one request: what a reviewer holds is kept from the others."""


class Received(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """Base of what is received: unknown fields are refused."""


class TargetEdit(Received, frozen=True, kw_only=True):
    """A target after an edit: a region of the image with changes, or a new region. Null removes a mask."""

    id: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
    name: Annotated[str, Meta(max_length=MAX_NAME)] | UnsetType = UNSET
    visible: Mask | UnsetType | None = UNSET
    amodal: Mask | UnsetType | None = UNSET


class SampleEdit(Received, frozen=True, kw_only=True):
    """Changes to a sample. What is absent stays as it is; `targets` is the whole list."""

    question: (
        Annotated[str, Meta(min_length=1, max_length=MAX_QUESTION)] | UnsetType
    ) = UNSET
    answer: Answer | UnsetType | None = UNSET
    mask_type: MaskType | UnsetType = UNSET
    targets: Annotated[list[TargetEdit], Meta(max_length=MAX_TARGETS)] | UnsetType = (
        UNSET
    )


class NewSample(Received, frozen=True, kw_only=True):
    """A question that a reviewer adds. item: one that the reviewer holds or has decided; it is about the same image.

    A target with the id of a region of the image is that region; another id makes a new one.
    """

    id: UUID
    item: int
    question: Annotated[str, Meta(min_length=1, max_length=MAX_QUESTION)]
    mask_type: MaskType
    targets: Annotated[list[TargetEdit], Meta(max_length=MAX_TARGETS)]
    answer: Answer | None = None


class DecisionDraft(Received, frozen=True, kw_only=True):
    """A decision that is not finished."""

    verdict: Verdict | None = None
    reason: str | None = None
    note: Annotated[str, Meta(max_length=MAX_NOTE)] = ""
    edit: SampleEdit | None = None
    seconds: Annotated[float, Meta(ge=0, le=1e7)] | None = None
    ratings: Ratings = {}
    criteria: DecidingCriteria = ()


class NewDecision(Received, frozen=True, kw_only=True):
    """A decision as a reviewer sends it. `id` is made by the client: a repeated request is not counted twice.

    ratings: of one prediction. criteria: what decided between two.
    """

    id: UUID
    item: int
    verdict: Verdict
    reason: str | None = None
    note: Annotated[str, Meta(max_length=MAX_NOTE)] = ""
    edit: SampleEdit | None = None
    seconds: Annotated[float, Meta(ge=0, le=1e7)] | None = None
    ratings: Ratings = {}
    criteria: DecidingCriteria = ()
    next: Annotated[int, Meta(ge=0, le=MAX_LEASED)] = 0


class DecisionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A stored decision as its reviewer sees it: a control item looks like any other."""

    id: str
    seq: int
    item: int
    sample: str
    kind: Literal["review", "adjudication"]
    verdict: Verdict
    reason: str | None
    note: str
    at: str
    undone: bool


class EditedSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sample as a reviewer left it: what a fix stores, complete, so that it means the same without the dataset."""

    question: str
    mask_type: MaskType
    targets: tuple[Region, ...]
    answer: Answer | None = None


class AddedSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the event `sample_added` stores: the sample's id, its image, its author and all of its content."""

    sample: str
    image: str
    reviewer: str
    content: EditedSample
    sent: str = ""


class DecidedPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the event `decided` stores. `sent` is the hash of the request, to recognise a repeated one."""

    slot: int
    kind: SlotKind
    verdict: Verdict
    sent: str
    reason: str | None = None
    note: str = ""
    edit: EditedSample | None = None
    seconds: float | None = None
    ratings: Ratings = {}
    criteria: tuple[str, ...] = ()


class ControlAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The known answer of a control item. `edit`: for `fix`, the corrected sample. `ratings`: those that are known."""

    verdict: Literal["accept", "fix", "reject", "left", "right", "tie", "bad", "rated"]
    reason: str | None = None
    edit: EditedSample | None = None
    ratings: Ratings = {}
