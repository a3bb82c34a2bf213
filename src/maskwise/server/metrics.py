"""Metrics for Prometheus at `GET /metrics`: requests by route and status, their duration, questions and queues."""

import time
from collections.abc import Callable
from typing import Any

from litestar import Response, Router, get
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from maskwise.server.access import check_read
from maskwise.server.responses import errors

CONTENT_TYPE = CONTENT_TYPE_LATEST.removesuffix("; charset=utf-8")
"""The text format of Prometheus; the framework adds the charset."""

# From a static file to the timeout of a question.
SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)


class ServerMetrics:
    """The metrics of one server, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "maskwise_requests_total",
            "Requests by route and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.duration = Histogram(
            "maskwise_request_seconds",
            "Seconds until a response is complete.",
            ("route",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.model_duration = Histogram(
            "maskwise_model_seconds",
            "Seconds a model takes for a question, by whether the image was encoded before.",
            ("model", "encoding"),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.waiting = Gauge(
            "maskwise_questions_waiting",
            "Questions that wait for a model.",
            registry=self.registry,
        )
        self.uploaded = Gauge(
            "maskwise_uploaded_image_bytes",
            "Bytes of uploaded images in memory.",
            registry=self.registry,
        )


class MeasuredRequests:
    """Wraps an application and counts requests by the template of their route: the number of series is bounded."""

    def __init__(self, app: Callable[..., Any], metrics: ServerMetrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and note its status and duration."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # A list, so that the function below can change it; 500 where no response is begun.
        status = [500]
        started = time.perf_counter()

        async def note_status(message: Any) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, note_status)
        finally:
            # Set by the framework where it finds a route.
            route = scope.get("path_template", "none")
            method = (
                scope["method"]
                if scope["method"] in ("GET", "POST", "PUT", "DELETE", "HEAD")
                else "other"
            )
            self.metrics.requests.labels(method, route, str(status[0])).inc()
            self.metrics.duration.labels(route).observe(time.perf_counter() - started)


def metrics_router(metrics: ServerMetrics) -> Router:
    """`GET /metrics`."""

    @get(
        "/metrics",
        guards=[check_read],
        sync_to_thread=False,
        media_type="text/plain",
        responses=errors(401),
    )
    def read_metrics() -> Response[bytes]:
        """The metrics of this server in the text format of Prometheus."""
        text = generate_latest(metrics.registry)
        return Response(text, media_type=CONTENT_TYPE)

    return Router("/", route_handlers=[read_metrics])
