"""Batches of questions: the texts are augmented, the targets stay the same."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from maskwise.models.tiny.scene_example import ExampleQuestion, scene_to_example
from maskwise.models.tiny.tokenizer import tokenize
from maskwise.training.tiny.grounding_batch import (
    GroundingBatch,
    make_grounding_batch,
)
from maskwise.training.tiny.grounding_dataset import (
    annotated_objects,
    make_grounding_example,
)
from maskwise.training.tiny.sentence_templates import make_templates
from maskwise.world import make_scene

COUNT = 200


def batch_of(question: ExampleQuestion) -> GroundingBatch:
    example = scene_to_example(make_scene(1, 0, "train"))._replace(questions=[question])
    grounding = make_grounding_example(example, annotated_objects(example))
    return make_grounding_batch(
        [grounding], make_templates(50, 1), COUNT, np.random.default_rng(1)
    )


def contains(batch: GroundingBatch, text: str) -> list[bool]:
    """Whether each question has these words in a row."""
    phrase = tokenize([text])[0]
    return [
        any(
            (row[at : at + len(phrase)] == phrase).all()
            for at in range(len(row) - len(phrase) + 1)
        )
        for row in batch.tokens.numpy()
    ]


def test_a_noun_phrase_is_put_into_other_sentences() -> None:
    batch = batch_of(ExampleQuestion("Mark the red mug.", [(0, 0)], "the red mug"))
    own = contains(batch, "mark the red mug .")
    phrase = contains(batch, "the red mug")
    assert 0.3 * COUNT < sum(own) < 0.7 * COUNT
    assert sum(phrase) > 0.85 * COUNT, (
        "only random tokens may be inserted between its words"
    )
    assert (batch.targets[:, 0, 0] == 1).all()
    assert batch.targets.sum() == COUNT


def test_a_question_without_a_known_noun_phrase_keeps_its_words() -> None:
    batch = batch_of(ExampleQuestion("Mark the red mug.", []))
    assert sum(contains(batch, "mark")) > 0.95 * COUNT
    assert batch.targets.sum() == 0
