"""The routes of the browse page: datasets, their samples and images, and the predictions of runs.

| route | |
|---|---|
| `GET /v1/datasets` | the datasets with their runs and slicings |
| `GET /v1/datasets/{key}/samples` | a page of samples, filtered and sorted |
| `GET /v1/datasets/{key}/samples/{row}` | a sample with its masks and the predictions for it |
| `GET /v1/datasets/{key}/images/{row}` | an image; `thumbnail=true` for a small one |
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from litestar import Response, Router, get
from litestar.di import NamedDependency, Provide
from litestar.params import (
    FromPath,
    FromQuery,
    PathParameter,
    QueryParameter,
    SkipValidation,
)

from maskwise.server.access import check_read
from maskwise.server.browse import BrowsedDataset, SampleQuery
from maskwise.server.browser_images import encode_image, encode_thumbnail
from maskwise.server.responses import (
    Connection,
    ErrorMessage,
    RequestRejectedError,
    error_response,
    errors,
)

MAX_PAGE = 200
"""Samples of one response."""

MAX_ROW = 2**31 - 1
"""Rows of tables are numbered with 32 bits."""

MAX_TEXT = 500
"""Characters; every word is looked for in every sample."""

MAX_SLICES = 50
"""Filters at once; a dataset has about ten slicings."""


Browsed = NamedDependency[SkipValidation[Mapping[str, BrowsedDataset]]]
Row = Annotated[int, PathParameter(ge=0, le=MAX_ROW)]


@get("/v1/datasets", sync_to_thread=True, responses=errors(401))
def list_datasets(browsed: Browsed) -> list[dict[str, Any]]:
    """The datasets that can be browsed, with their slicings and runs."""
    return [dataset.describe() for dataset in browsed.values()]


@get(
    "/v1/datasets/{key:str}/samples",
    sync_to_thread=True,
    responses=errors(401, 404, 422),
)
def list_samples(
    browsed: Browsed,
    key: FromPath[str],
    *,
    text: Annotated[str, QueryParameter(max_length=MAX_TEXT)] = "",
    slices: Annotated[
        list[str] | None, QueryParameter(name="slice", max_items=MAX_SLICES)
    ] = None,
    run: FromQuery[str | None] = None,
    protocol: FromQuery[str | None] = None,
    status: FromQuery[str | None] = None,
    sort: FromQuery[Literal["order", "score", "-score"]] = "order",
    offset: Annotated[int, QueryParameter(ge=0, le=MAX_ROW)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=MAX_PAGE)] = 24,
) -> dict[str, Any]:
    """A page of samples. slice: `name=value`, any number of times."""
    query = SampleQuery(
        text=text,
        slices=_read_slices(slices or []),
        run=run,
        protocol=protocol,
        status=status,
        sort=sort,
    )
    dataset = _find(browsed, key)
    rows = dataset.select(query)
    page = rows[offset : offset + limit].tolist()
    return {
        "total": len(rows),
        "offset": offset,
        "samples": dataset.summaries(page, query),
    }


@get(
    "/v1/datasets/{key:str}/samples/{row:str}",
    sync_to_thread=True,
    responses=errors(401, 404, 422),
)
def read_sample(browsed: Browsed, key: FromPath[str], row: Row) -> dict[str, Any]:
    """A sample with its masks, and the predictions of the runs."""
    dataset = _find(browsed, key)
    _check_row(row, len(dataset.dataset), "samples")
    return dataset.sample(row)


@get(
    "/v1/datasets/{key:str}/images/{row:str}",
    sync_to_thread=True,
    media_type="image/png",
    responses=errors(401, 404, 422),
)
def read_image(
    browsed: Browsed,
    key: FromPath[str],
    row: Row,
    *,
    thumbnail: FromQuery[bool] = False,
) -> Response[bytes]:
    """An image of a dataset, upright."""
    dataset = _find(browsed, key).dataset
    _check_row(row, len(dataset.images), "images")
    image = dataset.open_image(row)
    data, kind = encode_thumbnail(image) if thumbnail else encode_image(image)
    headers = {"Cache-Control": "private, max-age=3600"}
    return Response(data, headers=headers, media_type=kind)


def browse_router(browsed: Mapping[str, BrowsedDataset]) -> Router:
    """The routes. browsed: the datasets by their keys."""
    return Router(
        "/",
        route_handlers=[list_datasets, list_samples, read_sample, read_image],
        guards=[check_read],
        dependencies={"browsed": Provide(lambda: browsed, sync_to_thread=False)},
        exception_handlers={KeyError: _answer_unknown_name},
    )


def _answer_unknown_name(
    _request: Connection, error: KeyError
) -> Response[ErrorMessage]:
    """A run, protocol or slicing that the dataset does not have."""
    return error_response(404, f"nothing here is called {error}")


def _find(browsed: Mapping[str, BrowsedDataset], key: str) -> BrowsedDataset:
    dataset = browsed.get(key)
    if dataset is None:
        raise RequestRejectedError(
            404, f"no dataset {key[:100]!r}; GET /v1/datasets lists them"
        )
    return dataset


def _check_row(row: int, count: int, what: str) -> None:
    if row >= count:
        raise RequestRejectedError(404, f"row {row} of {count} {what}")


def _read_slices(texts: list[str]) -> dict[str, str]:
    slices = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise RequestRejectedError(
                422, "expected slice=NAME=VALUE, for example slice=mask_type=amodal"
            )
        slices[name] = value
    return slices
