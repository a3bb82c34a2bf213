"""`python -m tests.golden FILE...`: check golden files; ends with `N passed, M failed`, exit status 1 if any failed."""

import sys
from pathlib import Path

from maskwise.errors import UnknownNameError
from tests.golden import check_file


def main(files: list[str]) -> int:
    if not files:
        print("usage: python -m tests.golden FILE...", file=sys.stderr)
        return 2
    passed = failed = 0
    for file in files:
        try:
            for name, problems in check_file(Path(file)):
                passed = passed + (not problems)
                failed = failed + bool(problems)
                for problem in problems:
                    print(f"{name}: {problem}")
        except (OSError, ValueError, KeyError, UnknownNameError) as error:
            failed += 1
            print(f"{file}: cannot be checked: {type(error).__name__}: {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
