"""Every preset of the published rules against the slow reference, on random small cases."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwise.masks import Mask
from maskwise.protocols import ScoringInput
from maskwise.protocols.published_rules import published_rules
from maskwise.protocols.scoring_rule import find_protocol
from maskwise.schema import PredictedRegion, Prediction, Region, Sample
from tests.protocols import dense_reference as dense
from tests.protocols.dense_reference import Question, Result
from tests.protocols.small_cases import scoring_input

SIZE = (3, 4)
OTHER_SIZE = (4, 4)

REFERENCES: dict[str, Callable[[list[Question]], Result]] = {
    "segzero": lambda questions: dense.segzero(questions, multi=False),
    "segzero_multi": lambda questions: dense.segzero(questions, multi=True),
    "visionreasoner": lambda questions: dense.visionreasoner(
        questions, no_object=False
    ),
    "visionreasoner_nonobj": lambda questions: dense.visionreasoner(
        questions, no_object=True
    ),
    "star": dense.star,
    "lens": dense.lens,
    "unipixel": dense.unipixel,
    "xsam": lambda questions: dense.xsam(questions, pipeline=True),
    "xsam_evaluator": lambda questions: dense.xsam(questions, pipeline=False),
    "union": dense.union_rule,
    "sam3i": dense.sam3i,
    "sam3i_multi_inst": dense.sam3i_multi,
    "gseval": dense.gseval,
    "sa2va": dense.sa2va,
    "sa2va_2025_09": lambda questions: dense.sa2va_first(questions, scrambled=False),
    "sa2va_st": lambda questions: dense.sa2va_first(questions, scrambled=True),
}


def draw_plane(generator: np.random.Generator, size: tuple[int, int]) -> dense.Plane:
    """Empty and full planes are as likely as others."""
    density = generator.choice([0.0, 0.3, 0.7, 1.0])
    return generator.random(size) < density


def draw_question(generator: np.random.Generator) -> Question:
    answer = generator.choice(["masks", "masks", "masks", "failed", "missing"])
    masks = []
    if answer == "masks":
        for _ in range(generator.integers(0, 4)):
            is_wrong = generator.random() < 0.1
            masks.append(draw_plane(generator, OTHER_SIZE if is_wrong else SIZE))
    targets = [draw_plane(generator, SIZE) for _ in range(generator.integers(0, 3))]
    has_ignore = generator.random() < 0.5
    return Question(
        image=f"p{generator.integers(0, 3)}",
        targets=targets,
        ignore=draw_plane(generator, SIZE) if has_ignore else None,
        answer=answer,
        masks=masks,
        size=SIZE,
    )


def to_input(questions: list[Question]) -> ScoringInput:
    samples = []
    predictions = []
    for number, question in enumerate(questions):
        name = str(number)
        targets = tuple(
            Region(id=f"{name}-{item}", name="thing", visible=Mask.from_dense(plane))
            for item, plane in enumerate(question.targets)
        )
        ignore = None if question.ignore is None else Mask.from_dense(question.ignore)
        samples.append(
            Sample(
                id=name,
                image_id=question.image,
                question="?",
                targets=targets,
                ignore=ignore,
            )
        )
        if question.answer == "failed":
            predictions.append(Prediction(sample=name, error="unparsable"))
        elif question.answer == "masks":
            regions = tuple(
                PredictedRegion(visible=Mask.from_dense(plane), score=0.9)
                for plane in question.masks
            )
            predictions.append(Prediction(sample=name, regions=regions))
    return scoring_input(samples, predictions, SIZE)


@pytest.mark.parametrize("name", REFERENCES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_preset_agrees_with_the_slow_reference(name: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    questions = [draw_question(generator) for _ in range(generator.integers(1, 7))]
    rule = published_rules()[name]
    scores = find_protocol(rule.protocol).score(to_input(questions), **rule.options)
    giou, ciou = REFERENCES[name](questions)
    expected = {"giou": giou, "ciou": ciou}
    for metric, value in expected.items():
        measured = scores.metrics[metric].value()
        if value is None:
            assert measured is None, metric
        else:
            assert measured == pytest.approx(value, abs=1e-9), metric
