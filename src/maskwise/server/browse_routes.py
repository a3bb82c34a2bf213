"""The routes of the browse page: datasets, their samples and images, and the predictions of runs.

| route | |
|---|---|
| `GET /v1/datasets` | the datasets with their runs and slicings |
| `GET /v1/datasets/{key}/samples` | a page of samples, filtered and sorted |
| `GET /v1/datasets/{key}/samples/{row}` | a sample with its masks and the predictions for it |
| `GET /v1/datasets/{key}/images/{row}` | an image; `thumbnail=true` for a small one |
"""

import asyncio
from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response

from maskwise.errors import MaskwiseError
from maskwise.server.access import AccessTokens
from maskwise.server.browse import BrowsedDataset, BrowsedSets, SampleQuery
from maskwise.server.openapi import error_responses
from maskwise.server.responses import RequestRejectedError, json_response

MAX_PAGE = 200
MAX_ROW = 2**31 - 1
Row = Annotated[int, Path(ge=0, le=MAX_ROW)]
Text = Annotated[str, Query(max_length=500)]
ERRORS = error_responses(401, 404, 422)
T = TypeVar("T")


def browse_router(browsed: BrowsedSets, access: AccessTokens) -> APIRouter:
    """The routes."""
    router = APIRouter()

    @router.get("/v1/datasets", responses=error_responses(401))
    async def datasets(request: Request) -> Response:
        """The datasets that can be browsed, with their slicings and runs."""
        access.check_read(request)
        return json_response(
            await _run(lambda: [one.describe() for one in browsed.datasets.values()])
        )

    @router.get("/v1/datasets/{key}/samples", responses=ERRORS)
    async def samples(
        request: Request,
        key: str,
        *,
        text: Text = "",
        slice: Annotated[list[str] | None, Query(max_length=50)] = None,
        run: str | None = None,
        protocol: str | None = None,
        status: str | None = None,
        sort: Literal["order", "score", "-score"] = "order",
        offset: Annotated[int, Query(ge=0, le=MAX_ROW)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 24,
    ) -> Response:
        """A page of samples. slice: `name=value`, any number of times."""
        access.check_read(request)
        query = SampleQuery(
            text=text,
            slices=_read_slices(slice or []),
            run=run,
            protocol=protocol,
            status=status,
            sort=sort,
        )
        return json_response(
            await _run(lambda: _page(_find(browsed, key), query, offset, limit))
        )

    @router.get("/v1/datasets/{key}/samples/{row}", responses=ERRORS)
    async def sample(request: Request, key: str, row: Row) -> Response:
        """A sample with its masks, and the predictions of the runs."""
        access.check_read(request)
        found = _find(browsed, key)
        _check_row(row, len(found.dataset), "samples")
        return json_response(await _run(lambda: found.sample(row)))

    @router.get("/v1/datasets/{key}/images/{row}", responses=ERRORS)
    async def image(
        request: Request, key: str, row: Row, *, thumbnail: bool = False
    ) -> Response:
        """An image of a dataset, upright."""
        access.check_read(request)
        found = _find(browsed, key)
        _check_row(row, len(found.dataset.images), "images")
        data, kind = await _run(lambda: found.image(row, thumbnail=thumbnail))
        return Response(
            data, headers={"Cache-Control": "private, max-age=3600"}, media_type=kind
        )

    return router


async def _run(function: Callable[[], T]) -> T:
    """Call a function in a thread. What it names and does not exist is 404, data that cannot be read 422."""
    try:
        return await asyncio.to_thread(function)
    except KeyError as error:
        raise RequestRejectedError(404, f"nothing here is called {error}") from None
    except RequestRejectedError:
        raise
    except MaskwiseError as error:
        raise RequestRejectedError(422, str(error)) from None


def _find(browsed: BrowsedSets, key: str) -> BrowsedDataset:
    found = browsed.datasets.get(key)
    if found is None:
        raise RequestRejectedError(
            404, f"no dataset {key[:100]!r}; GET /v1/datasets lists them"
        )
    return found


def _check_row(row: int, count: int, what: str) -> None:
    if row >= count:
        raise RequestRejectedError(404, f"row {row} of {count} {what}")


def _read_slices(given: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    if any(not sign for _, sign, _ in pairs):
        raise RequestRejectedError(
            422, "expected slice=NAME=VALUE, for example slice=mask_type=amodal"
        )
    return {name: value for name, _, value in pairs}


def _page(
    found: BrowsedDataset, query: SampleQuery, offset: int, limit: int
) -> dict[str, object]:
    rows = found.select(query)
    chosen = rows[offset : offset + limit].tolist()
    return {
        "total": len(rows),
        "offset": offset,
        "samples": found.summaries(chosen, query),
    }
