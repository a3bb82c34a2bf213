import numpy as np
import pytest
from PIL import Image

from maskwise.models.tiny import load
from maskwise.models.tiny.flip import mirror_boxes, mirror_predictions
from maskwise.models.tiny.networks import RoIPredictions
from maskwise.world import make_scene


def test_boxes_and_masks_are_mirrored_and_back() -> None:
    boxes = np.array([[0.1, 0.2, 0.4, 0.9]], np.float32)
    assert mirror_boxes(boxes) == pytest.approx(np.array([[0.6, 0.2, 0.9, 0.9]]))
    masks = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    logits = np.zeros((1, 3), np.float32)
    rois = RoIPredictions(masks, logits, logits, logits, boxes)
    mirrored = mirror_predictions(rois)
    assert mirrored.masks[0, 0].tolist() == [[1, 0], [3, 2]]
    for before, after in zip(rois, mirror_predictions(mirrored)):
        assert after == pytest.approx(before)


def test_a_mirrored_image_has_the_mirrored_objects() -> None:
    model = load(flip=True)
    pixels = make_scene(3, 0, "val").image
    own = model.detect(pixels)
    mirrored = model.detect(np.ascontiguousarray(pixels[:, ::-1]))
    assert len(own.visible) == len(mirrored.visible) > 0
    # The two differ by the rounding of sums alone; the order of equal scores may change.
    for mask in own.amodal:
        differing = (mirrored.amodal[:, :, ::-1] != mask).sum((1, 2))
        assert differing.min() <= 3


def test_flip_averaging_keeps_hash_and_domain() -> None:
    model = load(flip=True)
    assert model.weights_hash == load().weights_hash
    shown = make_scene(3, 1, "val")
    encoded = model.encode(Image.fromarray(shown.image))
    assert encoded.in_domain
    assert len(encoded.answer(["the mug", "everything"])) == 2
