"""What differs between the metrics we got and the golden ones."""

import math
from typing import Any

NON_FINITE = {"nan", "inf", "-inf"}


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
        if _agree(got, wanted, tolerance)
        else [f"{path}: got {got!r}, wanted {wanted!r}"]
    )


def _agree(got: Any, wanted: Any, tolerance: float) -> bool:
    if wanted in NON_FINITE and isinstance(got, float):
        wanted = float(wanted)
    if not isinstance(got, float) and not isinstance(wanted, float):
        return bool(got == wanted)
    if not isinstance(got, int | float) or not isinstance(wanted, int | float):
        return False
    if math.isnan(wanted) or math.isinf(wanted):
        return got == wanted or (math.isnan(got) and math.isnan(wanted))
    return abs(got - wanted) <= tolerance
