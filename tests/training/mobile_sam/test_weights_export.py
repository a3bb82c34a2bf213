"""MobileSAM's checkpoint as ONNX files; weights are random, shapes are the real ones."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

torch = pytest.importorskip("torch", reason="the export needs torch")

from maskwise.errors import DownloadError
from maskwise.models.onnx_graph import read_nodes
from maskwise.models.photo.sam import OUTPUTS, find_all_masks
from maskwise.training.mobile_sam.mask_decoder import OnnxDecoder
from maskwise.training.mobile_sam.tiny_vit import TinyViT
from maskwise.training.mobile_sam.weights_export import export_file

DECODER = "mobile_sam_decoder.onnx"
ENCODER = "mobile_sam_encoder.onnx"


def test_the_decoder_has_the_inputs_of_segment_anything_and_all_masks(
    tmp_path: Path,
) -> None:
    torch.save(OnnxDecoder().state_dict(), tmp_path / "mobile_sam.pt")
    path = tmp_path / DECODER
    export_file(DECODER, tmp_path / "mobile_sam.pt", path)
    session = onnxruntime.InferenceSession(
        str(path), providers=["CPUExecutionProvider"]
    )
    assert [one.name for one in session.get_inputs()] == [
        "image_embeddings",
        "point_coords",
        "point_labels",
        "mask_input",
        "has_mask_input",
        "orig_im_size",
    ]
    assert find_all_masks(read_nodes(path.read_bytes())) != OUTPUTS
    inputs = {
        "image_embeddings": np.zeros((1, 256, 64, 64), np.float32),
        "point_coords": np.zeros((1, 2, 2), np.float32),
        "point_labels": np.array([[1, -1]], np.float32),
        "mask_input": np.zeros((1, 1, 256, 256), np.float32),
        "has_mask_input": np.zeros(1, np.float32),
        "orig_im_size": np.array([30, 40], np.float32),
    }
    masks, scores, logits = session.run(None, inputs)
    assert (masks.shape, scores.shape) == ((1, 1, 30, 40), (1, 1))
    assert logits.shape == (1, 1, 256, 256)


@pytest.mark.full
def test_the_encoder_is_exported(tmp_path: Path) -> None:
    weights = {
        f"image_encoder.{name}": tensor
        for name, tensor in TinyViT().state_dict().items()
    }
    weights["image_encoder.head.weight"] = torch.zeros(1)  # not used
    torch.save(weights, tmp_path / "mobile_sam.pt")
    export_file(ENCODER, tmp_path / "mobile_sam.pt", tmp_path / ENCODER)
    assert (tmp_path / ENCODER).stat().st_size > 20_000_000


@pytest.mark.parametrize("content", [b"", b"no pickle"])
def test_a_file_that_is_no_checkpoint_is_refused(
    tmp_path: Path, content: bytes
) -> None:
    checkpoint = tmp_path / "mobile_sam.pt"
    checkpoint.write_bytes(content)
    with pytest.raises(DownloadError, match="is no checkpoint of torch"):
        export_file(DECODER, checkpoint, tmp_path / DECODER)
    assert not (tmp_path / DECODER).exists()


def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "mobile_sam.pt"
    torch.save({"prompt_encoder.x": torch.zeros(1)}, checkpoint)
    with pytest.raises(DownloadError, match="this is no checkpoint of MobileSAM"):
        export_file(DECODER, checkpoint, tmp_path / DECODER)
