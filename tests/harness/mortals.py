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
    """Ends its process at the question that ends with `die`, exits at that with `leave`, at each `lives` times.

    deaths: a file with one line a death, so that processes know of each other.
    """

    def __init__(
        self, *, deaths: str, lives: int, die: str, leave: str = "", **options: object
    ) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.deaths = Path(deaths)
        self.lives = lives
        self.die = die
        self.leave = leave

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        found = super().predict(image, questions)
        for question in questions:
            if question.split()[-1] in (self.die, self.leave):
                self.end(question.split()[-1])
        return found

    def end(self, place: str) -> None:
        before = self.deaths.read_text().splitlines() if self.deaths.exists() else []
        if before.count(place) < self.lives:
            with self.deaths.open("a") as file:
                file.write(f"{place}\n")
            sys.exit(0) if place == self.leave else os._exit(1)


class Known(Painter):
    """Writes down which process works; takes long at a question with the word `slow` until the file `woken` exists."""

    def __init__(self, *, pids: str = "", woken: str = "", **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.pids = pids
        self.woken = Path(woken)

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        if self.pids:
            with open(self.pids, "a") as file:
                file.write(f"{os.getpid()}\n")
        while (
            any("slow" in question for question in questions)
            and not self.woken.exists()
        ):
            time.sleep(0.05)
        return super().predict(image, questions)


class Fickle(Painter):
    """Other weights in every process."""

    def __init__(self) -> None:
        super().__init__(weights=str(os.getpid()))
