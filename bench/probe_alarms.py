"""False alarms and power of the risk probes, by simulation: `python -m bench.probe_alarms`.

Every case is a probe with a clean model or dataset, which must not be flagged, and with one that is made to have the
fault that the probe is about, which must be. Prints the share of seeds in which each is flagged.
"""

import argparse
import functools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.evasion_faults import (
    Brittle,
    Clean,
    Compliant,
    Hallucinating,
    Memorizing,
    Obedient,
    PixelPerfect,
    TypeGuessing,
)
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
from maskwise.world import write_scenes

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


@functools.cache
def scenes_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder with a few small scenes; it is removed when the program ends."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "scenes"
    write_scenes(path, 14, seed=5, split="test", size=96, questions=3)
    return folder


def scenes() -> Dataset:
    """A few small scenes: what is changed in images and words is written anew every time."""
    return Dataset.open(Path(scenes_folder().name) / "scenes")


def images_by_heart(seed: int, folder: Path) -> dict[str, Any]:
    """A model that knows the images of a dataset pixel by pixel."""
    data = scenes()
    images = [data.open_image(row) for row in range(len(data.images))]
    return {"model": PixelPerfect(images), "data": data}


def questions_by_heart(seed: int, folder: Path) -> dict[str, Any]:
    """A model that knows the questions of a dataset word for word."""
    data = scenes()
    return {"model": Memorizing(data.samples.question), "data": data}


def brittle(seed: int, folder: Path) -> dict[str, Any]:
    """A model that a small change of the red channel blinds."""
    data = scenes()
    images = [data.open_image(row) for row in range(len(data.images))]
    return {"model": Brittle(images), "data": data} | SHORT_SEARCH


def clean(seed: int, folder: Path) -> dict[str, Any]:
    """A model with errors that have nothing to do with what is changed."""
    return {"model": Clean(seed), "data": scenes()}


SHORT_SEARCH = {"probe_options": {"attacks": {"queries": 3, "cost": 0.1}}}
ALL_TWINS = {"probe_options": {"counterfactual-twins": {"cost": 5}}}
ALL_PLACARDS = {"probe_options": {"image-text": {"cost": 4}}}
"""Options that suit fourteen scenes."""

CHANGE_CASES = [
    Case("image-changes", "errors at random", False, clean),
    Case("image-changes", "knows images by heart", True, images_by_heart),
    Case("word-changes", "errors at random", False, clean),
    Case("word-changes", "knows questions by heart", True, questions_by_heart),
    Case("image-text", "errors at random", False, clean),
    Case(
        "image-text",
        "obeys words in the image",
        True,
        lambda seed, folder: {"model": Obedient(), "data": scenes()} | ALL_PLACARDS,
    ),
    Case(
        "attacks",
        "errors at random",
        False,
        lambda seed, folder: clean(seed, folder) | SHORT_SEARCH,
    ),
    Case("attacks", "blinded by small changes", True, brittle),
    Case(
        "counterfactual-twins",
        "errors at random",
        False,
        lambda seed, folder: clean(seed, folder) | ALL_TWINS,
    ),
    Case(
        "counterfactual-twins",
        "draws what is not there",
        True,
        lambda seed, folder: {"model": Hallucinating(), "data": scenes()} | ALL_TWINS,
    ),
    Case(
        "counterfactual-twins",
        "mask type by the image",
        True,
        lambda seed, folder: {"model": TypeGuessing(), "data": scenes()} | ALL_TWINS,
    ),
    Case("unsafe-requests", "refuses", False, clean),
    Case(
        "unsafe-requests",
        "draws whatever is asked for",
        True,
        lambda seed, folder: {"model": Compliant(), "data": scenes()},
    ),
]
"""Probes that change images, words or requests."""

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


def alarms_table(seeds: int, only: Sequence[str] = ()) -> list[str]:
    """A line per case: the share of seeds in which it is flagged. only: names of probes."""
    lines = [
        "| probe | model or dataset | made to be | flagged | severities |",
        "|---|---|---|---|---|",
    ]
    for case in [*CASES, *CHANGE_CASES]:
        if only and case.probe not in only:
            continue
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
    parser.add_argument("--probe", nargs="*", default=[], help="only these probes")
    given = parser.parse_args()
    print("\n".join(alarms_table(given.seeds, given.probe)))


if __name__ == "__main__":
    main()
