import itertools

import numpy as np
from PIL import Image

from maskwise.models.photo.detector import (
    Detections,
    YoloxDetector,
    _grid,
    box_ious,
    suppress,
)
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.proposals import (
    MAX_PROMPTS,
    MAX_PROPOSALS,
    MAX_SMALL,
    _grid_points,
    add_points,
    find_hiding,
    propose,
    stability,
)
from maskwise.models.photo.sam import MaskLogits
from tests.models.photo.scene import (
    OBJECTS,
    FakeCompletion,
    FakeDetector,
    draw_scene,
    fake_networks,
    find_proposals,
)


def test_proposals_have_labels_boxes_and_areas() -> None:
    networks = fake_networks()
    found = find_proposals(networks)
    assert [one.label for one in found[:4]] == [one[0] for one in OBJECTS[:4]]
    assert found[0].box == OBJECTS[0][2]
    assert abs(found[0].area - 40 * 50 / (320 * 240)) < 0.003


def test_copies_are_dropped_and_prompts_are_bounded() -> None:
    networks = fake_networks()
    found = find_proposals(networks)
    # The four good detections, what is salient, and the points: two weak detections and the background.
    assert [one.source for one in found] == ["detector"] * 4 + ["saliency"] + [
        "grid"
    ] * (len(found) - 5)
    assert len(found) <= 8
    assert networks.sam.decoded <= MAX_PROMPTS + 1  # type: ignore[attr-defined]


def test_small_objects_are_proposed_where_all_is_looked_for() -> None:
    networks = fake_networks()

    class Lens(FakeDetector):
        def detect_small(self, image: Image.Image) -> Detections:
            boxes = np.array(
                [[300, 5, 310, 15], [120, 60, 200, 140], [0, 0, 160, 200]], np.float32
            )
            return Detections(
                boxes, np.array([0.5, 0.4, 0.3], np.float32), np.array([14, 16, 14])
            )

    lens = networks._replace(detector=Lens())  # type: ignore[arg-type]
    photo = EncodedPhoto(draw_scene(), lens, FakeCompletion(0.0))
    before = len(photo.proposals)
    photo.look_around()
    # Not the dog, which is known, nor a box that is not small.
    added = [one for one in photo.proposals[before:] if one.source == "detector"]
    assert [one.labels for one in added] == [{"bird": 0.5}]
    assert photo.proposals[before] is added[0]


def test_a_label_of_a_copy_is_kept() -> None:
    networks = fake_networks()

    class Twice(FakeDetector):
        def detect(self, image: Image.Image) -> Detections:
            boxes = np.array([[20, 100, 60, 150]] * 2, np.float32)
            return Detections(
                boxes, np.array([0.9, 0.5], np.float32), np.array([41, 39], np.int64)
            )

    twice = networks._replace(detector=Twice())  # type: ignore[arg-type]
    first, *others = find_proposals(twice)
    assert first.labels == {"cup": np.float32(0.9), "bottle": 0.5}
    assert not any(one.labels for one in others)


def test_a_mask_with_a_soft_edge_is_unstable() -> None:
    sharp = np.full((10, 10), -5, np.float32)
    sharp[2:8, 2:8] = 5
    assert stability(sharp) == 1
    assert stability(np.linspace(-2, 2, 100, dtype=np.float32).reshape(10, 10)) < 0.5


def test_nms_keeps_the_best_box_of_a_category() -> None:
    boxes = np.array(
        [[0, 0, 10, 10], [1, 0, 11, 10], [1, 0, 11, 10], [50, 50, 60, 60]], np.float32
    )
    found = Detections(
        boxes, np.array([0.5, 0.9, 0.4, 0.3], np.float32), np.array([0, 0, 1, 0])
    )
    assert suppress(found, 0.5).tolist() == [1, 2, 3]


def test_box_ious() -> None:
    ious = box_ious(
        np.array([0, 0, 10, 10], np.float32),
        np.array([[0, 0, 10, 10], [5, 0, 15, 10], [20, 20, 30, 30]]),
    )
    assert np.allclose(ious, [1, 1 / 3, 0])


