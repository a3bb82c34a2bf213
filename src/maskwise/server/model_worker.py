"""A served model with its queue and its thread: requests reach the model one at a time, clients in turn."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from maskwise.server.fair_queue import FairQueue
from maskwise.server.model_process import ServedModel
from maskwise.server.requests import BoundedRequest
from maskwise.server.responses import RequestRejectedError

MAX_WAITING = 256
"""Requests that wait for one model. Those with an image in their body have a lower limit of their own."""

T = TypeVar("T")


class ModelWorker:
    """A model with its queue."""

    def __init__(self, model: ServedModel) -> None:
        self.model = model
        self.queue = FairQueue(MAX_WAITING)
        # A model answers one request at a time, so that one thread waits for it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")

    async def call(
        self, request: BoundedRequest, image: str, function: Callable[[ServedModel], T]
    ) -> T:
        """Wait for the turn of this client and image, then call the function in the model's thread."""
        client = request.client.host if request.client else ""
        async with self.queue.turn(client, image):
            # Nobody would read the answer.
            if await request.is_disconnected():
                raise RequestRejectedError(400, "the client has disconnected")
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, function, self.model)

    def close(self) -> None:
        """End the model; a request being answered fails."""
        self.model.interrupt()
        self._thread.shutdown(cancel_futures=True)
        self.model.close()
