"""Steps of items of about the same length: every position once, less padding, the same order each time."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("peft", reason="the extra `vlm` is not installed")

from maskwise.models.vlm.batch import VlmBatch, collate
from maskwise.training.vlm.augment import Augmentation
from maskwise.training.vlm.config import Optimization, SourceConfig
from maskwise.training.vlm.length_groups import WINDOW_STEPS, LengthGroups
from maskwise.training.vlm.sources import TrainingItems, open_source
from maskwise.world import bundled
from tests.models.vlm.small import small_model
from tests.training.vlm.small_runs import small_run

BATCH_SIZE = 4
POSITIONS = BATCH_SIZE * (WINDOW_STEPS + 10)


def grouped(seed: int = 0) -> LengthGroups:
    lengths = np.random.default_rng(1).integers(1, 400, POSITIONS)
    return LengthGroups(
        lambda position: float(lengths[position]),
        positions=POSITIONS,
        batch_size=BATCH_SIZE,
        seed=seed,
    )


def test_every_position_is_drawn_once_also_in_the_last_window() -> None:
    order = grouped()
    drawn = [order[place] for place in range(POSITIONS)]
    assert sorted(drawn) == list(range(POSITIONS))
    border = BATCH_SIZE * WINDOW_STEPS
    assert max(drawn[:border]) < border, "a window keeps its positions"


def test_the_order_depends_on_the_seed_alone() -> None:
    forwards = [grouped()[place] for place in range(POSITIONS)]
    order = grouped()
    backwards = [order[place] for place in reversed(range(POSITIONS))]
    assert forwards == backwards[::-1]
    assert forwards != [grouped(seed=1)[place] for place in range(POSITIONS)]


def test_steps_of_texts_have_less_padding(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lines = []
    for number in range(200):
        words = "mug " * int(random.integers(1, 60))
        lines.append(json.dumps({"question": f"{number} {words}", "answer": "A cup."}))
    path = tmp_path / "turns.jsonl"
    path.write_text("\n".join(lines))
    items = TrainingItems(
        {"text": open_source(SourceConfig(text=str(path)))},
        {"text": 1.0},
        Augmentation(),
        questions_per_image=1,
        seed=3,
    )
    _, processor = small_model()
    order = LengthGroups(items.length_of, positions=200, batch_size=BATCH_SIZE, seed=3)

    def padding(positions: list[int]) -> float:
        """The share of padding in the batches of these positions."""
        batches: list[VlmBatch] = []
        for first in range(0, 200, BATCH_SIZE):
            chosen = positions[first : first + BATCH_SIZE]
            batches.append(collate([items[one] for one in chosen], processor))
        total = sum(batch.attention_mask.numel() for batch in batches)
        return 1 - sum(int(batch.attention_mask.sum()) for batch in batches) / total

    plain = padding(list(range(200)))
    assert plain > 0.25
    assert padding([order[place] for place in range(200)]) < plain / 4


def test_sizes_of_a_dataset_are_known_without_opening_images() -> None:
    source = open_source(SourceConfig(dataset=str(bundled())))
    size = source.size_of(7)
    item = source[7]
    assert item.image is not None
    assert size.pixels == item.image.width * item.image.height
    assert size.questions == len(item.samples)
    characters = [
        len(sample.question) + len(str(sample.answer)) for sample in item.samples
    ]
    assert size.characters == pytest.approx(np.mean(characters))


@pytest.mark.vlm
def test_a_run_with_groups_draws_other_steps(tmp_path: Path) -> None:
    from maskwise.training.vlm.pipeline import train  # noqa: PLC0415

    optimization = Optimization(
        learning_rate=1e-3, batch_size=2, warmup_steps=1, group_by_length=True
    )
    config = small_run(optimization=optimization)
    assert all(path.exists() for path in train(config, tmp_path))
