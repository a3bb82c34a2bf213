"""The routes of the review page, `/review/api/...`; docs/review_api.md describes each."""

import asyncio
import functools
import io
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response

from maskwise.errors import MaskwiseError
from maskwise.review.database import DatabaseUnavailableError
from maskwise.review.decisions import ReviewConflictError
from maskwise.review.edits import InvalidDecisionError, check_mask
from maskwise.review.items import ItemView, to_iso
from maskwise.review.mask_problems import RepairedMasks, repair_masks
from maskwise.review.queue import Reviewer
from maskwise.review.reasons import REJECT_REASONS
from maskwise.review.records import (
    MAX_ANSWER,
    MAX_BODY_BYTES,
    MAX_LEASED,
    MAX_MASK_BYTES,
    MAX_NOTE,
    MAX_POINTS,
    MAX_QUESTION,
    MAX_TARGETS,
    DecisionDraft,
    NewDecision,
)
from maskwise.review.refine import Click, Refiner
from maskwise.review.review import (
    BlindItemError,
    Review,
    ReviewerState,
    UnknownItemError,
)
from maskwise.review.statistics import ReviewStats
from maskwise.server import review_messages as messages
from maskwise.server.responses import (
    RequestRejectedError,
    check_json_type,
    json_response,
    read_body,
)
from maskwise.server.review_access import ReviewAccess, csrf_of
from maskwise.server.review_messages import describe_route

PREFIX = "/review/api"
THREADS = 16
"""Requests that use the database at the same time."""

MAX_PAGE = 500
MAX_NUMBER = 2**31 - 1
CACHED_IMAGES = 16
LOSSLESS_PIXELS = 2**18
"""Larger images are sent as JPEG of high quality, because a PNG takes too long."""

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
NO_REFINER = (
    "no promptable model is installed: run `maskwise get mobile_sam_encoder.onnx` and `maskwise get "
    "mobile_sam_decoder.onnx` and start the server again"
)

ItemNumber = Annotated[int, Path(ge=0, le=MAX_NUMBER)]
T = TypeVar("T")


