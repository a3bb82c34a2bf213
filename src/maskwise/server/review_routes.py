"""The routes of the review page, `/review/api/...`; docs/reference/review_api.md describes each.

A route declares what it takes and returns; the work is done by `maskwise.review`.
"""

import functools
import logging
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from litestar import Response, Router, delete, get, post, put
from litestar.di import NamedDependency, Provide
from litestar.params import (
    JSONBody,
    PathParameter,
    QueryParameter,
    SkipValidation,
)
from msgspec import Meta

from maskwise.errors import MaskwiseError
from maskwise.masks import Mask
from maskwise.review.additions import AddedFacts
from maskwise.review.audit_log import to_iso
from maskwise.review.criteria import RATING_NAMES, Criterion, list_criteria
from maskwise.review.database import DamagedReviewError, DatabaseUnavailableError
from maskwise.review.decisions import ReviewConflictError
from maskwise.review.items import DecisionResult, ItemView, QueueResult, UndoResult
from maskwise.review.judgment_results import JudgmentResults
from maskwise.review.mask_problems import RepairedMasks, repair_masks
from maskwise.review.queue import Reviewer
from maskwise.review.reasons import REJECT_REASONS, ReasonTitle
from maskwise.review.records import (
    MAX_ANSWER,
    MAX_BODY_BYTES,
    MAX_LEASED,
    MAX_MASK_BYTES,
    MAX_NAME,
    MAX_NOTE,
    MAX_POINTS,
    MAX_QUESTION,
    MAX_TARGETS,
    DecisionDraft,
    DecisionFacts,
    Mode,
    NewDecision,
    NewSample,
    Received,
    Role,
)
from maskwise.review.refine import Click, Refiner
from maskwise.review.review import BlindItemError, Review, UnknownItemError
from maskwise.review.statistics import ReviewStats
from maskwise.server.browser_images import encode_image
from maskwise.server.limits import RETRY_SECONDS
from maskwise.server.requests import INVALID_STATUS, BoundedRequest
from maskwise.server.responses import (
    Connection,
    ErrorMessage,
    RequestRejectedError,
    error_response,
    errors,
)
from maskwise.server.review_access import MAX_TOKEN, ReviewAccess, check_token, csrf_of

_log = logging.getLogger("maskwise.server")

PREFIX = "/review/api"
MAX_RENEWED = 64
"""Leases that one request renews: a page holds five items."""

MAX_PAGE = 500
"""Decisions or events of one response."""

MAX_NUMBER = 2**31 - 1
"""Items and events are numbered with 32 bits."""

CACHED_IMAGES = 16
"""Samples of one image follow each other, and several reviewers work on them at the same time."""

LOSSLESS_PIXELS = 2**18
"""Larger images are sent as JPEG: the next sample has to be on the screen before it is needed."""

LIMITS = {
    "question": MAX_QUESTION,
    "answer": MAX_ANSWER,
    "note": MAX_NOTE,
    "targets": MAX_TARGETS,
    "mask_bytes": MAX_MASK_BYTES,
    "body_bytes": MAX_BODY_BYTES,
    "points": MAX_POINTS,
    "lease": MAX_LEASED,
}
"""What the page is told, so that it refuses what the server would refuse."""

NO_REFINER = (
    "no promptable model is installed: run `maskwise get mobile_sam_encoder.onnx` and `maskwise get "
    "mobile_sam_decoder.onnx` and start the server again"
)
BODY_ERRORS = (401, 403, 408, 413, 415, 422, 503)
"""What every route with a body may answer."""


class TokenRequest(Received, frozen=True, kw_only=True):
    """The token of a personal link."""

    token: Annotated[str, Meta(min_length=1, max_length=MAX_TOKEN)]


class QueueRequest(Received, frozen=True, kw_only=True):
    """How many items to hold."""

    count: Annotated[int, Meta(ge=1, le=MAX_LEASED)] = 1


class LeaseRequest(Received, frozen=True, kw_only=True):
    """Items to keep, and items to give back."""

    renew: Annotated[tuple[int, ...], Meta(max_length=MAX_RENEWED)] = ()
    release: Annotated[tuple[int, ...], Meta(max_length=MAX_RENEWED)] = ()


class UndoRequest(Received, frozen=True, kw_only=True):
    """An undo. decision: which one, the latest by default."""

    id: UUID
    decision: UUID | None = None


class RepairRequest(Received, frozen=True, kw_only=True):
    """Two masks of one region, and which of them stays as it is."""

    visible: Mask
    amodal: Mask
    keep: Literal["visible", "amodal"] = "visible"


class RefineRequest(Received, frozen=True, kw_only=True):
    """Clicks on the image of an item, and the mask to start from."""

    item: int
    mask: Mask | None = None
    points: Annotated[list[Click], Meta(min_length=1, max_length=MAX_POINTS)]


