"""False alarms and power of the risk probes, by simulation: `python -m bench.probe_alarms`.

Every case is a probe with a clean model or dataset, which must not be flagged, and with one that is made to have the
fault that the probe is about, which must be. Prints the share of seeds in which each is flagged.
"""

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.probe_faults import (
    DrawsAmodal,
    FailsSometimes,
    FixedPlace,
    StatesConfidence,
    is_small,
    write_squares,
)
from maskwise.datasets import load_dataset
from maskwise.probes.run_probes import probe
from maskwise.runs.probe_results import Severity
from maskwise.store import Dataset

SEEDS = 100
GROUPS = ("a", "b", "c")


@dataclass(frozen=True)
class Case:
    """A probe with one model on one dataset. make: from a seed and a folder, arguments of `probe`."""

    probe: str
    title: str
    faulty: bool
    make: Callable[[int, Path], dict[str, Any]]


def world() -> Dataset:
    """The bundled scenes."""
    return load_dataset("world")


def small_objects(seed: int, folder: Path) -> dict[str, Any]:
    """A model that fails on small objects."""
    model = FailsSometimes(seed, lambda sample: 0.7 if is_small(sample) else 0.1)
    return {"model": model, "data": world()}


def one_group(seed: int, folder: Path) -> dict[str, Any]:
    """A model that fails on one group of people."""
    data = write_squares(folder / "data", seed=seed, groups=GROUPS)
    model = FailsSometimes(
        seed, lambda sample: 0.6 if sample.tags["group"] == "a" else 0.1
    )
    return {"model": model, "data": data}


def other_reference(seed: int, folder: Path, **shape: Any) -> dict[str, Any]:
    """A dataset, and a reference that has the shape given."""
    write_squares(folder / "reference", seed=seed + 10_000, **shape)
    return {
        "model": None,
        "data": write_squares(folder / "data", seed=seed),
        "probe_options": {
            "unrepresentative-data": {"reference": str(folder / "reference")}
        },
    }


def dataset_alone(seed: int, folder: Path, **shape: Any) -> dict[str, Any]:
    """A dataset of the shape given, without a model."""
    return {
        "model": None,
        "data": write_squares(folder / "data", seed=seed, **shape),
    }


CASES = [
    Case(
        "output-bias",
        "fails at random",
        False,
        lambda seed, folder: {"model": FailsSometimes(seed), "data": world()},
    ),
    Case("output-bias", "fails on small objects", True, small_objects),
    Case(
        "output-bias",
        "draws amodal masks only",
        True,
        lambda seed, folder: {"model": DrawsAmodal(seed), "data": world()},
    ),
    Case("unrepresentative-data", "same population", False, other_reference),
    Case(
        "unrepresentative-data",
        "reference has objects on the left only",
        True,
        lambda seed, folder: other_reference(seed, folder, left_only=True),
    ),
    Case("data-bias", "objects anywhere", False, dataset_alone),
    Case(
        "data-bias",
        "objects at one place",
        True,
        lambda seed, folder: dataset_alone(seed, folder, centered=True),
    ),
    Case(
        "data-bias",
        "a tenth of the images twice",
        True,
        lambda seed, folder: dataset_alone(seed, folder, copies=6),
    ),
    Case(
        "data-bias",
        "model that looks at nothing",
        True,
        lambda seed, folder: {
            "model": FixedPlace(),
            "data": write_squares(folder / "data", seed=seed),
        },
    ),
    Case(
        "poor-model-accuracy",
        "calibrated, better than required",
        False,
        lambda seed, folder: {
            "model": StatesConfidence(seed),
            "data": world(),
            "probe_options": {"poor-model-accuracy": {"require": "giou=0.4"}},
        },
    ),
    Case(
        "poor-model-accuracy",
        "too sure by 25 points",
        True,
        lambda seed, folder: {"model": StatesConfidence(seed, 0.25), "data": world()},
    ),
    Case(
        "poor-model-accuracy",
        "worse than required",
        True,
        lambda seed, folder: {
            "model": StatesConfidence(seed),
            "data": world(),
            "probe_options": {"poor-model-accuracy": {"require": "giou=0.8"}},
        },
    ),
    Case(
        "demographic",
        "groups that mean nothing",
        False,
        lambda seed, folder: {
            "model": FailsSometimes(seed),
            "data": write_squares(folder / "data", seed=seed, groups=GROUPS),
            "probe_options": {"demographic": {"column": "group"}},
        },
    ),
    Case(
        "demographic",
        "fails for one group",
        True,
        lambda seed, folder: (
            one_group(seed, folder)
            | {"probe_options": {"demographic": {"column": "group"}}}
        ),
    ),
]


def measure(case: Case, seed: int) -> Severity:
    """The severity that a case gets with a seed."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = case.make(seed, Path(folder))
        results = probe(**arguments, probes=case.probe, seed=seed, progress=False)
    return results.results[0].severity


def alarms_table(seeds: int) -> list[str]:
    """A line per case: the share of seeds in which it is flagged."""
    lines = [
        "| probe | model or dataset | made to be | flagged | severities |",
        "|---|---|---|---|---|",
    ]
    for case in CASES:
        severities = [measure(case, seed) for seed in range(seeds)]
        flagged = sum(item in ("low", "medium", "high") for item in severities)
        kinds = ", ".join(
            f"{kind} {severities.count(kind)}" for kind in dict.fromkeys(severities)
        )
        made = "faulty" if case.faulty else "clean"
        lines.append(
            f"| `{case.probe}` | {case.title} | {made} | {flagged / seeds:.0%} | {kinds} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    print("\n".join(alarms_table(parser.parse_args().seeds)))


if __name__ == "__main__":
    main()
