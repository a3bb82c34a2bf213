"""Timing and tables. Times are the least processor time of several repeats: the machine is never quiet."""

import gc
import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One way of doing the work: microseconds an item."""

    name: str
    microseconds: float


class Table(NamedTuple):
    """Ways of doing one piece of work, ours last, and what ours must reach against some of them."""

    title: str
    rows: list[Row]
    wanted: dict[str, float]


def fastest(work: Callable[[], object], items: int, *, repeats: int = 7, seconds: float = 4.0) -> float:
    """Microseconds an item: the least processor time of up to `repeats` runs within about `seconds`."""
    best, started = float("inf"), time.perf_counter()
    gc.disable()
    try:
        for _ in range(repeats):
            before = time.process_time()
            work()
            best = min(best, time.process_time() - before)
            if time.perf_counter() - started > seconds:
                break
    finally:
        gc.enable()
    return best / items * 1e6


def to_markdown(table: Table) -> str:
    """A table with how many times faster ours is than each, and the ratio wanted where there is one."""
    ours = table.rows[-1].microseconds
    lines = [f"## {table.title}", "", "| way | µs | ours is faster by | wanted |", "|---|--:|--:|--:|"]
    for row in table.rows[:-1]:
        wanted = f"{table.wanted[row.name]:g}x" if row.name in table.wanted else ""
        lines.append(f"| {row.name} | {row.microseconds:,.2f} | {row.microseconds / ours:,.1f}x | {wanted} |")
    lines.append(f"| **{table.rows[-1].name}** | **{ours:,.2f}** | | |")
    return "\n".join(lines) + "\n"
