"""The whole chain: a small model learns sixteen samples by heart, and answers them free-running."""

import dataclasses
from pathlib import Path

import numpy as np
import torch

from maskwise.harness.evaluate import evaluate
from maskwise.models.vlm.batch import ImageQuestions, collate
from maskwise.models.vlm.config import LossWeights
from maskwise.models.vlm.predictor import Vlm
from maskwise.schema import ImageInfo
from maskwise.store import Dataset, DatasetWriter
from maskwise.world.dataset import encode_image
from tests.models.vlm.small import scene_questions, small_config, small_model

STEPS = 200


def sixteen_samples() -> list[ImageQuestions]:
    """Four scenes with four questions each, about whole objects."""
    found = []
    for index in range(4):
        one = scene_questions(index, count=12)
        chosen = [sample for sample in one.samples if sample.tags["level"] == "object"][
            :4
        ]
        assert len(chosen) == 4
        found.append(dataclasses.replace(one, samples=tuple(chosen)))
    return found


def write_dataset(images: list[ImageQuestions], path: Path) -> Dataset:
    with DatasetWriter(path, name="sixteen") as writer:
        for one in images:
            info = ImageInfo(
                id=one.samples[0].image_id,
                width=one.image.width,
                height=one.image.height,
            )
            writer.add_image(
                info, one.regions, encode_image(np.asarray(one.image), "png")
            )
            for sample in one.samples:
                writer.add_sample(sample)
    return Dataset.open(path)


def learn_by_heart(model, batch) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 3e-3, total_steps=STEPS, pct_start=0.1
    )
    model.train()
    for _ in range(STEPS):
        loss = model(batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()


def test_sixteen_samples_are_learned_by_heart(tmp_path):
    images = sixteen_samples()
    config = small_config(losses=LossWeights(text=1.0, bce=1.0, dice=1.0))
    model, processor = small_model(config)
    learn_by_heart(model, collate(images, processor))
    dataset = write_dataset(images, tmp_path / "sixteen")
    predictor = Vlm(model, processor)
    for one in images:
        predictions = predictor.predict(
            one.image, [sample.question for sample in one.samples]
        )
        for sample, prediction in zip(one.samples, predictions):
            assert prediction.answer.text == sample.answer.text
            assert prediction.mask_type == (
                sample.mask_type if sample.targets else None
            )
    run = evaluate(predictor, dataset, protocols=["strict"])
    assert run["strict"]["giou"] >= 0.8
