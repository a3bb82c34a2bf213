"""The OpenAPI document, which the framework makes from the routes, and the page at /docs, which loads no other file."""

from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

from litestar import Request, get
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.openapi.spec import Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition

import maskwise
from maskwise.harness.wire_format import PredictResponse, RequestImage
from maskwise.schema import Prediction

if TYPE_CHECKING:
    from litestar._openapi.schema_generation import SchemaCreator

DESCRIPTION = "Questions about an image in, answers and masks out. Masks are COCO run lengths of the image's size."


def _prediction_fields() -> dict[str, Any]:
    """The fields of a prediction as responses have them: none names a sample."""
    fields = get_type_hints(Prediction, include_extras=True)
    del fields["sample"]
    return fields


class HttpRecordSchemas(OpenAPISchemaPlugin):
    """Describes the records that have other fields over HTTP than between processes.

    An image is always sent whole (`png`), because the server reads no files; a prediction names no sample.
    """

    fields_by_record: ClassVar[dict[Any, dict[str, Any]]] = {
        RequestImage: {"png": bytes},
        Prediction: _prediction_fields(),
        PredictResponse: {"id": str, "predictions": list[Prediction]},
    }
    required_by_record: ClassVar[dict[Any, list[str]]] = {
        RequestImage: ["png"],
        Prediction: [],
        PredictResponse: ["id", "predictions"],
    }

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        """Whether a field is one of these records."""
        return field_definition.annotation in self.fields_by_record

    def to_openapi_schema(
        self, field_definition: FieldDefinition, schema_creator: "SchemaCreator"
    ) -> Schema:
        """The schema of a record with its fields over HTTP."""
        record = field_definition.annotation
        fields = {
            name: FieldDefinition.from_annotation(annotation, name=name)
            for name, annotation in self.fields_by_record[record].items()
        }
        return schema_creator.create_component_schema(
            field_definition,
            required=self.required_by_record[record],
            property_fields=fields,
        )


class DocumentationPage(OpenAPIRenderPlugin):
    """The routes as a page of plain HTML."""

    def __init__(self) -> None:
        super().__init__(path="/")

    def render(
        self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]
    ) -> bytes:
        """The page."""
        rows = []
        for path, methods in openapi_schema["paths"].items():
            for method, route in methods.items():
                name = escape(f"{method.upper()} {path}")
                description = escape(route.get("description", ""))
                rows.append(f"<dt><code>{name}</code></dt><dd>{description}</dd>")
        title = f"maskwise {escape(maskwise.__version__)}"
        page = (
            f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>maskwise</title><h1>{title}</h1>'
            f"<p>{escape(DESCRIPTION)}</p><dl>{''.join(rows)}</dl>"
            '<p><a href="/openapi.json">openapi.json</a> has every field and status, for readers and for tools.</p>'
            "</html>"
        )
        return page.encode()


def openapi_config() -> OpenAPIConfig:
    """The configuration of the document: it is shown at /docs; `openapi_json` sends it."""
    return OpenAPIConfig(
        title="maskwise",
        version=maskwise.__version__,
        description=DESCRIPTION,
        path="/docs",
        render_plugins=[DocumentationPage()],
        use_handler_docstrings=True,
    )


@get("/openapi.json", include_in_schema=False, sync_to_thread=False)
def openapi_json(request: Request[Any, Any, Any]) -> dict[str, Any]:
    """The document itself."""
    return request.app.openapi_schema.to_schema()
