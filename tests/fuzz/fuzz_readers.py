"""Run damaged files and requests through all readers, with bounded time and memory.

`make fuzz SECONDS=60` runs this file after the kernel's. By hand:

    python -m tests.fuzz.fuzz_readers --seconds 60 --seed 1 [--only "npz predictions" --only ...]

A worker process with a limit on its address space damages a valid input (see mutations.py) and reads it. A reader must
return or raise a MaskwiseError; anything else is a finding: another exception, a crash, memory beyond the limit, or an
input that takes longer than PATIENCE seconds. Findings are kept in .cache/fuzz/findings and make the exit code 1.
"""

import argparse
import hashlib
import multiprocessing
import os
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.reader_targets import EXPECTED, Target, list_targets, scratch_folder

MEMORY_BYTES = 2**30
"""Address space that reading may take beyond what the program itself has."""

PATIENCE = 10
"""Seconds of the processor that one input may take: on a busy machine a worker may wait for its turn."""

ASLEEP = 600
"""Seconds that one input may take in all, where nothing is computed."""

FINDINGS = Path(".cache/fuzz/findings")

EVERY = 200
"""Inputs between two reports of a worker."""


@dataclass
class Tally:
    """What a worker did: calls and refusals by target, findings by place with an example each."""

    calls: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    examples: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    peak_bytes: int = 0

    def add(self, other: "Tally") -> None:
        """Add what another worker did."""
        self.calls += other.calls
        self.refused += other.refused
        self.findings += other.findings
        self.examples = other.examples | self.examples
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)


def try_input(target: Target, data: bytes, tally: Tally) -> None:
    """Read one input and note what happened."""
    tally.calls[target.name] += 1
    try:
        target.read(data)
    except EXPECTED:
        tally.refused[target.name] += 1
    except (Exception, SystemExit) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        ours = [
            step
            for step in traceback.extract_tb(error.__traceback__)
            if "maskwise" in step.filename
        ]
        step = ours[-1] if ours else frame
        place = f"{target.name}: {type(error).__name__} in {Path(step.filename).name}:{step.lineno}"
        tally.findings[place] += 1
        tally.examples.setdefault(
            place, ("".join(traceback.format_exception(error)), data)
        )


def make_input(target: Target, seed: int, number: int) -> bytes:
    """The damaged input of a number; every hundredth is the valid one."""
    return (
        target.seed
        if number % 100 == 0
        else target.mutate(Random(f"{seed} {target.name} {number}"), target.seed)
    )


def limit_memory(extra: int) -> None:
    """Refuse address space beyond what is used now and `extra`."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + extra, used + extra))


def be_quiet() -> None:
    """Drop warnings, and what decoders print about damaged files."""
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def schedule(options: argparse.Namespace, folder: Path) -> list[Target]:
    """The targets in the order in which workers read them; quick ones more often."""
    targets = [
        target
        for target in list_targets(folder)
        if options.only is None or target.name in options.only
    ]
    return [target for target in targets for _ in range(target.share)]


def work(options: argparse.Namespace, first: int, at: Any, results: Any) -> None:
    """A worker: inputs first, first + workers, ... until the time is over. `at` shows which input is being read."""
    with scratch_folder() as folder:
        be_quiet()
        targets = schedule(options, Path(folder))
        for target in targets:
            target.read(target.seed)
        limit_memory(MEMORY_BYTES)
        tally = Tally()
        number = first
        while time.time() < options.end:
            at.value = number
            target = targets[number // options.workers % len(targets)]
            try_input(target, make_input(target, options.seed, number), tally)
            number += options.workers
            if tally.calls.total() >= EVERY:
                tally.peak_bytes = (
                    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
                )
                results.put(tally)
                tally = Tally()
        tally.peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        results.put(tally)


@dataclass
class Worker:
    """A running worker and the input it is reading."""

    process: Any
    at: Any
    since: float = 0.0
    busy_before: float = 0.0
    seen: int = -1

    def is_stuck(self) -> bool:
        """Whether it has been reading one input for too long."""
        busy = processor_seconds(self.process.pid)
        if self.at.value != self.seen:
            self.seen = self.at.value
            self.since = time.time()
            self.busy_before = busy
        is_slow = busy - self.busy_before > PATIENCE
        return self.seen >= 0 and (is_slow or time.time() - self.since > ASLEEP)


def processor_seconds(pid: int) -> float:
    """What a process has computed so far; 0 after its end."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    # The fields 14 and 15 of the whole line: user and system time, in ticks.
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watch(options: argparse.Namespace) -> Tally:
    """Run the workers; one that dies or hangs is a finding, and another continues behind its input."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    total = Tally()

    def start(first: int) -> Worker:
        at = context.Value("q", -1, lock=False)
        process = context.Process(target=work, args=(options, first, at, results))
        process.start()
        return Worker(process, at)

    workers = [start(first) for first in range(options.workers)]
    while workers:
        drain(results, total)
        for place, worker in enumerate(workers):
            stuck = worker.is_stuck()
            if stuck:
                worker.process.kill()
                worker.process.join()
            if worker.process.is_alive():
                continue
            worker.process.join()
            if worker.process.exitcode == 0:
                workers.pop(place)
                break
            note_death(
                total,
                worker,
                options,
                "hang" if stuck else f"crash {worker.process.exitcode}",
            )
            workers[place] = start(worker.at.value + options.workers)
        time.sleep(0.2)
    time.sleep(0.2)
    drain(results, total)
    return total


def drain(results: Any, total: Tally) -> None:
    while not results.empty():
        total.add(results.get())


def note_death(
    total: Tally, worker: Worker, options: argparse.Namespace, what: str
) -> None:
    """Keep the input that a worker was reading when it died."""
    with scratch_folder() as folder:
        targets = schedule(options, Path(folder))
    number = max(0, worker.at.value)
    target = targets[number // options.workers % len(targets)]
    place = f"{target.name}: {what}"
    total.findings[place] += 1
    total.examples.setdefault(
        place,
        (
            f"seed {options.seed}, input {number}\n",
            make_input(target, options.seed, number),
        ),
    )


def report(total: Tally, seconds: float) -> int:
    """Print calls and findings; keep the examples. 1 if there are findings."""
    for name, calls in sorted(total.calls.items()):
        print(f"{name:<24}{calls:>9} calls, {total.refused[name]} refused")
    for place, count in total.findings.most_common():
        text, data = total.examples[place]
        FINDINGS.mkdir(parents=True, exist_ok=True)
        file = FINDINGS / hashlib.sha256(data).hexdigest()[:16]
        file.write_bytes(data)
        file.with_suffix(".txt").write_text(text, encoding="utf-8")
        print(f"{count} x {place}; input in {file}")
        print("    " + "\n    ".join(text.strip().splitlines()[-3:]))
    kinds = Counter(
        place.partition(": ")[2].split()[0] for place in total.findings.elements()
    )
    hangs = kinds.pop("hang", 0)
    crashes = kinds.pop("crash", 0)
    print(
        f"{total.calls.total()} calls in {seconds:.0f} s, {crashes} crashes, {kinds.total()} tracebacks, "
        f"{hangs} hangs, peak memory {total.peak_bytes / 2**20:.0f} MB"
    )
    return int(bool(total.findings))


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Run damaged input through all readers."
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--only", action="append", help="the name of a target; repeat for several"
    )
    options = parser.parse_args()
    options.end = time.time() + options.seconds
    print(f"readers, seed {options.seed}, {options.workers} workers", flush=True)
    return report(watch(options), options.seconds)


if __name__ == "__main__":
    sys.exit(main())
