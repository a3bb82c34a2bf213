"""The OpenAPI document of the server, and the page at /docs, which loads nothing from elsewhere."""

from html import escape
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from maskwise.harness import wire_format
from maskwise.schema import Prediction

DESCRIPTION = "Questions about an image in, answers and masks out. Masks are COCO run lengths of the image's size."

ERRORS = {
    400: "The body is not a valid request.",
    401: "The token is missing or wrong.",
    408: "The headers or the body took too long to arrive.",
    413: "The body is too large.",
    404: "What the address or the request names is not here.",
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
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
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
                "predictions": {
                    "type": "array",
                    "items": {"$ref": "#/components/schemas/Prediction"},
                },
            },
        },
        "StoredImage": {
            "type": "object",
            "required": ["id", "width", "height"],
            "properties": {
                "id": {"type": "string"},
                "width": {"type": "integer"},
                "height": {"type": "integer"},
            },
        },
        "Question": {
            "type": "object",
            "required": ["image", "question"],
            "additionalProperties": False,
            "properties": {
                "image": {
                    "type": "string",
                    "description": "The id that POST /v1/images returned.",
                },
                "question": {"type": "string"},
                "model": {
                    "type": ["string", "null"],
                    "description": "A name of GET /v1/models.",
                },
            },
        },
        "AskResponse": {
            "type": "object",
            "required": ["image", "model", "question", "answer", "seconds"],
            "properties": {
                "image": {"$ref": "#/components/schemas/StoredImage"},
                "model": {"type": "string"},
                "question": {"type": "string"},
                "answer": {"$ref": "#/components/schemas/AskAnswer"},
                "seconds": {"type": "number"},
            },
        },
        "AskAnswer": {
            "type": "object",
            "properties": {
                "prediction": {"$ref": "#/components/schemas/Prediction"},
                "mask_type_probability": {"type": ["number", "null"]},
                "occlusion_rates": {
                    "type": "array",
                    "items": {"type": ["number", "null"]},
                },
                "domain_warning": {"type": ["string", "null"]},
                "encoding_reused": {"type": "boolean"},
                "seconds": {"type": "number"},
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


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the document says about errors of these statuses."""
    return {
        status: {"description": ERRORS[status], "content": _json_of("Error")}
        for status in statuses
    }


PREDICT_OPERATION: dict[str, Any] = {
    "openapi_extra": {
        "requestBody": {"required": True, "content": _json_of("Request")}
    },
    "responses": {
        200: {
            "description": "One prediction per question, in order.",
            "content": _json_of("Response"),
        },
        **error_responses(*(status for status in ERRORS if status != 404)),
    },
}
"""What the document says about `POST /v1/predict`."""

UPLOAD_OPERATION: dict[str, Any] = {
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {
                "application/octet-stream": {
                    "schema": {"type": "string", "format": "binary"}
                }
            },
        }
    },
    "responses": {
        200: {
            "description": "Id, width and height of the image.",
            "content": _json_of("StoredImage"),
        },
        **error_responses(400, 401, 408, 413, 421, 422, 503),
    },
}
"""What the document says about `POST /v1/images`."""

ASK_OPERATION: dict[str, Any] = {
    "openapi_extra": {
        "requestBody": {"required": True, "content": _json_of("Question")}
    },
    "responses": {
        200: {
            "description": "The answer, and the masks it refers to.",
            "content": _json_of("AskResponse"),
        },
        **error_responses(*ERRORS),
    },
}
"""What the document says about `POST /v1/ask`."""