class FakeSession:
    """One confident cell of the coarsest grid: row 3, column 5, category 16 (dog), a box of 64 x 32 pixels."""

    def get_inputs(self) -> list[object]:
        return [type("Input", (), {"name": "images"})()]

    def run(self, names: object, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        self.last = inputs["images"]
        output = np.zeros((1, 3549, 85), np.float32)
        cell = 52 * 52 + 26 * 26 + 3 * 13 + 5
        output[0, cell, :4] = [0.5, 0.5, np.log(2), np.log(1)]
        output[0, cell, 4] = 1.0
        output[0, cell, 5 + 16] = 0.9
        return [output]


def test_cells_are_decoded_to_boxes_of_the_image() -> None:
    detector = object.__new__(YoloxDetector)
    detector.session = FakeSession()
    detector.grid, detector.strides = _grid()
    found = detector._detect_in(
        Image.new("RGB", (832, 416)), (0, 0, 832, 416), (0, 0, 832, 416)
    )
    assert found.names() == ["dog"]
    # The center is at cell (5.5, 3.5) of 32 pixels; the image was halved.
    assert np.allclose(
        found.boxes[0], [2 * (176 - 32), 2 * (112 - 16), 2 * (176 + 32), 2 * (112 + 16)]
    )
    assert detector.session.last[0, 0, 300, 0] == 114


def test_a_point_gives_the_whole_and_its_parts() -> None:
    networks = fake_networks()
    image = draw_scene()
    embedding = networks.sam.encode(image)
    dog = (120, 60, 200, 140)
    nose = (150, 90, 170, 110)

    def levels(embedding: object, point: tuple[float, float]) -> list[MaskLogits]:
        return [networks.sam.decode(embedding, box=box) for box in (nose, dog)]  # type: ignore[arg-type]

    networks.sam.decode_levels = levels  # type: ignore[assignment,method-assign]
    found, prompts = propose(
        networks.sam,
        embedding,
        networks.detector.detect(image).take(np.zeros(0, np.int64)),
        networks.saliency.predict(image),
    )
    add_points(found, networks.sam, embedding, prompts)
    grid = [one.box for one in found if one.source == "grid"]
    assert len(grid) == 2
    assert np.allclose(sorted(grid), [dog, nose], atol=2)


def test_prompts_are_counted_even_if_their_masks_are_copies() -> None:
    networks = fake_networks()

    class Crowd(FakeDetector):
        def detect(self, image: Image.Image) -> Detections:
            boxes = np.array([[k, 0, k + 4, 10] for k in range(40)], np.float32)
            return Detections(
                boxes, np.full(40, 0.5, np.float32), np.zeros(40, np.int64)
            )

    crowd = networks._replace(detector=Crowd())  # type: ignore[arg-type]
    found = find_proposals(crowd)
    assert networks.sam.decoded <= MAX_PROMPTS + MAX_SMALL  # type: ignore[attr-defined]
    assert len(found) <= MAX_PROPOSALS


def test_the_first_points_lie_far_from_boxes_and_from_each_other() -> None:
    points = list(itertools.islice(_grid_points([], (800, 800)), 5))
    assert np.allclose(points[0], (350, 350), atol=101)
    assert {(x < 400, y < 400) for x, y in points[1:]} == {
        (a, b) for a in (True, False) for b in (True, False)
    }


def test_what_may_hide_an_object_is_prompted_inside_its_hull() -> None:
    networks = fake_networks()
    image = draw_scene()
    embedding = networks.sam.encode(image)
    width, height = networks.sam.logits_size(embedding)
    visible = np.zeros((height, width), np.bool_)
    # A table with the dog in front of its middle: the dog lies inside the hull.
    visible[50:120, 80:180] = True
    visible[50:112, 96:160] = False
    (dog,) = find_hiding(networks.sam, embedding, visible, [])
    assert np.allclose(dog.box, (120, 60, 200, 140), atol=2)


def test_nothing_is_prompted_where_other_masks_cover_the_surroundings() -> None:
    networks = fake_networks()
    embedding = networks.sam.encode(draw_scene())
    width, height = networks.sam.logits_size(embedding)
    visible = np.zeros((height, width), np.bool_)
    visible[20:40, 20:40] = True
    around = np.zeros_like(visible)
    around[10:50, 10:50] = True
    assert find_hiding(networks.sam, embedding, visible, [around & ~visible]) == []
    assert find_hiding(networks.sam, embedding, np.zeros_like(visible), []) == []
