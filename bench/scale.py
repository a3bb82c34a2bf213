"""The Ray engine by workers: questions per second, and how many answers one driver can take.

    python bench/scale.py [--model tiny] [--workers 1 2] [--write]

prints the figures of docs/guides/scale.md, and with --write puts them there. Each number of
workers runs in a process of its own. Its rate is that of the answers after the first
quarter, when all workers work; the time before the first answer is the start.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import msgspec
import numpy as np
from PIL import Image

from maskwise.engines import EngineOptions
from maskwise.engines.shards import Shards
from maskwise.harness.predict import predict_dataset
from maskwise.harness.progress import Progress
from maskwise.masks import Mask
from maskwise.schema import PredictedRegion, Prediction
from maskwise.store import Dataset, Log
from maskwise.world import write_scenes

SCENES = 1500
SEED = 13
ROUNDS = 3
PAGE = Path(__file__).parents[1] / "docs" / "guides" / "scale.md"
QUESTIONS = 194_398
IMAGES = 57_643
"""All of MMR (github.com/jdg900/MMR, README)."""

DECODER = msgspec.json.Decoder(list[Prediction])


class Busy:
    """A model that only takes time: products of matrices on one thread, about 50 ms an image."""

    name = "busy"

    def __init__(self, *, products: int = 50) -> None:
        self.products = products
        self.matrix = np.full((256, 256), 1 / 256, np.float32)

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """The upper half, whatever is asked."""
        matrix = self.matrix
        for _ in range(self.products):
            matrix = matrix @ self.matrix
        inside = np.zeros((image.height, image.width), bool)
        inside[: image.height // 2] = matrix[0, 0] > 0
        region = PredictedRegion(visible=Mask.from_dense(inside))
        return [Prediction(sample="", regions=(region,)) for _ in questions]


class Pace(NamedTuple):
    """How a run went: seconds until the first answer; from a quarter on, questions and images a second, and what a
    question took of a processor, in milliseconds: in the workers, in this process, in the rest of Ray.
    """

    start: float
    questions: float
    images: float
    workers: float
    driver: float
    ray: float


def main() -> None:
    """Measure every number of workers in turn, several times, and print Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--scenes", type=int, default=SCENES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--write", action="store_true", help="put the figures into docs/guides/scale.md"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder) / "scenes"
        write_scenes(dataset, given.scenes, SEED, split="test", workers=2)
        paces: dict[int, list[Pace]] = {workers: [] for workers in given.workers}
        for number in range(
            given.rounds
        ):  # in turn, so that all meet the same moods of the machine
            for workers in given.workers:
                out = Path(folder) / f"{workers}-{number}"
                paces[workers].append(
                    _measure_apart(given.model, dataset, out, workers=workers)
                )
                print(workers, paces[workers][-1], file=sys.stderr)
        figures = _pace_table(given.model, dataset, paces) + _driver_table(
            Path(folder) / f"{given.workers[0]}-0" / "predictions.jsonl", dataset
        )
    print(figures)
    if given.write:
        before, mark, rest = PAGE.read_text(encoding="utf-8").partition(
            "<!-- figures -->\n"
        )
        after = rest.partition("<!-- /figures -->")[2]
        PAGE.write_text(
            f"{before}{mark}{figures}<!-- /figures -->{after}", encoding="utf-8"
        )