class ReviewerRequest(Received, frozen=True, kw_only=True):
    """A reviewer to add, or one who needs a new token."""

    name: Annotated[str, Meta(max_length=MAX_NAME)]
    role: Role = "reviewer"


class ProjectFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The reviewed dataset."""

    name: str
    samples: int
    hash: str


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Who is signed in, and what the page needs to know."""

    reviewer: str
    role: Role
    csrf: str
    project: ProjectFacts
    mode: Mode
    reasons: list[ReasonTitle]
    criteria: list[Criterion]
    rating_names: tuple[str, ...]
    limits: dict[str, int]
    lease_seconds: float
    refine: bool


class Leases(msgspec.Struct, frozen=True, kw_only=True):
    """Ends of the leases that are still held, by item, and the items that are not."""

    held: dict[str, str]
    lost: list[int]


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions of a reviewer, latest first. more: there are earlier ones."""

    decisions: list[DecisionFacts]
    more: bool


class EventFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the audit log."""

    seq: int
    uuid: str
    at: str
    kind: str
    actor: str
    item: int | None
    payload: msgspec.Raw


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the audit log, oldest first. more: there are later lines."""

    events: list[EventFacts]
    more: bool


class ReviewImages:
    """The images of the reviewed dataset as browsers show them, the latest ones kept."""

    def __init__(self, review: Review) -> None:
        self._images = review.dataset
        self.read = functools.lru_cache(CACHED_IMAGES)(self._read)

    def _read(self, row: int) -> tuple[bytes, str]:
        """An image, upright, and its content type."""
        if row >= len(self._images.images):
            raise RequestRejectedError(404, f"no image {row}")
        image = self._images.open_image(row)
        return encode_image(image, lossless_pixels=LOSSLESS_PIXELS)


# What the routes are given: the review, who is asking, and the promptable model.
TheReview = NamedDependency[SkipValidation[Review]]
TheReviewer = NamedDependency[SkipValidation[Reviewer]]
TheOwner = NamedDependency[SkipValidation[Reviewer]]
TheAccess = NamedDependency[SkipValidation[ReviewAccess]]
TheRefiner = NamedDependency[SkipValidation[Refiner | None]]
TheImages = NamedDependency[SkipValidation[ReviewImages]]

ItemNumber = Annotated[int, PathParameter(ge=0, le=MAX_NUMBER)]


# -- the session


@post(
    "/session",
    status_code=200,
    sync_to_thread=True,
    responses=errors(*BODY_ERRORS),
)
def sign_in(
    request: BoundedRequest,
    review: TheReview,
    access: TheAccess,
    refiner: TheRefiner,
    data: JSONBody[TokenRequest],
) -> Response[Session]:
    """Exchange the token of a personal link for a cookie."""
    reviewer = access.find(data.token)
    session = make_session(review, reviewer, data.token, refiner)
    secure = request.url.scheme == "https"
    return Response(session, cookies=[access.make_cookie(data.token, secure=secure)])


@get(
    "/session",
    guards=[check_token],
    sync_to_thread=True,
    responses=errors(401, 503),
)
def read_session(
    request: BoundedRequest,
    review: TheReview,
    reviewer: TheReviewer,
    access: TheAccess,
    refiner: TheRefiner,
) -> Session:
    """Who is signed in."""
    return make_session(review, reviewer, access.token_of(request), refiner)


@delete(
    "/session",
    guards=[check_token],
    sync_to_thread=False,
    responses=errors(401, 403),
)
def sign_out(access: TheAccess) -> Response[None]:
    """Remove the cookie."""
    response: Response[None] = Response(None, status_code=204)
    response.set_cookie(access.make_expired_cookie())
    return response


# -- items


@post("/queue", status_code=200, sync_to_thread=True, responses=errors(*BODY_ERRORS))
def lease_items(
    review: TheReview, reviewer: TheReviewer, data: JSONBody[QueueRequest]
) -> QueueResult:
    """Lease items; those already held come first."""
    return QueueResult(
        items=review.queue(reviewer, data.count), progress=review.progress(reviewer)
    )


@get(
    "/items/{item:str}",
    sync_to_thread=True,
    responses=errors(401, 403, 404, 422, 503),
)
def read_item(review: TheReview, reviewer: TheReviewer, item: ItemNumber) -> ItemView:
    """One item that this reviewer holds or has decided about."""
    return review.item(reviewer, item)


@post(
    "/leases",
    status_code=200,
    sync_to_thread=True,
    responses=errors(*BODY_ERRORS, 404),
)
def renew_leases(
    review: TheReview, reviewer: TheReviewer, data: JSONBody[LeaseRequest]
) -> Leases:
    """Prolong leases, and give items back."""
    held = review.renew(reviewer, data.renew, data.release)
    ends = {str(item): to_iso(end) for item, end in held.items()}
    lost = [item for item in data.renew if item not in held]
    return Leases(held=ends, lost=lost)


@put(
    "/items/{item:str}/draft",
    sync_to_thread=True,
    responses=errors(*BODY_ERRORS, 404),
)
def save_draft(
    review: TheReview,
    reviewer: TheReviewer,
    item: ItemNumber,
    data: JSONBody[DecisionDraft],
) -> dict[str, str]:
    """Keep an unfinished decision; returns when it was saved."""
    return {"saved": to_iso(review.save_draft(reviewer, item, data))}


@delete(
    "/items/{item:str}/draft",
    sync_to_thread=True,
    responses=errors(401, 403, 404, 422, 503),
)
def discard_draft(review: TheReview, reviewer: TheReviewer, item: ItemNumber) -> None:
    """Discard an unfinished decision."""
    review.discard_draft(reviewer, item)


# -- decisions


@post(
    "/decisions",
    status_code=200,
    sync_to_thread=True,
    responses=errors(*BODY_ERRORS, 404, 409),
)
def decide(
    review: TheReview, reviewer: TheReviewer, data: JSONBody[NewDecision]
) -> DecisionResult:
    """Decide about an item; repeating the request changes nothing."""
    return review.decide(reviewer, data)


@post(
    "/undo",
    status_code=200,
    sync_to_thread=True,
    responses=errors(*BODY_ERRORS, 409),
)
def undo(
    review: TheReview, reviewer: TheReviewer, data: JSONBody[UndoRequest]
) -> UndoResult:
    """Take back a decision, the latest by default."""
    decision = None if data.decision is None else str(data.decision)
    return review.undo(reviewer, str(data.id), decision)


@get("/history", sync_to_thread=True, responses=errors(401, 422, 503))
def read_history(
    review: TheReview,
    reviewer: TheReviewer,
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_PAGE)] = 50,
    before: Annotated[int | None, QueryParameter(ge=0, le=MAX_NUMBER)] = None,
) -> History:
    """The reviewer's own decisions, latest first."""
    decisions = review.history(reviewer, before=before, limit=limit + 1)
    return History(decisions=decisions[:limit], more=len(decisions) > limit)


