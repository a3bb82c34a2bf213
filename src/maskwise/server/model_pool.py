"""The models of a server by name: the one it was started with, and others that a user of the page chooses.

Each runs in a process of its own. A few run at once; starting another one ends the one that was idle longest.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from maskwise.errors import MaskwiseError, did_you_mean
from maskwise.server.limits import RETRY_SECONDS
from maskwise.server.model_process import ServedModel
from maskwise.server.model_worker import ModelWorker
from maskwise.server.responses import RequestRejectedError

MAX_RUNNING = 3
"""Models that run at once, the first one included, which always runs."""


class ModelPool:
    """default: the first model and its name. start: starts another model of a name among `names`, which takes time."""

    def __init__(
        self,
        default: str,
        worker: ModelWorker,
        *,
        names: tuple[str, ...] = (),
        start: Callable[[str], ServedModel] | None = None,
    ) -> None:
        self.default = default
        # The default is listed first, and once.
        self.names = (default, *(name for name in names if name != default))
        self._start = start
        self._running: OrderedDict[str, ModelWorker] = OrderedDict({default: worker})
        self._starting = asyncio.Lock()

    def running(self, name: str) -> bool:
        """Whether the process of a model has been started."""
        return name in self._running

    @property
    def waiting(self) -> int:
        """Requests that wait for any model."""
        return sum(len(worker.queue) for worker in self._running.values())

    async def find(self, name: str | None) -> tuple[str, ModelWorker]:
        """Name and worker of a model, started if it does not run; None for the default."""
        name = name or self.default
        if name not in self.names:
            raise RequestRejectedError(
                404,
                f"unknown model {name!r}; GET /v1/models lists those that are served"
                f"{did_you_mean(name, self.names)}",
            )
        if name not in self._running:
            async with self._starting:
                # Another request may have started it meanwhile.
                if name not in self._running:
                    self._make_room()
                    self._running[name] = await self._start_worker(name)
        self._running.move_to_end(name)
        return name, self._running[name]

    def close(self) -> None:
        """End all models."""
        for worker in self._running.values():
            worker.close()

    async def _start_worker(self, name: str) -> ModelWorker:
        if self._start is None:
            raise RequestRejectedError(404, f"this server cannot start model {name!r}")
        try:
            return ModelWorker(await asyncio.to_thread(self._start, name))
        except MaskwiseError as error:
            raise RequestRejectedError(
                422, f"model {name!r} cannot be loaded here: {error}"
            ) from None

    def _make_room(self) -> None:
        if len(self._running) < MAX_RUNNING:
            return
        # The first is the one that was used longest ago.
        idle = [
            name
            for name, worker in self._running.items()
            if name != self.default and not len(worker.queue)
        ]
        if not idle:
            headers = {"Retry-After": str(RETRY_SECONDS)}
            raise RequestRejectedError(
                503, "all model processes are busy; try again", headers
            )
        self._running.pop(idle[0]).close()
