"""Plant errors of known kinds in a dataset, to measure what an audit finds: `python bench/audit.py` uses it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from maskwise.masks import Mask, Masks
from maskwise.schema import Region, Sample
from maskwise.store import Dataset, DatasetWriter

SPECKS = 4
"""Specks that are added beside a mask, 2 x 2 pixels each."""

GROWTH = 0.02
"""Share of the diagonal by which the boundary of a mask moves outwards."""

WRONG_NAME = "submarine"
"""Not in any of our datasets."""

Change = Callable[[Sample, Sequence[Sample], np.random.Generator], Sample | None]
"""From a sample and the others of its image to the sample with an error; None where that is not possible."""


def plant_errors(
    dataset: Dataset, out: Path, *, share: float, seed: int = 0
) -> dict[str, str]:
    """Write a copy of a dataset with errors in a share of its samples; returns the kind of error by sample id.

    Kinds take turns, so that there are about as many of each, as far as the samples allow.
    """
    rng = np.random.default_rng(seed)
    wanted = set(
        rng.choice(len(dataset), round(share * len(dataset)), replace=False).tolist()
    )
    planted: dict[str, str] = {}
    counts = dict.fromkeys(CHANGES, 0)
    root = None if dataset.image_root is None else str(dataset.image_root.resolve())
    with DatasetWriter(out, name=dataset.name, image_root=root) as writer:
        for image, samples in dataset.groups():
            data = dataset.images.table["data"][dataset.images.row[image.id]].as_py()
            writer.add_image(image, dataset.regions_of(image.id), data)
            for sample in samples:
                others = [other for other in samples if other.id != sample.id]
                changed = None
                if dataset.samples.row[sample.id] in wanted:
                    # The rarest kind that this sample allows.
                    for kind in sorted(CHANGES, key=lambda name: counts[name]):
                        changed = CHANGES[kind](sample, others, rng)
                        if changed is not None:
                            planted[sample.id] = kind
                            counts[kind] += 1
                            break
                writer.add_sample(changed or sample)
    return planted


def _move_visible(
    sample: Sample, others: Sequence[Sample], rng: np.random.Generator
) -> Sample | None:
    """The visible mask moved by a quarter of its width, so that it leaves the amodal one."""
    del others, rng
    target = _first_target(sample)
    if target is None or target.visible is None or target.amodal is None:
        return None
    distance = max(3, target.visible.box[2] // 4)
    (moved,) = Masks.from_masks([target.visible]).shift(distance, 0)
    if not (moved - target.amodal).area:
        return None
    return _with_target(sample, visible=moved)


def _add_specks(
    sample: Sample, others: Sequence[Sample], rng: np.random.Generator
) -> Sample | None:
    del others
    target = _first_target(sample)
    if target is None:
        return None
    height, width = target.size
    specks = np.zeros((height, width), bool)
    for _ in range(SPECKS):
        y, x = rng.integers(0, (height - 2, width - 2))
        specks[y : y + 2, x : x + 2] = True
    added = Mask.from_dense(specks)
    return _with_target(
        sample,
        visible=target.visible and target.visible | added,
        amodal=target.amodal and target.amodal | added,
    )


def _shrink(
    sample: Sample, others: Sequence[Sample], rng: np.random.Generator
) -> Sample | None:
    """All masks of the target reduced to one square of 3 x 3 pixels."""
    del others, rng
    target = _first_target(sample)
    if target is None:
        return None
    mask = target.visible or target.amodal
    assert mask is not None
    x, y, _, _ = mask.box
    pixels = np.zeros(target.size, bool)
    pixels[y : y + 3, x : x + 3] = True
    small = Mask.from_dense(pixels)
    return _with_target(
        sample,
        visible=target.visible and small,
        amodal=target.amodal and small,
    )


def _repeat_truth(
    sample: Sample, others: Sequence[Sample], rng: np.random.Generator
) -> Sample | None:
    """Another question of the image again, with its truth."""
    if not others:
        return None
    other = others[rng.integers(len(others))]
    return msgspec.structs.replace(other, id=sample.id)


def _repeat_question(
    sample: Sample, others: Sequence[Sample], rng: np.random.Generator
) -> Sample | None:
    """The words of another question of the image, with the truth of this one."""
    del rng
    names = {target.id for target in sample.targets}
    for other in others:
        if {target.id for target in other.targets} != names:
            return msgspec.structs.replace(sample, question=other.question)
    return None


def _swap_type(
    sample: Sample, others: Sequence[Sample], rng: np.random.Generator
) -> Sample | None:
    del others, rng
    target = _first_target(sample)
    if target is None or sample.mask_type == "both":
        return None
    if target.visible is None or target.amodal is None:
        return None
    if not (target.amodal - target.visible).area:
        # Nothing is hidden: both types have the same mask, and neither is wrong.
        return None
    other = "amodal" if sample.mask_type == "visible" else "visible"
    return msgspec.structs.replace(sample, mask_type=other)


def _rename(
    sample: Sample, others: Sequence[Sample], rng: np.random.Generator
) -> Sample | None:
    del others, rng
    if _first_target(sample) is None or sample.answer is None:
        return None
    return _with_target(sample, name=WRONG_NAME)


def _exchange_target(
    sample: Sample, others: Sequence[Sample], rng: np.random.Generator
) -> Sample | None:
    """The target of another question of the image, under the name of this one."""
    del rng
    target = _first_target(sample)
    if target is None:
        return None
    for other in others:
        strange = _first_target(other)
        if strange is None or strange.id == target.id:
            continue
        pair = (strange.amodal or strange.visible, target.amodal or target.visible)
        assert pair[0] is not None
        assert pair[1] is not None
        if pair[0].iou(pair[1]) < 0.1:
            return _with_target(sample, visible=strange.visible, amodal=strange.amodal)
    return None


def _grow(
    sample: Sample, others: Sequence[Sample], rng: np.random.Generator
) -> Sample | None:
    """All masks of the target with their boundaries moved outwards."""
    from scipy.ndimage import binary_dilation  # noqa: PLC0415

    del others, rng
    target = _first_target(sample)
    if target is None:
        return None
    reach = max(2, round(GROWTH * float(np.hypot(*target.size))))
    grown = {
        name: None if mask is None else binary_dilation(mask.to_dense(), None, reach)
        for name, mask in (("visible", target.visible), ("amodal", target.amodal))
    }
    return _with_target(sample, **grown)


CHANGES: dict[str, Change] = {
    "outside": _move_visible,
    "sliver": _add_specks,
    "empty": _shrink,
    "duplicate": _repeat_truth,
    "contradiction": _repeat_question,
    "mask_type": _swap_type,
    "names": _rename,
    "runs_agree": _exchange_target,
    "boundary": _grow,
}
"""Errors by the check that should find them."""


def _first_target(sample: Sample) -> Region | None:
    """The first target, if it has pixels."""
    if not sample.targets:
        return None
    target = sample.targets[0]
    mask = target.visible if sample.mask_type == "visible" else target.amodal
    return target if mask is not None and mask.area else None


def _with_target(sample: Sample, **fields: object) -> Sample:
    """The sample with another first target, which gets an id of its own."""
    target = msgspec.structs.replace(
        sample.targets[0], id=f"{sample.targets[0].id}~{sample.id}", **fields
    )
    return msgspec.structs.replace(sample, targets=(target, *sample.targets[1:]))
