"""The bundled model's networks: alignment of boxes, folded normalization, stored precision."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
onnx = pytest.importorskip("onnx", reason="the extra `train` is not installed")

from torch import nn

from maskwise.models.tiny.spec import (
    BOX_MARGIN,
    IMAGE_SIZE,
    MASK_SIZE,
    MAX_PARTS,
    STRIDE,
)
from maskwise.training.half_precision import round_halves
from maskwise.training.onnx_export import write_onnx
from maskwise.training.tiny.detector import conv_block
from maskwise.training.tiny.mask_head import move_masks, others_visible
from maskwise.training.tiny.networks import (
    TwoStageDetector,
    fuse_batch_norm,
    restore_batch_norm,
)
from maskwise.training.tiny.roi_head import roi_align
from maskwise.training.tiny.targets import (
    ROIS_PER_IMAGE,
    RoISources,
    make_detector_batch,
)
from tests.training.tiny.squares import square_example

RANDOM = np.random.default_rng(0)


def test_a_box_of_the_whole_map_gives_the_map() -> None:
    maps = torch.arange(16.0).view(1, 1, 4, 4)
    whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    torch.testing.assert_close(roi_align(maps, [whole], 4), maps)


def test_boxes_outside_the_image_are_zero_there() -> None:
    maps = torch.ones(1, 1, 4, 4)
    left_half_outside = torch.tensor([[-1.0, 0.0, 1.0, 1.0]])
    rows = roi_align(maps, [left_half_outside], 4)[0, 0]
    assert (rows[:, 0] == 0).all()
    assert (rows[:, 3] == 1).all()


def test_each_image_has_its_own_boxes() -> None:
    maps = torch.stack([torch.zeros(1, 4, 4), torch.ones(1, 4, 4)])
    box = torch.tensor([[0.25, 0.25, 0.75, 0.75]])
    rois = roi_align(maps, [box, box.repeat(2, 1)], 2)
    assert rois.mean((1, 2, 3)).tolist() == [0, 1, 1]


def test_folded_normalization_gives_the_same_outputs() -> None:
    torch.manual_seed(0)
    block = nn.Sequential(conv_block(3, 4), conv_block(4, 4)).eval()
    for module in block.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    image = torch.randn(1, 3, 8, 8)
    before = block(image)
    fuse_batch_norm(block)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in block.modules())
    torch.testing.assert_close(block(image), before, atol=1e-5, rtol=1e-4)


def test_normalization_is_put_back_with_the_same_outputs() -> None:
    torch.manual_seed(0)
    folded = TwoStageDetector().eval()
    fuse_batch_norm(folded)
    batch = make_detector_batch([square_example((20, 20, 60, 60))] * 2, RANDOM)
    inputs = (batch.images, batch.rois, batch.roi_masks)
    network = restore_batch_norm(folded, [batch])
    names = {
        name
        for name, module in network.named_modules()
        if isinstance(module, nn.BatchNorm2d)
    }
    assert names == {
        name
        for name, module in TwoStageDetector().named_modules()
        if isinstance(module, nn.BatchNorm2d)
    }
    with torch.no_grad():
        for training in (False, True):
            # In training the batch has the means and variances that it was put back with.
            output = network.train(training)(*inputs)
            expected = folded(*inputs)
            torch.testing.assert_close(
                output.maps.heatmap, expected.maps.heatmap, atol=1e-2, rtol=1e-2
            )
            torch.testing.assert_close(
                output.masks, expected.masks, atol=1e-2, rtol=1e-2
            )


def test_the_detector_has_an_output_per_cell_and_per_box() -> None:
    network = TwoStageDetector().eval()
    batch = make_detector_batch([square_example((20, 20, 60, 60))] * 2, RANDOM)
    output = network(batch.images, batch.rois, batch.roi_masks)
    assert output.maps.heatmap.shape == (2, 1, IMAGE_SIZE // 4, IMAGE_SIZE // 4)
    assert (output.maps.box > 0).all()
    # The first probability of a center is near .02.
    assert output.maps.heatmap.sigmoid().mean().item() < 0.2
    rois = 2 * ROIS_PER_IMAGE
    assert output.rois.masks.shape[0] == len(output.boxes) == rois
    assert output.masks.shape == (rois, 2 + MAX_PARTS, MASK_SIZE, MASK_SIZE)


def test_a_roi_is_the_predicted_box_with_its_margin_where_the_batch_says_so() -> None:
    network = TwoStageDetector().eval()
    cells = IMAGE_SIZE // STRIDE
    # Every cell predicts a box of 40 x 40 pixels around it.
    torch.nn.init.zeros_(network.detector.head.box.weight)
    torch.nn.init.constant_(network.detector.head.box.bias, math.log(20))
    sources = RoISources(
        boxes=torch.tensor([[[0.1, 0.1, 0.2, 0.2]] * 2]),
        cells=torch.tensor([[[cells // 2, cells // 4]] * 2]),
        detected=torch.tensor([[True, False]]),
    )
    image = torch.zeros(1, 3, IMAGE_SIZE, IMAGE_SIZE)
    masks = torch.zeros(2, 3, IMAGE_SIZE, IMAGE_SIZE, dtype=torch.uint8)
    detected, given = network(image, sources, masks).boxes
    # The center of the cell is at (42, 82).
    margin = BOX_MARGIN * 40
    sides = [22 - margin, 62 - margin, 62 + margin, 102 + margin]
    torch.testing.assert_close(detected * IMAGE_SIZE, torch.tensor(sides))
    assert given.tolist() == pytest.approx([0.1, 0.1, 0.2, 0.2])


def test_masks_move_with_their_boxes() -> None:
    masks = torch.zeros(1, 1, 4, 4)
    masks[..., 2:] = 1
    old = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    torch.testing.assert_close(move_masks(masks, old, old), masks)
    right_half = torch.tensor([[0.5, 0.0, 1.0, 1.0]])
    # At the border, samples are mixed with the zeros outside.
    assert move_masks(masks, old, right_half)[0, 0, 1:3, 1:3].min() == 1
    outside = torch.tensor([[1.5, 0.0, 2.0, 1.0]])
    assert move_masks(masks, old, outside).max() == 0


def test_an_object_sees_the_masks_of_the_others_and_not_its_own() -> None:
    visible = torch.full((2, 1, 4, 4), 0.9)
    boxes = torch.tensor([[0.0, 0.0, 0.5, 1.0], [0.5, 0.0, 1.0, 1.0]])
    whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]] * 2)
    first, second = others_visible(visible, boxes, whole)[:, 0]
    # The other object of the first one is on its right.
    assert first[:, 0].max() == 0
    assert second[:, 3].max() == 0
    for seen in (first[1:3, 2], second[1:3, 1]):
        assert seen.min().item() == pytest.approx(0.9)
    apart = others_visible(visible, boxes, boxes)
    assert apart.shape == (2, 1, 4, 4)
    assert apart[:, :, :, 1:3].max() == 0
    assert others_visible(visible[:1], boxes[:1], boxes[:1]).max() == 0


def test_large_weights_are_stored_in_half_precision_under_their_names(tmp_path) -> None:
    layer = nn.Linear(64, 64)
    path = write_onnx(
        layer,
        tmp_path / "layer.onnx",
        inputs={"x": torch.zeros(1, 64)},
        outputs=("y",),
        dynamic_axes={},
    )
    stored = {}
    for tensor in onnx.load(path).graph.initializer:
        stored[tensor.name] = onnx.numpy_helper.to_array(tensor)
    assert stored["weight"].dtype == np.float16
    assert stored["bias"].dtype == np.float32, "small tensors stay as they are"
    np.testing.assert_allclose(
        stored["weight"].astype(np.float32), layer.weight.detach().numpy(), atol=1e-3
    )


def test_stored_weights_have_the_precision_of_bfloat16() -> None:
    weights = np.random.default_rng(0).normal(size=10_000).astype(np.float16)
    rounded = torch.from_numpy(weights.astype(np.float32)).bfloat16().float().numpy()
    np.testing.assert_array_equal(round_halves(weights).astype(np.float32), rounded)