class ReviewService:
    """Answers the requests of the review page. refiner: None where no promptable model is installed."""

    def __init__(self, review: Review, refiner: Refiner | None = None) -> None:
        self.review = review
        self.refiner = refiner
        self.access = ReviewAccess(review)
        facts = review.facts()
        self.project = messages.ProjectFacts(
            name=facts.name, samples=facts.samples, hash=facts.hash
        )
        self.image = functools.lru_cache(CACHED_IMAGES)(self._encode_image)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="review")
        self._open = (0, 0.0)

    def close(self) -> None:
        """Wait for the requests being answered and close the database."""
        self._threads.shutdown()
        self.review.database.close()

    async def run(self, work: Callable[[], T]) -> T:
        """Call a function in a thread; what a user did wrong becomes a 4xx."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except RequestRejectedError:
            raise
        except MaskwiseError as error:
            raise _to_rejection(error) from error

    async def answer(
        self, request: Request, work: Callable[[Reviewer], Any]
    ) -> Response:
        """The JSON of what a function returns for the reviewer who asks."""
        token = self.access.token_of(request)

        def respond() -> bytes:
            return msgspec.json.encode(work(self.access.find(token)))

        return Response(await self.run(respond), media_type="application/json")

    def session(self, reviewer: Reviewer, token: str) -> messages.SessionResponse:
        """Who is signed in."""
        return messages.SessionResponse(
            reviewer=reviewer.name,
            role=reviewer.role,
            csrf=csrf_of(token),
            project=self.project,
            reasons=[
                messages.ReasonTitle(code=code, title=title)
                for code, title in REJECT_REASONS.items()
            ],
            limits=LIMITS,
            lease_seconds=self.review.lease_seconds,
            refine=self.refiner is not None,
        )

    def queue(self, reviewer: Reviewer, count: int) -> messages.QueueResponse:
        """Lease items."""
        state = self.review.hold(reviewer, count)
        return messages.QueueResponse(
            items=self.review.show(state.items), progress=self._progress(state)
        )

    def renew(
        self, reviewer: Reviewer, sent: messages.LeaseRequest
    ) -> messages.LeaseResponse:
        """Prolong and give back leases."""
        held = self.review.renew(reviewer, sent.renew, sent.release)
        return messages.LeaseResponse(
            held={str(item): to_iso(end) for item, end in held.items()},
            lost=[item for item in sent.renew if item not in held],
        )

    def decide(
        self, reviewer: Reviewer, decision: NewDecision
    ) -> messages.DecisionResponse:
        """Store a decision and lease the next items."""
        result = self.review.decide(reviewer, decision)
        return messages.DecisionResponse(
            decision=_facts(result.row),
            replayed=result.replayed,
            items=self.review.show(result.state.items),
            progress=self._progress(result.state),
        )

    def undo(
        self, reviewer: Reviewer, sent: messages.UndoRequest
    ) -> messages.UndoResponse:
        """Take back a decision."""
        decision = None if sent.decision is None else str(sent.decision)
        undone = self.review.undo(reviewer, str(sent.id), decision)
        item = self.review.item(reviewer, undone.item)
        return messages.UndoResponse(
            undone=undone.decision, item=item, replayed=undone.replayed
        )

    def history(
        self, reviewer: Reviewer, before: int | None, limit: int
    ) -> messages.HistoryResponse:
        """A reviewer's own decisions."""
        rows = self.review.history(reviewer, before=before, limit=limit + 1)
        return messages.HistoryResponse(
            decisions=[_facts(row) for row in rows[:limit]], more=len(rows) > limit
        )

    def refine(
        self, reviewer: Reviewer, sent: messages.RefineRequest
    ) -> messages.RefineResponse:
        """Ask the promptable model."""
        if self.refiner is None:
            raise RequestRejectedError(501, NO_REFINER)
        item = self.review.item(reviewer, sent.item)
        size = (item.image.height, item.image.width)
        if sent.mask is not None:
            check_mask(sent.mask, size, "mask")
        for point in sent.points:
            if not (0 <= point.x <= size[1] and 0 <= point.y <= size[0]):
                raise RequestRejectedError(
                    422, f"point {point.x}, {point.y} lies outside the image"
                )
        image = self.review.dataset.open_image(item.image.id)
        clicks = [Click(point.x, point.y, point.positive) for point in sent.points]
        return messages.RefineResponse(
            mask=self.refiner.refine(image, sent.mask, clicks)
        )

    def events(
        self, reviewer: Reviewer, after: int, limit: int
    ) -> messages.EventsResponse:
        """A page of the audit log, for the owner."""
        _check_owner(reviewer)
        found = self.review.events(after, limit + 1)
        shown = [
            messages.EventFacts(
                seq=event.seq,
                uuid=event.uuid,
                at=to_iso(event.at),
                kind=event.kind,
                actor=event.actor,
                item=event.item,
                payload=msgspec.Raw(event.payload.encode()),
            )
            for event in found[:limit]
        ]
        return messages.EventsResponse(events=shown, more=len(found) > limit)

    def stats(self, reviewer: Reviewer) -> ReviewStats:
        """Statistics, for the owner."""
        _check_owner(reviewer)
        return self.review.stats()

    def add_reviewer(
        self, owner: Reviewer, sent: messages.ReviewerRequest
    ) -> messages.ReviewerResponse:
        """Add a reviewer, or make a new token for one."""
        _check_owner(owner)
        token = self.review.add_reviewer(sent.name, sent.role, actor=owner.name)
        return messages.ReviewerResponse(name=sent.name, role=sent.role, token=token)

    def _progress(self, state: ReviewerState) -> messages.ProgressResponse:
        """How far a reviewer is. Counting takes longer the larger the review is, so that it is not done every time."""
        open_items, until = self._open
        started = time.monotonic()
        if started >= until:
            open_items = self.review.count_open()
            now = time.monotonic()
            self._open = (open_items, now + 50 * (now - started))
        return messages.ProgressResponse(decided=state.decided, open=open_items)

    def _encode_image(self, row: int) -> tuple[bytes, str]:
        """An image, upright, in a format that browsers show, and its content type."""
        if not 0 <= row < len(self.review.dataset.images):
            raise RequestRejectedError(404, f"no image {row}")
        image = self.review.dataset.open_image(row)
        file = io.BytesIO()
        if image.width * image.height <= LOSSLESS_PIXELS:
            image.save(file, "PNG", compress_level=1)
            return file.getvalue(), "image/png"
        image.save(file, "JPEG", quality=95, subsampling=0)
        return file.getvalue(), "image/jpeg"


