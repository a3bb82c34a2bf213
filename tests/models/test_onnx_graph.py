"""Nodes and added outputs of a small ONNX file, written with the package onnx."""

from pathlib import Path

import numpy as np
import pytest

from maskwise.errors import MaskwiseError
from maskwise.models.onnx_graph import add_outputs, read_nodes
from maskwise.models.onnx_session import open_session
from maskwise.models.photo.sam import OUTPUTS, ImageEmbedding, MobileSam, find_all_masks
from tests.shared import shared

onnx = pytest.importorskip("onnx")
SHAPE = [1, 4]


def small_model() -> bytes:
    """y = -(x + x)."""
    nodes = [
        onnx.helper.make_node("Add", ["x", "x"], ["twice"]),
        onnx.helper.make_node("Neg", ["twice"], ["y"]),
    ]
    inputs, outputs = (
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, SHAPE)]
        for name in ("x", "y")
    )
    graph = onnx.helper.make_graph(nodes, "small", inputs, outputs)
    opset = [onnx.helper.make_opsetid("", 17)]
    content: bytes = onnx.helper.make_model(
        graph, opset_imports=opset, ir_version=8
    ).SerializeToString()
    return content


def test_nodes_are_read_by_their_outputs() -> None:
    nodes = read_nodes(small_model())
    assert nodes["y"] == ("Neg", ("twice",))
    assert nodes["twice"] == ("Add", ("x", "x"))


def test_a_tensor_inside_the_graph_becomes_an_output() -> None:
    session = open_session(add_outputs(small_model(), ["twice"]), name="small")
    y, twice = session.run(None, {"x": np.arange(4, dtype=np.float32)[None]})
    assert twice.tolist() == [[0, 2, 4, 6]]
    assert y.tolist() == [[0, -2, -4, -6]]
    assert add_outputs(small_model(), []) == small_model()


@pytest.mark.parametrize("content", [b"\x80", b"\x0f\x0f", b"no model"])
def test_another_file_is_refused(content: bytes) -> None:
    with pytest.raises(MaskwiseError, match="no ONNX file"):
        read_nodes(content)


def test_a_decoder_that_selects_no_mask_keeps_its_outputs() -> None:
    assert find_all_masks(read_nodes(small_model())) == OUTPUTS


def test_the_decoder_gives_three_masks_of_a_point() -> None:
    weights = Path(shared("weights"))
    sam = MobileSam(
        weights / "mobile_sam_encoder.onnx",
        weights / "mobile_sam_decoder.onnx",
        threads=1,
    )
    nodes = read_nodes((weights / "mobile_sam_decoder.onnx").read_bytes())
    assert find_all_masks(nodes) == sam.all_masks != OUTPUTS
    features = np.random.default_rng(0).normal(size=(1, 256, 64, 64)).astype(np.float32)
    embedding = ImageEmbedding(features, (640, 480))
    levels = sam.decode_levels(embedding, (320.0, 240.0))
    best = sam.decode(embedding, points=np.array([[320, 240]], np.float32))
    assert len(levels) == 3
    top = max(levels, key=lambda one: one.score)
    assert top.score == pytest.approx(best.score)
    assert np.allclose(top.logits, best.logits, atol=1e-4)
