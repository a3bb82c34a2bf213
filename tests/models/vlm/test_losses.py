"""Losses on hand-worked values."""

import math

import pytest
import torch

from maskwise.models.vlm.losses import (
    alignment_loss,
    bce_loss,
    dice_loss,
    mask_type_loss,
    occlusion_loss,
    prompt_alignment_loss,
    region_words_loss,
    text_loss,
)

MASKS = torch.tensor([[[1.0, 0.0], [0.0, 0.0]]])


def test_a_perfect_mask_costs_nothing():
    logits = (MASKS * 2 - 1) * 100
    assert bce_loss(logits, MASKS).item() == pytest.approx(0, abs=1e-6)
    assert dice_loss(logits, MASKS).item() == pytest.approx(0, abs=1e-6)


def test_undecided_logits():
    logits = torch.zeros(1, 2, 2)
    assert bce_loss(logits, MASKS).item() == pytest.approx(math.log(2))
    assert dice_loss(logits, MASKS).item() == pytest.approx(
        1 - (2 * 0.5) / (2 + 1), abs=1e-3
    )


def test_foreground_weighs_as_much_as_background_up_to_a_limit():
    logits = torch.zeros(1, 2, 2)
    assert bce_loss(logits, MASKS, 8.0).item() == pytest.approx(
        math.log(2) * (3 + 3) / 4
    )
    assert bce_loss(logits, MASKS, 2.0).item() == pytest.approx(
        math.log(2) * (3 + 2) / 4
    )


def test_the_mask_type_is_a_choice_between_two_tokens():
    logits = torch.tensor([[0.0, 0.0], [100.0, 0.0]])
    assert mask_type_loss(logits, torch.tensor([1, 0])).item() == pytest.approx(
        math.log(2) / 2
    )
    assert mask_type_loss(logits, torch.tensor([1, 1])).item() == pytest.approx(
        (math.log(2) + 100) / 2
    )


def test_words_of_regions():
    logits = torch.zeros(3, 4)
    words = torch.tensor([[0, 1], [2, 3], [2, 0]])
    weights = torch.tensor([1.0, 0.5, 0.5])
    assert region_words_loss(logits, words, weights).item() == pytest.approx(
        math.log(4)
    )
    logits[0, 1] = 100
    assert region_words_loss(logits, words, weights).item() == pytest.approx(
        math.log(4) / 2
    )


def test_alignment_ignores_the_length():
    assert alignment_loss(
        torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 0.0]])
    ).item() == pytest.approx(0)
    assert alignment_loss(
        torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 2.0]])
    ).item() == pytest.approx(1)


def test_prompts_are_compared_relative_to_their_variance():
    names = torch.tensor([[[1.0, -1.0]], [[1.0, -1.0]]])
    assert prompt_alignment_loss(names, names).item() == 0
    assert prompt_alignment_loss(10 * names, 5 * names).item() == pytest.approx(
        prompt_alignment_loss(2 * names, names).item()
    )


def test_no_items_give_zero_with_a_gradient():
    empty = torch.zeros((0, 4), requires_grad=True)
    planes = empty.view(0, 2, 2)
    found = [
        text_loss(empty, torch.zeros(0, dtype=torch.long)),
        bce_loss(planes, torch.zeros(0, 2, 2)),
        dice_loss(planes, torch.zeros(0, 2, 2)),
        occlusion_loss(empty[:, 0], torch.zeros(0)),
        region_words_loss(empty, torch.zeros((0, 2), dtype=torch.long), torch.zeros(0)),
        alignment_loss(empty, torch.zeros(0, 4)),
        prompt_alignment_loss(empty.view(0, 1, 4), torch.zeros(0, 1, 4)),
    ]
    for loss in found:
        assert loss.item() == 0
        assert loss.requires_grad