def review_router(service: ReviewService) -> APIRouter:
    """All routes."""
    router = APIRouter(prefix=PREFIX)
    _add_session_routes(router, service)
    _add_item_routes(router, service)
    _add_decision_routes(router, service)
    _add_mask_routes(router, service)
    _add_owner_routes(router, service)
    return router


def _add_session_routes(router: APIRouter, service: ReviewService) -> None:
    @router.post(
        "/session", **describe_route(messages.SessionResponse, messages.TokenRequest)
    )
    async def sign_in(request: Request) -> Response:
        """Exchange the token of a personal link for a cookie."""
        token = (await _read(request, messages.TokenRequest)).token
        session = await service.run(
            lambda: service.session(service.access.find(token), token)
        )
        response = json_response(session)
        service.access.set_cookie(request, response, token)
        return response

    @router.get("/session", **describe_route(messages.SessionResponse))
    async def session(request: Request) -> Response:
        """Who is signed in."""
        token = service.access.token_of(request)
        return json_response(
            await service.run(
                lambda: service.session(service.access.find(token), token)
            )
        )

    @router.delete("/session", status_code=204, **describe_route(None, errors=(403,)))
    async def sign_out(request: Request) -> Response:
        """Remove the cookie."""
        service.access.token_of(request)
        response = Response(status_code=204)
        service.access.remove_cookie(response)
        return response


def _add_item_routes(router: APIRouter, service: ReviewService) -> None:
    @router.post(
        "/queue", **describe_route(messages.QueueResponse, messages.QueueRequest)
    )
    async def queue(request: Request) -> Response:
        """Lease items; those already held come first."""
        sent = await _read(request, messages.QueueRequest, service)
        return await service.answer(
            request, lambda reviewer: service.queue(reviewer, sent.count)
        )

    @router.get("/items/{item}", **describe_route(ItemView, errors=(403, 404, 422)))
    async def item(request: Request, item: ItemNumber) -> Response:
        """One item that this reviewer holds or has decided about."""
        return await service.answer(
            request, lambda reviewer: service.review.item(reviewer, item)
        )

    @router.post(
        "/leases",
        **describe_route(messages.LeaseResponse, messages.LeaseRequest, errors=(404,)),
    )
    async def leases(request: Request) -> Response:
        """Prolong leases, and give items back."""
        sent = await _read(request, messages.LeaseRequest, service)
        return await service.answer(
            request, lambda reviewer: service.renew(reviewer, sent)
        )

    @router.put(
        "/items/{item}/draft",
        **describe_route(messages.DraftResponse, DecisionDraft, errors=(404,)),
    )
    async def save_draft(request: Request, item: ItemNumber) -> Response:
        """Keep an unfinished decision."""
        draft = await _read(request, DecisionDraft, service)

        def save(reviewer: Reviewer) -> messages.DraftResponse:
            return messages.DraftResponse(
                saved=to_iso(service.review.save_draft(reviewer, item, draft))
            )

        return await service.answer(request, save)

    @router.delete(
        "/items/{item}/draft",
        status_code=204,
        **describe_route(None, errors=(403, 404, 422)),
    )
    async def discard_draft(request: Request, item: ItemNumber) -> Response:
        """Discard an unfinished decision."""
        await service.answer(
            request, lambda reviewer: service.review.discard_draft(reviewer, item)
        )
        return Response(status_code=204)


def _add_decision_routes(router: APIRouter, service: ReviewService) -> None:
    @router.post(
        "/decisions",
        **describe_route(messages.DecisionResponse, NewDecision, errors=(404, 409)),
    )
    async def decide(request: Request) -> Response:
        """Decide about an item; repeating the request changes nothing."""
        sent = await _read(request, NewDecision, service)
        return await service.answer(
            request, lambda reviewer: service.decide(reviewer, sent)
        )

    @router.post(
        "/undo",
        **describe_route(messages.UndoResponse, messages.UndoRequest, errors=(409,)),
    )
    async def undo(request: Request) -> Response:
        """Take back a decision, the latest by default."""
        sent = await _read(request, messages.UndoRequest, service)
        return await service.answer(
            request, lambda reviewer: service.undo(reviewer, sent)
        )

    @router.get("/history", **describe_route(messages.HistoryResponse, errors=(422,)))
    async def history(
        request: Request,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
        before: Annotated[int | None, Query(ge=0, le=MAX_NUMBER)] = None,
    ) -> Response:
        """The reviewer's own decisions, latest first."""
        return await service.answer(
            request, lambda reviewer: service.history(reviewer, before, limit)
        )


