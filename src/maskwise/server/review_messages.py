"""Requests and responses of the review routes, and their part of the OpenAPI document."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from maskwise.masks import Mask
from maskwise.review.items import ItemView
from maskwise.review.mask_problems import RepairedMasks
from maskwise.review.records import (
    MAX_LEASED,
    MAX_NAME,
    MAX_POINTS,
    DecisionDraft,
    NewDecision,
    Role,
    Verdict,
)
from maskwise.review.statistics import ReviewStats

MAX_RENEWED = 64


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all requests: unknown fields are refused."""


class TokenRequest(_Request, frozen=True, kw_only=True):
    """The token of a personal link."""

    token: Annotated[str, Meta(min_length=1, max_length=200)]


class QueueRequest(_Request, frozen=True, kw_only=True):
    """How many items to hold."""

    count: Annotated[int, Meta(ge=1, le=MAX_LEASED)] = 1


class LeaseRequest(_Request, frozen=True, kw_only=True):
    """Items to keep, and items to give back."""

    renew: Annotated[list[int], Meta(max_length=MAX_RENEWED)] = []
    release: Annotated[list[int], Meta(max_length=MAX_RENEWED)] = []


class UndoRequest(_Request, frozen=True, kw_only=True):
    """An undo. decision: which one, the latest by default."""

    id: UUID
    decision: UUID | None = None


class RepairRequest(_Request, frozen=True, kw_only=True):
    """Two masks of one region, and which of them stays as it is."""

    visible: Mask
    amodal: Mask
    keep: Literal["visible", "amodal"] = "visible"


class PointRequest(_Request, frozen=True, kw_only=True):
    """A click, in pixels from the upper left corner."""

    x: float
    y: float
    positive: bool = True


class RefineRequest(_Request, frozen=True, kw_only=True):
    """Clicks on the image of an item, and the mask to start from."""

    item: int
    mask: Mask | None = None
    points: Annotated[list[PointRequest], Meta(min_length=1, max_length=MAX_POINTS)]


class ReviewerRequest(_Request, frozen=True, kw_only=True):
    """A reviewer to add, or one who needs a new token."""

    name: Annotated[str, Meta(max_length=MAX_NAME)]
    role: Role = "reviewer"


class ProjectFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The reviewed dataset."""

    name: str
    samples: int
    hash: str


class ReasonTitle(msgspec.Struct, frozen=True, kw_only=True):
    """A reject reason."""

    code: str
    title: str


class SessionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Who is signed in, and what the page needs to know."""

    reviewer: str
    role: Role
    csrf: str
    project: ProjectFacts
    reasons: list[ReasonTitle]
    limits: dict[str, int]
    lease_seconds: float
    refine: bool


class ProgressResponse(msgspec.Struct, frozen=True, kw_only=True):
    """How far a reviewer is."""

    decided: int
    open: int


class QueueResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The items that a reviewer holds."""

    items: list[ItemView]
    progress: ProgressResponse


class LeaseResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Ends of the leases that are still held, by item, and the items that are not."""

    held: dict[str, str]
    lost: list[int]


class DraftResponse(msgspec.Struct, frozen=True, kw_only=True):
    """When a draft was saved."""

    saved: str


class DecisionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A stored decision."""

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


class DecisionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A stored decision, and the items that the reviewer holds now."""

    decision: DecisionFacts
    replayed: bool
    items: list[ItemView]
    progress: ProgressResponse


class UndoResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The decision that was taken back, and its item."""

    undone: str
    item: ItemView
    replayed: bool


class HistoryResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions of a reviewer, latest first."""

    decisions: list[DecisionFacts]
    more: bool


class RefineResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A refined mask."""

    mask: Mask


class EventFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the audit log."""

    seq: int
    uuid: str
    at: str
    kind: str
    actor: str
    item: int | None
    payload: msgspec.Raw


class EventsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the audit log, oldest first."""

    events: list[EventFacts]
    more: bool


class ReviewerResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A reviewer with the token, which is shown this once."""

    name: str
    role: Role
    token: str


_RECORDS = (
    TokenRequest,
    QueueRequest,
    LeaseRequest,
    UndoRequest,
    RepairRequest,
    RefineRequest,
    ReviewerRequest,
    DecisionDraft,
    NewDecision,
    SessionResponse,
    QueueResponse,
    LeaseResponse,
    DraftResponse,
    DecisionResponse,
    UndoResponse,
    HistoryResponse,
    RefineResponse,
    RepairedMasks,
    EventsResponse,
    ReviewerResponse,
    ReviewStats,
    ItemView,
)

ERRORS = {
    400: "The body is not JSON.",
    401: "No valid token.",
    403: "The CSRF header is missing, the role may not do this, or the item belongs to somebody else.",
    404: "There is no such item or image.",
    409: "The item belongs to somebody else by now, the id was used before, or there is nothing to undo.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "A field or a mask is invalid.",
    501: "No promptable model is installed.",
    503: "The database is busy or cannot be reached; try again.",
}


def review_schemas() -> dict[str, Any]:
    """The schemas of all requests and responses."""
    _, schemas = msgspec.json.schema_components(
        _RECORDS, ref_template="#/components/schemas/{name}"
    )
    return schemas


def describe_route(
    response: type | None, request: type | None = None, *, errors: tuple[int, ...] = ()
) -> dict[str, Any]:
    """What the OpenAPI document says about a route: its body, its response and its errors."""
    statuses = {401, 503, *errors} | (
        {400, 403, 413, 415, 422} if request is not None else set()
    )
    found: dict[str, Any] = {
        "responses": {
            status: {"description": ERRORS[status], "content": _json("Error")}
            for status in sorted(statuses)
        }
    }
    if response is not None:
        found["responses"][200] = {
            "description": _summary(response),
            "content": _json(response.__name__),
        }
    if request is not None:
        body = {"required": True, "content": _json(request.__name__)}
        found["openapi_extra"] = {"requestBody": body}
    return found


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _summary(record: type) -> str:
    return (record.__doc__ or "").splitlines()[0]
