"""The bundled model's networks: alignment of boxes, folded normalization, stored precision."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
onnx = pytest.importorskip("onnx", reason="the extra `train` is not installed")

from torch import nn

from maskwise.models.tiny.spec import IMAGE_SIZE
from maskwise.training.half_precision import round_halves
from maskwise.training.onnx_export import write_onnx
from maskwise.training.tiny.detector import conv_block
from maskwise.training.tiny.networks import TwoStageDetector, fuse_batch_norm
from maskwise.training.tiny.roi_head import roi_align


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


def test_the_detector_has_an_output_per_cell_and_per_box() -> None:
    network = TwoStageDetector().eval()
    images = torch.zeros(2, 3, IMAGE_SIZE, IMAGE_SIZE)
    box = torch.tensor([[0.1, 0.1, 0.6, 0.6]])
    maps, rois = network(images, [box, box.repeat(3, 1)])
    assert maps.heatmap.shape == (2, 1, IMAGE_SIZE // 4, IMAGE_SIZE // 4)
    assert (maps.box > 0).all()
    assert len(rois.masks) == 4
    # The first probability of a center is near .02.
    assert maps.heatmap.sigmoid().mean().item() < 0.2


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