def _add_mask_routes(router: APIRouter, service: ReviewService) -> None:
    @router.post("/repair", **describe_route(RepairedMasks, messages.RepairRequest))
    async def repair(request: Request) -> Response:
        """Make the visible mask lie inside the amodal one."""
        sent = await _read(request, messages.RepairRequest, service)
        return await service.answer(
            request, lambda reviewer: repair_masks(sent.visible, sent.amodal, sent.keep)
        )

    @router.post(
        "/refine",
        **describe_route(
            messages.RefineResponse, messages.RefineRequest, errors=(404, 501)
        ),
    )
    async def refine(request: Request) -> Response:
        """Refine a mask by clicks, with a promptable model."""
        sent = await _read(request, messages.RefineRequest, service)
        return await service.answer(
            request, lambda reviewer: service.refine(reviewer, sent)
        )

    @router.get(
        "/images/{image}",
        response_class=Response,
        **describe_route(None, errors=(404, 422)),
    )
    async def image(request: Request, image: ItemNumber) -> Response:
        """An image, upright."""
        token = service.access.token_of(request)

        def read() -> tuple[bytes, str]:
            service.access.find(token)
            return service.image(image)

        data, kind = await service.run(read)
        return Response(
            data, headers={"Cache-Control": "private, max-age=86400"}, media_type=kind
        )


def _add_owner_routes(router: APIRouter, service: ReviewService) -> None:
    @router.get("/stats", **describe_route(ReviewStats, errors=(403,)))
    async def stats(request: Request) -> Response:
        """Progress, throughput, agreement and reviewers; for the owner."""
        return await service.answer(request, service.stats)

    @router.get("/events", **describe_route(messages.EventsResponse, errors=(403, 422)))
    async def events(
        request: Request,
        after: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 200,
    ) -> Response:
        """The audit log, oldest first; for the owner."""
        return await service.answer(
            request, lambda reviewer: service.events(reviewer, after, limit)
        )

    @router.post(
        "/reviewers",
        **describe_route(messages.ReviewerResponse, messages.ReviewerRequest),
    )
    async def add_reviewer(request: Request) -> Response:
        """Add a reviewer, or make a new token for one; for the owner."""
        sent = await _read(request, messages.ReviewerRequest, service)
        return await service.answer(
            request, lambda reviewer: service.add_reviewer(reviewer, sent)
        )


async def _read(
    request: Request, record: type[T], service: ReviewService | None = None
) -> T:
    """The body as a record. service: where given, the request must carry a token before its body is read."""
    if service is not None:
        service.access.token_of(request)
    check_json_type(request)
    body = await read_body(request, MAX_BODY_BYTES)
    try:
        return msgspec.json.decode(body, type=record)
    except (msgspec.ValidationError, MaskwiseError) as error:
        raise RequestRejectedError(422, f"invalid request: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestRejectedError(400, f"invalid request: {error}") from None


def _to_rejection(error: MaskwiseError) -> RequestRejectedError:
    """The status of an error."""
    if isinstance(error, DatabaseUnavailableError):
        return RequestRejectedError(
            503,
            "the database is busy or cannot be reached; try again",
            {"Retry-After": "1"},
        )
    kinds: list[tuple[type[MaskwiseError], int]] = [
        (ReviewConflictError, 409),
        (BlindItemError, 403),
        (UnknownItemError, 404),
        (InvalidDecisionError, 422),
    ]
    status = next((status for kind, status in kinds if isinstance(error, kind)), 422)
    return RequestRejectedError(status, str(error))


def _check_owner(reviewer: Reviewer) -> None:
    if reviewer.role != "owner":
        raise RequestRejectedError(403, "only the owner may see this")


def _facts(row: Any) -> messages.DecisionFacts:
    """A decision as its reviewer sees it: a control item looks like any other."""
    return messages.DecisionFacts(
        id=row.id,
        seq=row.seq,
        item=row.item,
        sample=row.sample,
        kind="adjudication" if row.kind == "adjudication" else "review",
        verdict=row.verdict,
        reason=row.reason,
        note=row.note,
        at=to_iso(row.at),
        undone=row.undone,
    )
