"""What differs between the metrics we got and the golden ones."""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

NON_FINITE = {"nan", "inf", "-inf"}

Observer = Callable[[str, float], None]
_observers: list[Observer] = []


@contextlib.contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Call the observer with the path and the difference of every two finite numbers that are compared."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def differences(
    got: Any, wanted: Any, tolerance: float = 0.0, path: str = ""
) -> list[str]:
    """Problems, one line each. Every key of `wanted` must be in `got`; numbers may differ by the tolerance.

    Whole numbers on both sides must be equal. The strings "nan", "inf" and "-inf" stand for those numbers.
    """
    if isinstance(wanted, dict):
        if not isinstance(got, dict):
            return [f"{path}: got {got!r}, wanted {wanted!r}"]
        lost = [f"{path}.{key}: missing" for key in wanted if key not in got]
        shared = [key for key in wanted if key in got]
        return lost + [
            line
            for key in shared
            for line in differences(got[key], wanted[key], tolerance, f"{path}.{key}")
        ]
    if isinstance(wanted, list):
        if not isinstance(got, list | tuple) or len(got) != len(wanted):
            return [f"{path}: got {got!r}, wanted {wanted!r}"]
        pairs = enumerate(zip(got, wanted))
        return [
            line
            for i, (g, w) in pairs
            for line in differences(g, w, tolerance, f"{path}[{i}]")
        ]
    return (
        []
        if _agree(got, wanted, tolerance, path)
        else [f"{path}: got {got!r}, wanted {wanted!r}"]
    )


def _agree(got: Any, wanted: Any, tolerance: float, path: str) -> bool:
    if wanted in NON_FINITE and isinstance(got, float):
        wanted = float(wanted)
    if not isinstance(got, float) and not isinstance(wanted, float):
        return bool(got == wanted)
    if not isinstance(got, int | float) or not isinstance(wanted, int | float):
        return False
    if math.isnan(wanted) or math.isinf(wanted):
        return got == wanted or (math.isnan(got) and math.isnan(wanted))
    difference = abs(got - wanted)
    for observer in _observers:
        observer(path, difference)
    return difference <= tolerance
