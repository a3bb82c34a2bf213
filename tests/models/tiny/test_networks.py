"""The networks' files, and the detector's outputs as objects."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maskwise.errors import MaskwiseError
from maskwise.models.tiny.detections import DetectedObjects, occlusion_matrix
from maskwise.models.tiny.domain import Domain, domain_features
from maskwise.models.tiny.model import BUNDLED_WEIGHTS, Tiny, load
from maskwise.models.tiny.networks import NETWORKS, DetectorMaps, OnnxNetworks
from maskwise.models.tiny.postprocess import expand_boxes, softmax
from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    COARSE_CHANNELS,
    IMAGE_SIZE,
    part_count,
)


def test_all_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        MaskwiseError, match=r"detector.onnx, roi_head.onnx, mask_head.onnx, grounder"
    ):
        OnnxNetworks(tmp_path)


def test_the_hash_depends_on_every_network(tmp_path: Path) -> None:
    for name in NETWORKS:
        content = (BUNDLED_WEIGHTS / f"{name}.onnx").read_bytes()
        (tmp_path / f"{name}.onnx").write_bytes(content)
    copied = OnnxNetworks(tmp_path).hash
    assert copied == OnnxNetworks(BUNDLED_WEIGHTS).hash
    (tmp_path / "roi_head.onnx").write_bytes(
        (BUNDLED_WEIGHTS / "detector.onnx").read_bytes()
    )
    assert OnnxNetworks(tmp_path).hash != copied


def test_a_model_whose_networks_have_no_hash_records_none() -> None:
    class Networks(OnnxNetworks):
        def __init__(self) -> None:
            """Without files."""

    assert Tiny(Networks()).weights_hash is None
    assert load().weights_hash is not None


def test_an_image_without_objects_has_none() -> None:
    objects = load().detect(np.zeros((IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8))
    assert objects.attributes.shape[1] == sum(ATTRIBUTE_SIZES)
    assert len(objects.visible) == len(objects.amodal) == len(objects.part)


def test_a_black_image_gives_a_warning() -> None:
    warning = load().domain_warning(Image.new("RGB", (64, 48)))
    assert warning is not None
    assert "unlike the images" in warning


def test_the_distance_is_that_from_the_nearest_group() -> None:
    mean = np.array([[0, 0], [10, 0]], np.float32)
    whitening = np.stack([np.eye(2), 2 * np.eye(2)]).astype(np.float32)
    domain = Domain(mean, whitening, threshold=1.0)
    assert domain.distance(np.array([3, 0], np.float32)) == 3
    assert domain.distance(np.array([9, 0], np.float32)) == 2


def test_domain_features_are_means_and_deviations_of_channels() -> None:
    coarse = np.zeros((1, COARSE_CHANNELS, 2, 2), np.float32)
    coarse[0, 0] = [[1, 3], [1, 3]]
    features = domain_features(DetectorMaps(coarse, coarse, coarse, coarse))
    assert features.shape == (2 * COARSE_CHANNELS,)
    assert (features[0], features[COARSE_CHANNELS]) == (2, 1)


def test_occlusion_is_the_hidden_share_of_the_object_behind() -> None:
    amodal = np.zeros((2, 4, 4), bool)
    amodal[0, :, :2] = True
    amodal[1, :, 1:] = True
    visible = amodal.copy()
    visible[0] &= ~amodal[1]
    attributes = np.zeros((2, sum(ATTRIBUTE_SIZES)), np.float32)
    objects = DetectedObjects(visible, amodal, amodal.astype(np.uint8), attributes)
    assert occlusion_matrix(objects).tolist() == [[0, 0], [0.5, 0]]


def test_boxes_are_expanded_on_every_side() -> None:
    (box,) = expand_boxes(np.array([[10, 10, 20, 30]], np.float32))
    assert box == pytest.approx([9.4, 8.8, 20.6, 31.2])


def test_softmax_rows_add_up_to_1() -> None:
    probabilities = softmax(np.array([[0, 0], [1000, 0]], np.float32))
    assert probabilities.tolist() == [[0.5, 0.5], [1, 0]]
    assert softmax(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_every_category_has_parts() -> None:
    assert all(part_count(category) >= 2 for category in range(ATTRIBUTE_SIZES[0]))
