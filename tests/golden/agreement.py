"""How well the scoring rules agree with the official code: cases and the largest difference, per golden file.

    python -m tests.golden.agreement FOLDER [--write]

FOLDER has the golden files. `--write` keeps the result in docs/results/agreement.json, of which the README is made.
"""

import argparse
import json
from pathlib import Path

from docs.generate.front_page import AGREEMENT
from tests.golden import check_file, read_golden
from tests.golden.compare import observed


def measure(path: Path) -> dict[str, object]:
    """cases, failed, source; how many fractional numbers were compared, and the largest difference from what the
    official code returned, in its own units.
    """
    largest = 0.0
    numbers = 0

    def note(place: str, difference: float) -> None:
        nonlocal largest, numbers
        # `expected_exact` is an independent calculation, not the official code.
        if place.startswith("expected") and not place.startswith("expected_exact"):
            largest = max(largest, difference)
            numbers += 1

    with observed(note):
        problems = [problems for _, problems in check_file(path)]
    _, cases = read_golden(path)
    source = json.loads(path.read_bytes())["source_repo"]
    return {
        "cases": len(cases),
        "failed": sum(bool(found) for found in problems),
        "numbers": numbers,
        "largest": float(f"{largest:.1e}"),
        "source": source,
    }


def main() -> None:
    """Print, and with --write store, the agreement of every file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    result = {
        path.stem: measure(path) for path in sorted(arguments.folder.glob("*.json"))
    }
    text = json.dumps(result, indent=1) + "\n"
    print(text, end="")
    if arguments.write:
        AGREEMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
