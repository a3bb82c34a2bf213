"""Models that end their process, for tests of engines that have more than one."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from maskwise.schema import Prediction
from tests.harness.fakes import Painter

MORTALS = "tests.harness.mortals"


class Mortal(Painter):
    """Ends its process at a question with the word `die`, or exits at one with `leave`, as often as `lives` allows.

    deaths: a file that grows by a byte each time, so that processes know of each other.
    """

    def __init__(self, *, deaths: str, lives: int, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.deaths, self.lives = Path(deaths), lives

    def predict(self, picture: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        found = super().predict(picture, questions)
        words = {word for question in questions for word in question.split()}
        if words & {"die", "leave"} and self.count() < self.lives:
            with self.deaths.open("ab") as file:
                file.write(b"x")
            sys.exit(0) if "leave" in words else os._exit(1)
        return found

    def count(self) -> int:
        return self.deaths.stat().st_size if self.deaths.exists() else 0


class Known(Painter):
    """Writes down which process works; takes long at a question with the word `slow` until the file `woken` exists."""

    def __init__(self, *, pids: str = "", woken: str = "", **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.pids, self.woken = pids, Path(woken)

    def predict(self, picture: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        if self.pids:
            with open(self.pids, "a") as file:
                file.write(f"{os.getpid()}\n")
        while any("slow" in question for question in questions) and not self.woken.exists():
            time.sleep(0.05)
        return super().predict(picture, questions)


class Fickle(Painter):
    """Other weights in every process."""

    def __init__(self) -> None:
        super().__init__(weights=str(os.getpid()))
