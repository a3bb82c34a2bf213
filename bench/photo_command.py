"""CPU time of `maskwise ask` with one question about a photograph, relative to answering it in Python.

    python -m bench.photo_command IMAGE [--question WORDS] [--repeats N]

The command starts an interpreter, imports what it needs, opens the networks and prints. In Python the model is loaded
already: encoding the image and answering is measured, and loading the networks beside it. A repeat measures all of it
one after another, with one thread. Medians of the ratios are printed, so that other load of the machine matters less.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from maskwise.images import open_image
from maskwise.models.photo import load


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("image", type=Path)
    parser.add_argument("--question", default="the person")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    image = open_image(given.image)
    model = load(threads=1)
    # The first run of a network allocates its memory.
    model.predict(image, [given.question])
    answered = []
    with_loading = []
    for _ in range(given.repeats):
        command = _child_seconds(given.image, given.question)
        answer = _seconds(lambda: model.predict(image, [given.question]))
        loading = _seconds(lambda: load.__wrapped__(threads=1))
        answered.append(command / answer)
        with_loading.append(command / (answer + loading))
        print(f"command {command:.2f} s, answer {answer:.2f} s, load {loading:.2f} s")
    print(f"command, relative to the answer: {median(answered):.2f}")
    print(f"relative to loading and answer: {median(with_loading):.2f}")


def _child_seconds(image: Path, question: str) -> float:
    """CPU seconds of the command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = ["ask", str(image), question, "--model", "photo"]
    subprocess.run(
        [sys.executable, "-m", "maskwise", *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _seconds(function: Callable[[], object]) -> float:
    started = time.process_time()
    function()
    return time.process_time() - started


if __name__ == "__main__":
    main()
