"""`load_dataset`: a dataset by name or folder."""

import os
from pathlib import Path

from maskwise.errors import StoreError
from maskwise.harness.evaluate import find_dataset
from maskwise.store import Dataset


def load_dataset(
    dataset: "str | os.PathLike[str] | Dataset",
    *,
    images: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Open a dataset: a sequence of samples that can be sliced and filtered.

    dataset: `world`, which comes with maskwise, or a dataset folder. images: the folder of the images, if not the one
    that the dataset names.

    Example: data = load_dataset("world")[:20]
    """
    if isinstance(dataset, Dataset):
        return dataset
    if not isinstance(dataset, str | os.PathLike):
        raise StoreError(
            f"expected the name or folder of a dataset, not a value of type {type(dataset).__name__}"
        )
    return Dataset.open(find_dataset(Path(dataset)), image_root=images)
