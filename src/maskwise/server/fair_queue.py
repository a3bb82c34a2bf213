"""A queue that serves clients in turn, and the images of a client in turn: nobody waits for another's whole list."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from maskwise.server.limits import RETRY_SECONDS
from maskwise.server.responses import RequestRejectedError

Waiting = asyncio.Future[None]


class FairQueue:
    """One turn at a time. limit: how many may wait or have the turn; the next one is rejected with 503."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._clients: OrderedDict[Hashable, OrderedDict[Hashable, deque[Waiting]]] = (
            OrderedDict()
        )
        self._accepted = 0
        self._busy = False

    def __len__(self) -> int:
        """How many wait or have the turn."""
        return self._accepted

    @asynccontextmanager
    async def turn(self, client: Hashable, image: Hashable) -> AsyncIterator[None]:
        """Wait for the turn; it ends with the block."""
        if self._accepted >= self.limit:
            headers = {"Retry-After": str(RETRY_SECONDS)}
            raise RequestRejectedError(503, "too many requests are waiting", headers)
        self._accepted += 1
        try:
            await self._wait(client, image)
            try:
                yield
            finally:
                self._pass_on()
        finally:
            self._accepted -= 1

    async def _wait(self, client: Hashable, image: Hashable) -> None:
        if not self._busy:
            self._busy = True
            return
        waiting: Waiting = asyncio.get_running_loop().create_future()
        self._clients.setdefault(client, OrderedDict()).setdefault(
            image, deque()
        ).append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self._pass_on()  # the turn came at the same moment
            raise

    def _pass_on(self) -> None:
        while self._clients:
            waiting = self._next()
            # A future that is done belongs to a request that was cancelled while it waited.
            if not waiting.done():
                waiting.set_result(None)
                return
        self._busy = False

    def _next(self) -> Waiting:
        """The next one: of the client, and of its image, that had the turn longest ago."""
        # The first of each is the one whose turn was longest ago; after its turn it goes to the end.
        client, images = next(iter(self._clients.items()))
        image, queue = next(iter(images.items()))
        waiting = queue.popleft()
        images.move_to_end(image)
        self._clients.move_to_end(client)
        if not queue:
            del images[image]
        if not images:
            del self._clients[client]
        return waiting
