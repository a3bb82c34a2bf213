"""Probe `image-changes`: does the model see the same in a worse image?"""

from typing import NamedTuple

import numpy as np

from maskwise.harness.plan import Plan
from maskwise.probes.change_findings import (
    effect_table,
    example_rows,
    list_measures,
    loss_sentence,
    strength_plot,
)
from maskwise.probes.changed_data import (
    LOSS_THRESHOLDS,
    ChangedRun,
    changed_image,
    changed_sample,
    draw_generator,
    move_region,
    move_sample,
    to_png,
    worst_severity,
    write_changed,
)
from maskwise.probes.context import ProbeContext
from maskwise.probes.corruptions import CORRUPTIONS, SEVERITIES, ChangedImage, corrupt
from maskwise.probes.crops import crop
from maskwise.probes.probe import Probe
from maskwise.runs.probe_results import ProbeFinding
from maskwise.schema import Region
from maskwise.store import DatasetWriter

CROP = "crop"
CHANGES = (*CORRUPTIONS, CROP)

FAMILIES = {
    "noise": ("gaussian noise", "shot noise", "impulse noise"),
    "blur": ("defocus blur", "glass blur", "motion blur", "zoom blur"),
    "weather": ("snow", "frost", "fog"),
    "light": ("brightness", "contrast"),
    "digital": ("pixelate", "jpeg"),
    "geometry": ("elastic", CROP),
}
"""Changes that are tested together: one change alone has too few images for a test."""

ALL = "all changes"

COST = 6.0
QUICK_COST = 0.5
"""Evaluations of the dataset that the probe takes: 80 conditions, each on a
thirteenth of the images; with `--quick` 16 conditions, each on a thirtieth."""

LEAST_IMAGES = 12
"""Changed images of a small dataset: a few more than an interval needs."""

QUICK_SEVERITY = 3


class Condition(NamedTuple):
    """One change of one image."""

    image: int
    change: str
    severity: int


def plan_changes(images: int, *, quick: bool, cost: float) -> list[Condition]:
    """Which image is changed how: all conditions alike often, all images alike often.

    images: their number; conditions name their positions.
    """
    severities = (QUICK_SEVERITY,) if quick else SEVERITIES
    conditions = [(change, level) for level in severities for change in CHANGES]
    wanted = max(cost * images, min(images, LEAST_IMAGES))
    share = wanted / len(conditions)
    planned = []
    position = 0
    given = 0.0
    for change, severity in conditions:
        given += share
        # Shares add up, so that few images still give the stated cost.
        while position + 1 <= given:
            planned.append(Condition(position % images, change, severity))
            position += 1
    return planned


def run_image_changes(context: ProbeContext, cost: float = COST) -> ProbeFinding:
    """Evaluate the model on changed images and compare it with itself on the unchanged ones.

    cost: evaluations of the dataset that may be used.
    """
    allowed = QUICK_COST if context.quick else cost
    folder = write_changed(
        context,
        "image-changes",
        lambda writer: _write(context, writer, allowed),
        settings=allowed,
    )
    run = context.evaluate("image-changes", data=folder)
    changed = ChangedRun(context, run, folder)
    labels = np.array(changed.changes)
    groups = [(ALL, np.ones(len(labels), np.bool_))]
    groups += [(name, np.isin(labels, members)) for name, members in FAMILIES.items()]
    effects = changed.compare(groups)
    singles = changed.compare(changed.by_change(CHANGES))
    levels = "severity 3" if context.quick else "severities 1 to 5"
    return ProbeFinding(
        finding=loss_sentence("A worse image", effects),
        severity=worst_severity(effects),
        done=(
            f"{len(set(changed.dataset.samples.image.tolist()))} changed images with "
            f"{len(run.ids)} questions: {len(CHANGES)} changes at {levels}, each "
            "compared with the same question about the unchanged image."
        ),
        measures=list_measures(effects),
        tables=[
            effect_table("By family of changes", effects),
            effect_table("By change", singles),
        ],
        plots=[] if context.quick else [strength_plot(changed, FAMILIES)],
        examples=example_rows(changed, "image-changes", groups[0][1]),
    )


def _write(context: ProbeContext, writer: DatasetWriter, cost: float) -> None:
    dataset = context.dataset
    plan = Plan.from_dataset(dataset)
    order = draw_generator(context.seed, "image-changes").permutation(len(plan))
    for condition in plan_changes(len(plan), quick=context.quick, cost=cost):
        planned = plan[int(order[condition.image])]
        info = dataset.image(planned.image)
        regions = dataset.regions_of(planned.image)
        suffix = f"{condition.change.replace(' ', '-')}-{condition.severity}"
        rng = draw_generator(context.seed, info.id, suffix)
        pixels = np.asarray(dataset.open_image(planned.image))
        result = _change(pixels, regions, condition, rng)
        if result is None:
            continue
        image = changed_image(info, suffix, result.pixels)
        moved = tuple(move_region(region, result.move_mask) for region in regions)
        writer.add_image(image, moved, to_png(result.pixels))
        for row in planned.rows:
            sample = move_sample(dataset[row], result.move_mask)
            copy = changed_sample(
                sample,
                image,
                suffix,
                change=condition.change,
                strength=condition.severity,
            )
            writer.add_sample(copy)


def _change(
    pixels: np.typing.NDArray[np.uint8],
    regions: tuple[Region, ...],
    condition: Condition,
    rng: np.random.Generator,
) -> ChangedImage | None:
    if condition.change == CROP:
        return crop(pixels, regions, condition.severity, rng)
    return corrupt(pixels, condition.change, condition.severity, rng)


IMAGE_CHANGES = Probe(
    name="image-changes",
    title="Worse images: noise, blur, weather, compression, crops",
    risks=("atlas-evasion-attack",),
    measured=(
        "How much of the score is lost on images with one of 15 common corruptions or "
        "a crop, at five severities."
    ),
    blind_spots=(
        "It changes whole images in ways that occur by themselves: what someone changes "
        "on purpose is found by the probe attacks. The weather is drawn, not "
        "photographed. Several changes at once are not tried."
    ),
    thresholds=LOSS_THRESHOLDS,
    run=run_image_changes,
)
