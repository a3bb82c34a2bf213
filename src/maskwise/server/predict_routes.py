"""`POST /v1/predict`, a request as `harness.wire_format` describes it, and `GET /healthz`."""

from fastapi import APIRouter, Request, Response

from maskwise.harness import wire_format
from maskwise.server.openapi import PREDICT_OPERATION
from maskwise.server.service import PredictionService


def predict_router(service: PredictionService) -> APIRouter:
    """The routes that other programs use."""
    router = APIRouter()

    @router.post(wire_format.PREDICT, **PREDICT_OPERATION)
    async def predict(request: Request) -> Response:
        """Ask questions about one image, which is encoded once for all of them."""
        return await service.predict(request)

    @router.get(wire_format.HEALTH)
    async def healthz(request: Request) -> Response:
        """Status of the server, and which model it serves."""
        return service.health(request)

    return router
