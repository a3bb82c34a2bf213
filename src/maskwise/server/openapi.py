"""The OpenAPI document of the server, and the page at /docs, which loads nothing from elsewhere."""

from html import escape
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from maskwise.harness import wire_format
from maskwise.schema import Prediction

DESCRIPTION = (
    "Questions about an image in, answers and masks out. Masks are COCO run lengths of the image's size."
)

ERRORS = {
    400: "The body is not a valid request.",
    401: "The token is missing or wrong.",
    408: "The headers or the body took too long to arrive.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    421: "The request names another host than this server.",
    422: "The image cannot be opened, or there are too many questions.",
    500: "The model failed on this request; the server's log has the details.",
    503: "Too many connections, or too many requests are waiting; try again after Retry-After seconds.",
    504: "The model did not answer in time.",
}


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The document with the records of the wire format among its schemas; made once per application."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        found.setdefault("components", {}).setdefault("schemas", {}).update(_schemas())
        app.openapi_schema = found
    return app.openapi_schema


def documentation_page(app: FastAPI) -> str:
    """The routes as HTML."""
    routes = "".join(
        f"<dt><code>{method.upper()} {path}</code></dt><dd>{escape(route['description'])}</dd>"
        for path, methods in app.openapi()["paths"].items()
        for method, route in methods.items()
    )
    return (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>maskwise</title><h1>maskwise {app.version}</h1>'
        f"<p>{escape(app.description)}</p><dl>{routes}</dl>"
        '<p><a href="/openapi.json">openapi.json</a> has every field and status, for readers and for tools.</p></html>'
    )


def _schemas() -> dict[str, Any]:
    """The records as they are over HTTP: a prediction names no sample, an image is always sent whole."""
    _, schemas = msgspec.json.schema_components(
        [wire_format.Request, Prediction], ref_template="#/components/schemas/{name}"
    )
    del schemas["Prediction"]["properties"]["sample"]
    image = schemas[wire_format.RequestImage.__name__]
    image["properties"] = {"png": {"type": "string", "contentEncoding": "base64"}}
    image["required"] = ["png"]
    return schemas | {
        "Response": {
            "type": "object",
            "required": ["id", "predictions"],
            "properties": {
                "id": {"type": "string"},
                "predictions": {"type": "array", "items": {"$ref": "#/components/schemas/Prediction"}},
            },
        },
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": {"id": {"type": "string"}, "error": {"type": "string"}},
        },
    }


def _json_of(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


PREDICT_OPERATION: dict[str, Any] = {
    "openapi_extra": {"requestBody": {"required": True, "content": _json_of("Request")}},
    "responses": {
        200: {"description": "One prediction per question, in order.", "content": _json_of("Response")},
        **{status: {"description": text, "content": _json_of("Error")} for status, text in ERRORS.items()},
    },
}
"""What the document says about `POST /v1/predict`."""
