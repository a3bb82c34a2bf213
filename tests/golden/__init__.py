"""Golden files: inputs with the metrics that other projects' official code gives for them.

A file is `{"protocol": name, "cases": [{"name", "input", "expected", "expected_exact"}, ...]}`. The module of this
folder called `name` checks its cases: `check(case)` returns the problems found, none if the case passes.
"""

import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from maskwise.errors import UnknownNameError

Case = dict[str, Any]
Check = Callable[[Case], list[str]]

NOT_PROTOCOLS = {
    "__init__",
    "__main__",
    "agreement",
    "compare",
    "questions",
    "records",
}


def known_protocols() -> list[str]:
    """Names that have a module here."""
    return sorted(
        path.stem
        for path in Path(__file__).parent.glob("*.py")
        if path.stem not in NOT_PROTOCOLS
    )


def find_check(protocol: str) -> Check:
    """The check of a protocol; UnknownNameError lists the known ones."""
    if protocol not in known_protocols():
        raise UnknownNameError("golden protocol", protocol, known_protocols())
    check: Check = importlib.import_module(f"tests.golden.{protocol}").check
    return check


def read_golden(path: Path) -> tuple[str, list[Case]]:
    """The protocol and the cases of a file."""
    content = json.loads(path.read_bytes())
    return content["protocol"], content["cases"]


def check_file(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Name and problems of every case. A case that raises has the exception as its problem."""
    protocol, cases = read_golden(path)
    check = find_check(protocol)
    for case in cases:
        try:
            yield case["name"], check(case)
        except Exception as error:
            yield case["name"], [f"raised {type(error).__name__}: {error}"]
