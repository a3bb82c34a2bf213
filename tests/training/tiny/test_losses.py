"""The losses of the bundled model, on values that can be worked out by hand."""

import math

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from maskwise.training.tiny.losses import (
    BOX_WEIGHT,
    ENTROPY_WEIGHT,
    PART_MASK_WEIGHT,
    box_loss,
    heatmap_loss,
    mask_loss,
    part_loss,
    roi_box_loss,
)

SURE = 20.0
"""A logit whose probability is 1 in float32."""


def test_a_perfect_heatmap_costs_nothing_and_a_wrong_cell_does() -> None:
    target = torch.tensor([[[[1.0, 0.0], [0.0, 0.0]]]])
    right = torch.tensor([[[[SURE, -SURE], [-SURE, -SURE]]]])
    assert heatmap_loss(right, target).item() == pytest.approx(0, abs=1e-5)
    wrong = torch.tensor([[[[SURE, SURE], [-SURE, -SURE]]]])
    assert heatmap_loss(wrong, target).item() > 5


def test_cells_near_a_center_cost_less() -> None:
    logits = torch.zeros(1, 1, 1, 2)
    near = heatmap_loss(logits, torch.tensor([[[[1.0, 0.5]]]]))
    far = heatmap_loss(logits, torch.tensor([[[[1.0, 0.0]]]]))
    # At a probability of 1/2 a center costs 1/4 log 2, as does a cell far from it; near it, (1 - 1/2)^4 of that.
    entropy = 0.25 * math.log(2)
    assert far.item() == pytest.approx(2 * entropy)
    assert near.item() == pytest.approx(entropy * (1 + 0.5**4))


def test_the_heatmap_of_an_image_without_objects_is_finite() -> None:
    loss = heatmap_loss(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2))
    assert loss.item() == pytest.approx(4 * 0.25 * math.log(2))


def boxes(*distances: float) -> torch.Tensor:
    return torch.tensor(distances).view(1, 4, 1, 1)


def test_the_box_loss_is_one_minus_the_iou() -> None:
    weight = torch.ones(1, 1, 1, 1)
    target = boxes(1, 1, 1, 1)
    assert box_loss(target, target, weight).item() == pytest.approx(0, abs=1e-5)
    # A box of 2 x 2 inside one of 4 x 2.
    wide = boxes(2, 1, 2, 1)
    assert box_loss(wide, target, weight).item() == pytest.approx(BOX_WEIGHT * 0.5)
    assert box_loss(wide, target, 0 * weight).item() == 0


def test_the_loss_of_corrected_boxes_is_one_minus_the_iou() -> None:
    box = torch.tensor([[0.2, 0.2, 0.6, 0.4]])
    assert roi_box_loss(box, box).item() == pytest.approx(0, abs=1e-4)
    left_half = torch.tensor([[0.2, 0.2, 0.4, 0.4]])
    assert roi_box_loss(left_half, box).item() == pytest.approx(0.5, abs=1e-4)
    apart = torch.tensor([[0.7, 0.7, 0.8, 0.8]])
    assert roi_box_loss(apart, box).item() == pytest.approx(1)


def test_weights_make_pixels_of_a_mask_count_more() -> None:
    target = torch.tensor([[[1.0, 0.0]]])
    right = torch.tensor([[[SURE, -SURE]]])
    even = torch.ones_like(target)
    assert mask_loss(right, target, even).item() == pytest.approx(0, abs=1e-5)
    missed = torch.tensor([[[-SURE, -SURE]]])
    stressed = torch.tensor([[[3.0, 1.0]]])
    # The missed pixel costs SURE in the mean over two pixels, three times that with its weight.
    plain = mask_loss(missed, target, even).item()
    more = mask_loss(missed, target, stressed).item()
    assert more - plain == pytest.approx(ENTROPY_WEIGHT * SURE, abs=0.5)


def test_an_empty_mask_that_is_predicted_empty_costs_nothing() -> None:
    empty = torch.zeros(1, 2, 2)
    loss = mask_loss(torch.full((1, 2, 2), -SURE), empty, torch.ones_like(empty))
    assert loss.item() == pytest.approx(0, abs=1e-5)


def test_parts_count_inside_the_amodal_mask_only() -> None:
    logits = torch.zeros(1, 2, 1, 2)
    logits[0, 1] = SURE
    amodal = torch.tensor([[[1, 0]]], dtype=torch.uint8)
    numbers = torch.tensor([[[2, 0]]], dtype=torch.uint8)
    assert part_loss(logits, numbers, amodal).item() == pytest.approx(0, abs=1e-5)
    other = torch.tensor([[[1, 0]]], dtype=torch.uint8)
    assert part_loss(logits, other, amodal).item() == pytest.approx(
        PART_MASK_WEIGHT * SURE
    )
    assert part_loss(logits, numbers, 0 * amodal).item() == 0
