"""`maskwise serve`, put together: a model in its process, the pages and their routes, and a listening server."""

import multiprocessing
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskwise.harness.registry import list_question_models
from maskwise.registry import list_models
from maskwise.server.access import AccessTokens, session_router
from maskwise.server.app import AsgiApp, make_app
from maskwise.server.ask_routes import ask_router
from maskwise.server.browse import BrowsedDataset, open_browsed
from maskwise.server.browse_routes import browse_router
from maskwise.server.browser_copies import BrowserCopies
from maskwise.server.http_server import open_server
from maskwise.server.image_uploads import ImageUploads
from maskwise.server.limits import RequestLimits
from maskwise.server.metrics import ServerMetrics, metrics_router
from maskwise.server.model_pool import ModelPool
from maskwise.server.model_process import ModelProcess, ServedModel
from maskwise.server.model_worker import ModelWorker
from maskwise.server.predict_routes import predict_router
from maskwise.server.static_files import ASK_PAGES, page_router
from maskwise.store import Dataset
from maskwise.world import bundled


@dataclass(frozen=True)
class ServeConfig:
    """What to serve, and where."""

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    timeout: float = 120.0
    datasets: tuple[Path, ...] = ()
    runs: tuple[Path, ...] = ()
    allowed_hosts: tuple[str, ...] = ()


def serve_model(config: ServeConfig, ready: Callable[[str, str], None]) -> None:
    """Serve until interrupted. ready: called with the name of the model and the address."""
    limits = RequestLimits()
    browsed = open_browsed(config.datasets, config.runs)
    # All that run, including those that are being loaded and are not in the pool yet.
    processes: weakref.WeakSet[ModelProcess] = weakref.WeakSet()

    def start(name: str) -> ServedModel:
        options = config.options if name == config.model else {}
        return ModelProcess(
            name,
            options,
            max_pixels=limits.pixels,
            timeout=config.timeout,
            register=processes.add,
        )

    names = tuple(_list_models_elsewhere())
    worker = ModelWorker(start(config.model))
    pool = ModelPool(config.model, worker, names=names, start=start)
    copies = BrowserCopies(limits.pixels)

    def interrupt() -> None:
        for process in list(processes):
            process.interrupt()
        copies.close()

    try:
        app = make_model_app(
            pool,
            worker,
            config.token,
            limits,
            browsed=browsed,
            examples=Dataset.open(bundled()),
            copies=copies,
        )
        server = open_server(
            app,
            config.host,
            config.port,
            has_token=config.token is not None,
            allowed_hosts=config.allowed_hosts,
            interrupt=interrupt,
        )
        ready(worker.model.facts.name, server.address)
        server.run()
    finally:
        copies.close()
        pool.close()


def make_model_app(
    pool: ModelPool,
    worker: ModelWorker,
    token: str | None,
    limits: RequestLimits,
    *,
    browsed: Mapping[str, BrowsedDataset] | None = None,
    examples: Dataset | None = None,
    copies: BrowserCopies | None = None,
) -> AsgiApp:
    """The application of `maskwise serve`. worker: the default model of the pool, for `POST /v1/predict`.

    examples: a dataset whose images are offered on the ask page. copies: of uploaded images, for browsers.
    """
    metrics = ServerMetrics()
    uploads = ImageUploads(limits.pixels)
    if examples is not None:
        uploads.add_examples(examples)
    routers = [
        predict_router(worker, limits),
        ask_router(
            pool,
            uploads,
            limits,
            copies=copies or BrowserCopies(limits.pixels),
            metrics=metrics,
            descriptions=list_models(),
        ),
        browse_router(browsed or {}),
        session_router(),
        metrics_router(metrics),
        page_router(ASK_PAGES),
    ]
    return make_app(
        routers,
        access=AccessTokens(token),
        body_seconds=limits.body_seconds,
        body_grace_seconds=limits.body_grace_seconds,
        metrics=metrics,
    )


def _list_models_elsewhere() -> dict[str, str]:
    """The models to choose from. Another process looks for them: importing some of them takes hundreds of megabytes."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(list_question_models).result()