def measure(model: str, dataset: Path, out: Path, *, workers: int) -> Pace:
    """Predict the whole dataset. Ray tells the models to use one thread an worker."""
    opened = Dataset.open(dataset)
    seen: list[tuple[float, int]] = []
    spent: list[Counter[str]] = []
    began = time.perf_counter()

    def watch(progress: Progress) -> None:
        seen.append((time.perf_counter(), progress.done))
        if len(seen) in (1 + len(opened.images) // 4, 1 + len(opened.images)):
            spent.append(_processor_seconds())

    predict_dataset(
        model,
        dataset,
        out,
        engine=EngineOptions(engine="ray", workers=workers),
        on_progress=watch,
    )
    first = len(opened.images) // 4
    seconds = seen[-1][0] - seen[first][0]
    asked = seen[-1][1] - seen[first][1]
    costs = [
        1000 * (spent[1][kind] - spent[0][kind]) / asked
        for kind in ("workers", "driver", "ray")
    ]
    return Pace(
        seen[1][0] - began,
        asked / seconds,
        (len(opened.images) - first) / seconds,
        *costs,
    )


def _processor_seconds() -> Counter[str]:
    """Of this process and of all that descend from it; workers by what Ray calls them."""
    parents = {}
    names = {}
    spent = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            spent[int(folder.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf(
                "SC_CLK_TCK"
            )
            names[int(folder.name)] = (folder / "cmdline").read_text()
    total: Counter[str] = Counter()
    for pid, name in names.items():
        above = pid
        while above not in (0, 1, os.getpid()):
            above = parents.get(above, 0)
        if above == os.getpid():
            kind = (
                "driver"
                if pid == os.getpid()
                else "workers"
                if name.startswith("ray::MapWorker")
                else "ray"
            )
            total[kind] += spent[pid]
    return total


def _measure_apart(model: str, dataset: Path, out: Path, *, workers: int) -> Pace:
    command = [
        sys.executable,
        __file__,
        "once",
        model,
        str(dataset),
        str(out),
        str(workers),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Pace(*map(float, done.stdout.split()))


def _pace_table(model: str, dataset: Path, paces: dict[int, list[Pace]]) -> str:
    opened = Dataset.open(dataset)
    best = {
        workers: max(found, key=lambda pace: pace.questions)
        for workers, found in paces.items()
    }
    one = best[min(best)]
    lines = [
        f"`{model}`, {len(opened):,} questions about {len(opened.images):,} images of the world, best of "
        f"{max(map(len, paces.values()))}, {os.cpu_count()} cores; processor time in ms a question:",
        "",
        "| workers | questions/s | times one | images/s | first answer | in workers | in the driver | in Ray |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for workers, pace in best.items():
        lines.append(
            f"| {workers} | {pace.questions:,.1f} | {pace.questions / one.questions:.2f} | {pace.images:,.1f} | "
            f"{pace.start:.1f} s | {pace.workers:.2f} | {pace.driver:.2f} | {pace.ray:.2f} |"
        )
    lines += [
        "",
        "| all of MMR | with as many questions per image as here | with its own number, if an image costs the same |",
    ]
    lines += ["|---|--:|--:|"]
    for workers in (*best, 8 * max(best), 64 * max(best)):
        pace = best.get(workers, best[max(best)])
        share = workers / (workers if workers in best else max(best))
        name = f"{workers} worker" if workers == 1 else f"{workers} workers"
        name += "" if workers in best else f", {workers // max(best)} such machines"
        whole = QUESTIONS / pace.questions / share
        own = IMAGES / pace.images / share
        lines.append(f"| {name} | {_hours(whole)} | {_hours(own)} |")
    return "\n".join(lines) + "\n\n"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds > 3600 else f"{seconds / 60:.1f} min"


def _driver_table(path: Path, dataset: Path) -> str:
    """Answers per second that this process can write, in order and out of order."""
    results = _encoded_results(path, dataset)
    questions = sum(len(DECODER.decode(result)) for result in results)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        with Log(Path(folder) / "log.jsonl", Prediction) as log:
            for result in results:
                log.extend(DECODER.decode(result))
        ordered = time.perf_counter() - began
        began = time.perf_counter()
        with Log(Path(folder) / "late.jsonl", Prediction) as log:
            shards = Shards(Path(folder) / "shards")
            for image, result in enumerate(results):
                shards.add(image, result)
            for image in range(len(results)):
                log.extend(DECODER.decode(shards.pop(image)))
        late = time.perf_counter() - began
    return "\n".join(
        [
            "| the driver alone | questions/s |",
            "|---|--:|",
            f"| answers in order | {questions / ordered:,.0f} |",
            f"| every answer early, through a shard | {questions / late:,.0f} |",
            "",
        ]
    )


def _encoded_results(path: Path, dataset: Path) -> list[bytes]:
    """The predictions of a run, image by image, as workers send them."""
    predictions = Log(path, Prediction).read()
    opened = Dataset.open(dataset)
    owner = dict(zip(opened.samples.id, opened.samples.image))
    groups: dict[int, list[Prediction]] = {}
    for prediction in predictions:
        image = int(owner[prediction.sample])
        groups.setdefault(image, []).append(prediction)
    return [msgspec.json.encode(group) for group in groups.values()]


if __name__ == "__main__":
    if sys.argv[1:2] == ["once"]:
        pace = measure(
            sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), workers=int(sys.argv[5])
        )
        print(*pace)
    else:
        main()