# -- additions


@post(
    "/additions",
    status_code=200,
    sync_to_thread=True,
    responses=errors(*BODY_ERRORS, 404, 409),
)
def add_sample(
    review: TheReview, reviewer: TheReviewer, data: JSONBody[NewSample]
) -> AddedFacts:
    """Add a question about the image of an item; repeating the request changes nothing."""
    return review.add_sample(reviewer, data)


@delete(
    "/additions/{item:str}",
    sync_to_thread=True,
    responses=errors(401, 403, 404, 409, 422, 503),
)
def withdraw_sample(review: TheReview, reviewer: TheReviewer, item: ItemNumber) -> None:
    """Take back an own addition about which nobody has decided."""
    review.withdraw_sample(reviewer, item)


# -- masks and images


@post("/repair", status_code=200, sync_to_thread=True, responses=errors(*BODY_ERRORS))
def repair(reviewer: TheReviewer, data: JSONBody[RepairRequest]) -> RepairedMasks:
    """Make the visible mask lie inside the amodal one."""
    return repair_masks(data.visible, data.amodal, data.keep)


@post(
    "/refine",
    status_code=200,
    sync_to_thread=True,
    responses=errors(*BODY_ERRORS, 404, 501),
)
def refine(
    review: TheReview,
    reviewer: TheReviewer,
    refiner: TheRefiner,
    data: JSONBody[RefineRequest],
) -> dict[str, Mask]:
    """Refine a mask by clicks, with a promptable model."""
    if refiner is None:
        raise RequestRejectedError(501, NO_REFINER)
    refined = review.refine(
        reviewer, refiner, item=data.item, mask=data.mask, points=data.points
    )
    return {"mask": refined}


@get(
    "/images/{image:str}",
    sync_to_thread=True,
    media_type="image/png",
    responses=errors(401, 404, 422, 503),
)
def read_image(
    reviewer: TheReviewer, images: TheImages, image: ItemNumber
) -> Response[bytes]:
    """An image, upright."""
    data, kind = images.read(image)
    headers = {"Cache-Control": "private, max-age=86400"}
    return Response(data, headers=headers, media_type=kind)


# -- the owner


@get("/stats", sync_to_thread=True, responses=errors(401, 403, 503))
def read_stats(review: TheReview, owner: TheOwner) -> ReviewStats:
    """Progress, throughput, agreement and reviewers; for the owner."""
    return review.stats()


