"""The order in which waiting requests get their turn."""

import asyncio

import pytest

from maskwise.server.fair_queue import FairQueue
from maskwise.server.responses import RequestRejectedError


def run_turns(asked: list[tuple[str, str]], limit: int = 100) -> list[tuple[str, str]]:
    """The order in which turns are given to those who wait, all at once, behind a first one."""
    order: list[tuple[str, str]] = []

    async def wait(queue: FairQueue, who: tuple[str, str]) -> None:
        async with queue.turn(*who):
            order.append(who)

    async def main() -> None:
        queue = FairQueue(limit)
        async with queue.turn("first", "image"):
            waiting = [asyncio.create_task(wait(queue, who)) for who in asked]
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)
        assert len(queue) == 0

    asyncio.run(main())
    return order


def test_clients_take_turns_and_so_do_the_images_of_a_client() -> None:
    asked = [("a", "1"), ("a", "1"), ("a", "2"), ("b", "1"), ("b", "1")]
    assert run_turns(asked) == [
        ("a", "1"),
        ("b", "1"),
        ("a", "2"),
        ("b", "1"),
        ("a", "1"),
    ]


def test_the_queue_is_bounded() -> None:
    with pytest.raises(RequestRejectedError, match="too many requests are waiting"):
        run_turns([("a", "1")] * 5, limit=5)


def test_a_cancelled_request_gives_up_its_place_and_its_turn() -> None:
    async def main() -> list[str]:
        queue = FairQueue(10)
        order = []

        async def wait(name: str) -> None:
            async with queue.turn(name, ""):
                order.append(name)

        async with queue.turn("first", ""):
            tasks = [asyncio.create_task(wait(name)) for name in "abc"]
            await asyncio.sleep(0)
            tasks[0].cancel()
            await asyncio.sleep(0)
        tasks[1].cancel()  # after the turn was given to it
        await asyncio.gather(*tasks, return_exceptions=True)
        async with queue.turn("last", ""):
            order.append("last")
        assert len(queue) == 0
        return order

    assert asyncio.run(main()) == ["c", "last"]
