"""Probe `attacks`: how much can someone change the answers by changes that nobody sees?"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from PIL import Image

from maskwise.arrays import Float64Array, UInt8Array
from maskwise.errors import MaskwiseError, ModelError
from maskwise.harness.plan import Plan, PlannedImage
from maskwise.harness.predictor import (
    DifferentiableModel,
    Model,
    call_model,
    find_predict_mode,
)
from maskwise.images import open_image
from maskwise.masks import Mask
from maskwise.probes.attack_search import gradient_attack, random_noise, square_attack
from maskwise.probes.change_findings import (
    effect_table,
    example_rows,
    list_measures,
    loss_sentence,
)
from maskwise.probes.changed_data import (
    LOSS_THRESHOLDS,
    ChangedRun,
    changed_image,
    changed_sample,
    draw_generator,
    to_png,
    worst_severity,
    write_changed,
)
from maskwise.probes.context import ProbeContext
from maskwise.probes.probe import Probe
from maskwise.protocols.intervals import MIN_IMAGES
from maskwise.runs.probe_results import ProbeFinding
from maskwise.schema import Prediction, Sample
from maskwise.store import DatasetWriter
from maskwise.store.atomic import atomic_write

NOISE = "random noise"
SQUARES = "black box"
GRADIENT = "gradient"

BUDGET = 8
"""Levels of 255 by which a value may change: the usual budget, hardly seen."""

QUERIES = 24
"""Questions about one image that the black-box attack may ask: ten images then cost five
evaluations of a dataset of fifty."""

STEPS = 5
"""Steps of the gradient attack."""

GRADIENT_COST = 3
"""What a gradient costs, in answers: forward and backward."""

COST = 5.0
"""Evaluations of the dataset that the black-box attack takes."""


def run_attacks(
    context: ProbeContext,
    cost: float = COST,
    budget: int = BUDGET,
    queries: int = QUERIES,
    steps: int = STEPS,
) -> ProbeFinding:
    """Search for changes of images that cost most, and compare with random ones of the same size.

    cost: evaluations that the black-box attack may use. budget: levels of 255. queries: for
    one image. steps: of the gradient attack, where the model has a gradient.
    """
    if context.quick:
        raise MaskwiseError("attacks take too many questions for --quick")
    if not 1 <= budget <= 255 or queries < 1 or steps < 1:
        raise MaskwiseError(
            f"attacks: budget={budget}, queries={queries}, steps={steps}: expected a "
            "budget from 1 to 255 and 1 or more queries and steps"
        )
    attacks = _Attacks(context, budget=budget, queries=queries, steps=steps)
    folder = write_changed(
        context,
        "attacks",
        lambda writer: attacks.write(writer, cost),
        settings=(cost, budget, queries, steps, context.loaded_model().name),
    )
    run = context.evaluate("attacks", data=folder)
    changed = ChangedRun(context, run, folder)
    kinds = [GRADIENT, SQUARES] if GRADIENT in changed.changes else [SQUARES]
    labels = np.array(changed.changes)
    attacked = np.isin(labels, kinds)
    groups = changed.by_change([*kinds, NOISE])
    if len(kinds) > 1:
        groups.insert(0, ("all attacks", attacked))
    effects = changed.compare(groups)
    images = len(set(changed.images[labels == SQUARES].tolist()))
    asked = len(run.ids) // len(set(changed.changes))
    context.asked_directly += asked * queries
    if GRADIENT in kinds:
        context.asked_directly += asked * steps * GRADIENT_COST
    how = f"{queries} queries each"
    if GRADIENT in kinds:
        how += f", and {steps} steps along the gradient"
    return ProbeFinding(
        finding=loss_sentence(f"An attack of at most {budget} of 255 levels", effects),
        severity=worst_severity(effects),
        done=f"{images} images were attacked with {how}.",
        measures=list_measures(effects),
        tables=[
            effect_table(
                "By attack",
                effects,
                "Random noise of the same size is what no search would reach.",
            )
        ],
        examples=example_rows(changed, "attacks", attacked),
        notes=[] if GRADIENT in kinds else ["The model gives no gradient."],
    )


class _Attacks:
    """Attacks images of a dataset and keeps each attacked image in a file of its own."""

    def __init__(
        self, context: ProbeContext, *, budget: int, queries: int, steps: int
    ) -> None:
        self.context = context
        self.budget = budget
        self.queries = queries
        self.steps = steps
        self.model: Model = context.loaded_model().predictor

    def write(self, writer: DatasetWriter, cost: float) -> None:
        """Attack as many images as the cost allows, at least as many as an interval needs."""
        dataset = self.context.dataset
        plan = Plan.from_dataset(dataset)
        wanted = max(MIN_IMAGES, round(cost * len(plan) / self.queries))
        order = draw_generator(self.context.seed, "attacks").permutation(len(plan))
        for item in order[:wanted].tolist():
            planned = plan[item]
            info = dataset.image(planned.image)
            regions = dataset.regions_of(planned.image)
            samples = [dataset[row] for row in planned.rows]
            for kind, pixels in self._attack(planned, samples).items():
                suffix = kind.replace(" ", "-")
                image = changed_image(info, suffix, pixels)
                writer.add_image(image, regions, to_png(pixels))
                for sample in samples:
                    copy = changed_sample(sample, image, suffix, change=kind)
                    writer.add_sample(copy)

    def _attack(
        self, planned: PlannedImage, samples: Sequence[Sample]
    ) -> dict[str, UInt8Array]:
        """The attacked images by kind of attack."""
        pixels = np.asarray(self.context.dataset.open_image(planned.image))
        id = samples[0].image_id

        def random(kind: str) -> np.random.Generator:
            return draw_generator(self.context.seed, kind, id)

        def score(tried: UInt8Array) -> float:
            return score_answers(self._ask(tried, samples), samples)

        made = {NOISE: random_noise(pixels, self.budget, random(NOISE))}
        made[SQUARES] = self._keep(
            f"{SQUARES}-{planned.image}-{self.queries}",
            lambda: square_attack(
                pixels,
                score,
                budget=self.budget,
                queries=self.queries,
                rng=random(SQUARES),
            ),
        )
        model = self.model
        if isinstance(model, DifferentiableModel):

            def gradient(tried: UInt8Array) -> Float64Array:
                return model.loss_gradient(Image.fromarray(tried), samples)

            made[GRADIENT] = self._keep(
                f"{GRADIENT}-{planned.image}-{self.steps}",
                lambda: gradient_attack(
                    pixels,
                    gradient,
                    budget=self.budget,
                    steps=self.steps,
                    rng=random(GRADIENT),
                ),
            )
        return made

    def _keep(self, name: str, attack: Callable[[], UInt8Array]) -> UInt8Array:
        """The attacked image of an earlier attempt, or a new one, which is kept."""
        folder = self.context.work_folder("attacked")
        file_name = f"{name.replace(' ', '-')}-{self.budget}-{self.context.seed}.png"
        file = folder / file_name
        if file.is_file():
            return np.asarray(open_image(file))
        pixels = attack()
        with atomic_write(file) as out:
            out.write(to_png(pixels))
        return pixels

    def _ask(self, pixels: UInt8Array, samples: Sequence[Sample]) -> list[Prediction]:
        mode = find_predict_mode(self.model)
        try:
            return call_model(self.model, mode, Image.fromarray(pixels), samples)
        except MaskwiseError:
            raise
        except Exception as error:
            raise ModelError(
                f"the model failed on an attacked image: {type(error).__name__}: {error}"
            ) from error


def score_answers(answers: Sequence[Prediction], samples: Sequence[Sample]) -> float:
    """What an attack lowers: the mean IoU of all regions of an answer with all targets.

    A question without targets scores 1 without a region. The confidence of regions breaks
    ties, because masks often do not move.
    """
    total = 0.0
    for answer, sample in zip(answers, samples):
        kind: Literal["visible", "amodal"]
        kind = "amodal" if sample.mask_type == "amodal" else "visible"
        drawn = _union([region.mask(kind) for region in answer.regions])
        wanted = _union([target.mask(kind) for target in sample.targets])
        if drawn is None or wanted is None:
            total += float(drawn is wanted)
        else:
            total += drawn.iou(wanted)
        scores = [region.score for region in answer.regions]
        total += 1e-3 * float(np.mean(scores)) if scores else 0.0
    return total / max(1, len(samples))


def _union(masks: Sequence[Mask | None]) -> Mask | None:
    """The union of the masks that have pixels; None if there is none."""
    union = None
    for mask in masks:
        if mask is not None and mask.area:
            union = mask if union is None else union | mask
    return union


ATTACKS = Probe(
    name="attacks",
    title="Attacks: small changes of the image, searched for",
    risks=("atlas-evasion-attack",),
    measured=(
        "How much of the score is lost by changes of at most 8 of 255 levels that a "
        "search finds, with the model's answers alone or with its gradient."
    ),
    blind_spots=(
        "A few queries find less than an attacker with time. The gradient goes through "
        "the mask branch only. Changes of the real scene, such as stickers, are not "
        "tried. No loss does not mean that there is no attack."
    ),
    thresholds=LOSS_THRESHOLDS,
    run=run_attacks,
)