@get("/results", sync_to_thread=True, responses=errors(401, 403, 422, 503))
def read_results(review: TheReview, owner: TheOwner) -> JudgmentResults:
    """What people say about the judged runs, with their names; for the owner."""
    return review.results()


@get("/events", sync_to_thread=True, responses=errors(401, 403, 422, 503))
def read_events(
    review: TheReview,
    owner: TheOwner,
    after: Annotated[int, QueryParameter(ge=0, le=MAX_NUMBER)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_PAGE)] = 200,
) -> EventPage:
    """The audit log, oldest first; for the owner."""
    events = review.events(after, limit + 1)
    lines = [
        EventFacts(
            seq=event.seq,
            uuid=event.uuid,
            at=to_iso(event.at),
            kind=event.kind,
            actor=event.actor,
            item=event.item,
            payload=msgspec.Raw(event.payload.encode()),
        )
        for event in events[:limit]
    ]
    return EventPage(events=lines, more=len(events) > limit)


@post(
    "/reviewers", status_code=200, sync_to_thread=True, responses=errors(*BODY_ERRORS)
)
def add_reviewer(
    review: TheReview, owner: TheOwner, data: JSONBody[ReviewerRequest]
) -> dict[str, str]:
    """Add a reviewer, or make a new token for one; for the owner. The token is shown this once."""
    token = review.add_reviewer(data.name, data.role, actor=owner.name)
    return {"name": data.name, "role": data.role, "token": token}


def review_router(
    review: Review, access: ReviewAccess, refiner: Refiner | None = None
) -> Router:
    """All routes. refiner: None where no promptable model is installed."""
    images = ReviewImages(review)
    signed_in = Router(
        "/",
        guards=[check_token],
        route_handlers=[
            lease_items,
            read_item,
            renew_leases,
            save_draft,
            discard_draft,
            decide,
            undo,
            read_history,
            add_sample,
            withdraw_sample,
            repair,
            refine,
            read_image,
            read_stats,
            read_results,
            read_events,
            add_reviewer,
        ],
    )
    return Router(
        PREFIX,
        route_handlers=[sign_in, read_session, sign_out, signed_in],
        request_max_body_size=MAX_BODY_BYTES,
        opt={INVALID_STATUS: 422},
        exception_handlers={MaskwiseError: _answer_review_error},
        dependencies={
            "review": Provide(lambda: review, sync_to_thread=False),
            "access": Provide(lambda: access, sync_to_thread=False),
            "refiner": Provide(lambda: refiner, sync_to_thread=False),
            "images": Provide(lambda: images, sync_to_thread=False),
            # These two ask the database.
            "reviewer": Provide(_find_reviewer, sync_to_thread=True),
            "owner": Provide(_find_owner, sync_to_thread=True),
        },
    )


def make_session(
    review: Review, reviewer: Reviewer, token: str, refiner: Refiner | None
) -> Session:
    """What the page of a reviewer needs to know."""
    facts = review.facts()
    project = ProjectFacts(name=facts.name, samples=facts.samples, hash=facts.hash)
    reasons = [
        ReasonTitle(code=code, title=title) for code, title in REJECT_REASONS.items()
    ]
    return Session(
        reviewer=reviewer.name,
        role=reviewer.role,
        csrf=csrf_of(token),
        project=project,
        mode=review.mode,
        reasons=reasons,
        criteria=list_criteria(),
        rating_names=RATING_NAMES,
        limits=LIMITS,
        lease_seconds=review.lease_seconds,
        refine=refiner is not None,
    )


def _find_reviewer(request: BoundedRequest, access: TheAccess) -> Reviewer:
    """Who is asking; 401 for an unknown token."""
    return access.find(access.token_of(request))


def _find_owner(request: BoundedRequest, access: TheAccess) -> Reviewer:
    """The owner who is asking; 403 for other reviewers."""
    reviewer = access.find(access.token_of(request))
    if reviewer.role != "owner":
        raise RequestRejectedError(403, "only the owner may see this")
    return reviewer


ERROR_STATUSES: dict[type[MaskwiseError], int] = {
    ReviewConflictError: 409,
    BlindItemError: 403,
    UnknownItemError: 404,
}
"""The status of what a reviewer did wrong; 422 for anything else."""


def _answer_review_error(
    _request: Connection, error: MaskwiseError
) -> Response[ErrorMessage]:
    if isinstance(error, DatabaseUnavailableError):
        # The URL and the state of the database are not the client's affair.
        message = "the database is busy or cannot be reached; try again"
        headers = {"Retry-After": str(RETRY_SECONDS)}
        return error_response(503, message, headers=headers)
    if isinstance(error, DamagedReviewError):
        _log.error("%s", error)
        message = "the database of this review is damaged, and nothing is stored; its owner has to rebuild it"
        return error_response(500, message)
    return error_response(ERROR_STATUSES.get(type(error), 422), str(error))
