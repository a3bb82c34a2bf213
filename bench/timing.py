"""Timing and tables. Times are the least processor time of several repeats, because other programs run as well."""

import gc
import time
from collections.abc import Callable
from typing import NamedTuple

from bench.sizes import choose


class Row(NamedTuple):
    """One method and its time in microseconds per item."""

    name: str
    microseconds: float


class Table(NamedTuple):
    """Methods for one task, ours last, and the ratio that ours must reach against some of them."""

    title: str
    rows: list[Row]
    wanted: dict[str, float]


def fastest(
    work: Callable[[], object], items: int, *, repeats: int = 7, seconds: float = 4.0
) -> float:
    """Microseconds per item: the least processor time of up to `repeats` runs within about `seconds`.

    A quick measurement runs the work once.
    """
    repeats = choose(repeats, 1)
    best = float("inf")
    started = time.perf_counter()
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
    """A table with the ratio of each time to ours, and the wanted ratio if there is one."""
    ours = table.rows[-1].microseconds
    lines = [
        f"## {table.title}",
        "",
        "| method | µs | ours is faster by | wanted |",
        "|---|--:|--:|--:|",
    ]
    for row in table.rows[:-1]:
        wanted = f"{table.wanted[row.name]:g}x" if row.name in table.wanted else ""
        lines.append(
            f"| {row.name} | {row.microseconds:,.2f} | {row.microseconds / ours:,.1f}x | {wanted} |"
        )
    lines.append(f"| **{table.rows[-1].name}** | **{ours:,.2f}** | | |")
    return "\n".join(lines) + "\n"
