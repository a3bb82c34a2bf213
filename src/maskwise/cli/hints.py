"""Hints at arguments that were given in the wrong order, or twice."""

from collections.abc import Sequence
from pathlib import Path

from maskwise.errors import MaskwiseError, StoreError


def is_dataset(text: object) -> bool:
    """Whether an argument names a bundled dataset, a dataset folder or a release."""
    from maskwise.datasets import BUNDLED_DATASETS
    from maskwise.formats.release_folder import find_release
    from maskwise.store.folder import MANIFEST

    path = Path(str(text))
    if str(text) in BUNDLED_DATASETS or (path / MANIFEST).is_file():
        return True
    return find_release(path) is not None


def refuse_swapped(
    command: str, usage: str, first: object, second: object, *, when: bool
) -> None:
    """Raise an error with the right order, where two arguments are the other way round.

    usage: the names of the arguments in the right order. when: whether they are swapped.
    """
    if when:
        raise MaskwiseError(
            f"`maskwise {command}` takes {usage}, in this order. "
            f"Did you mean `maskwise {command} {second} {first}`?"
        )


def refuse_repeated_runs(runs: Sequence[Path]) -> None:
    """Raise an error if two arguments are the same run folder: it would only agree with itself."""
    places = [run.resolve() for run in runs]
    for run, place in zip(runs, places, strict=True):
        if places.count(place) > 1:
            raise StoreError(f"{run} is named twice; name different runs")
