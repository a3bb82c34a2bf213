"""The model in small: its losses, its batches, and what they do not depend on."""

import dataclasses

import msgspec
import pytest
import torch

from maskwise.models.vlm.batch import collate
from maskwise.models.vlm.config import LossWeights
from tests.models.vlm.small import scene_questions, small_config, small_model


def test_every_loss_reaches_every_trainable_parameter():
    model, processor = small_model()
    batch = collate([scene_questions(0), scene_questions(1)], processor, dense=True)
    output = model(batch)
    output.loss.backward()
    assert set(output.losses) == {
        "text",
        "bce",
        "dice",
        "region_words",
        "name_prompt",
        "name_alignment",
    }
    assert output.masks is not None
    assert len(output.masks.visible) == sum(
        len(one.samples[k].targets)
        for one in [scene_questions(0), scene_questions(1)]
        for k in range(3)
    )
    without = {
        name
        for name, one in model.named_parameters()
        if one.requires_grad and one.grad is None
    }
    assert all("token" in name or "output_hypernetworks" in name for name in without), (
        without
    )


def test_a_loss_that_is_off_is_not_computed():
    model, processor = small_model()
    model.config = msgspec.structs.replace(
        model.config, losses=LossWeights(bce=0, dice=0)
    )
    output = model(collate([scene_questions(0)], processor, dense=True))
    assert set(output.losses) == {"text"}
    assert output.masks is None


def test_the_mask_type_loss_compares_the_two_tokens_where_one_is_written():
    model, processor = small_model(small_config(mask_type_head=False))
    model.config = msgspec.structs.replace(
        model.config, losses=LossWeights(text=0, mask_type=1, bce=0, dice=0)
    )
    batch = collate([scene_questions(0)], processor)
    states = model.vision_language.encode_text(
        batch.text_inputs(),
        model.encode_images(batch, masks=False)[0],
        batch.image_index,
    )
    rows, places = model.seg_positions(batch).nonzero().T
    logits = model.vision_language.logits(states[rows, places - 1])[
        :, list(processor.seg_token_ids)
    ]
    chosen = batch.input_ids[rows, places][:, None] == torch.tensor(
        processor.seg_token_ids
    )
    expected = -logits.log_softmax(1)[chosen].mean()
    output = model(batch)
    assert set(output.losses) == {"mask_type"}
    assert output.loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_batch_without_segmentation_tokens_trains_all_decoders():
    model, processor = small_model()
    one = scene_questions(0)
    plain = tuple(
        msgspec.structs.replace(sample, targets=(), answer="No.")
        for sample in one.samples
    )
    output = model(collate([dataclasses.replace(one, samples=plain)], processor))
    output.loss.backward()
    assert output.masks is not None
    assert len(output.masks.visible) == 0
    assert all(
        one.grad is not None for one in model.decoders.amodal.transformer.parameters()
    )


def test_text_only_questions_share_a_batch_with_images():
    model, processor = small_model()
    one = scene_questions(0)
    text_only = dataclasses.replace(scene_questions(1), image=None)
    batch = collate([text_only, one], processor)
    assert batch.image_index == (-1, -1, -1, 0, 0, 0)
    alone = model(collate([one], processor))
    both = model(batch)
    assert torch.allclose(both.masks.visible, alone.masks.visible, atol=1e-4)
    assert model(collate([text_only], processor)).masks is None


def test_the_other_images_of_a_batch_do_not_change_a_mask():
    model, processor = small_model(small_config())
    one = scene_questions(0)
    two = scene_questions(1)
    together = model(collate([one, two], processor)).masks
    alone = [model(collate([image], processor)).masks for image in (one, two)]
    for kind in ("visible", "amodal"):
        expected = torch.cat([getattr(masks, kind) for masks in alone])
        assert torch.allclose(getattr(together, kind), expected, atol=1e-4)


def test_images_without_questions_train_by_dense_supervision_alone():
    model, processor = small_model()
    images = [
        dataclasses.replace(scene_questions(index), samples=()) for index in range(2)
    ]
    output = model(collate(images, processor, dense=True))
    output.loss.backward()
    assert "text" not in output.losses
    assert output.losses["name_prompt"].item() > 0
    assert output.losses["region_words"].item() > 0
    assert all(one.grad is not None for one in model.segmenter.encoder.parameters())
