import numpy as np
from PIL import Image

from maskwise.models.photo.completion import (
    CROP_CHANNELS,
    MIN_PROBABILITY,
    OnnxCompletionNetwork,
    complete_mask,
    judge_order,
    merge_neighbours,
)
from maskwise.models.photo.sam import (
    FEATURE_CHANNELS,
    GRID_SIZE,
    ImageEmbedding,
    to_encoder_input,
)
from maskwise.models.photo.window import CROP_SIZE, FEATURE_SIZE, Window
from tests.models.photo.scene import FakeCompletion


def disc(size: int = 200, radius: int = 40) -> np.ndarray:
    rows, columns = np.indices((size, size))
    found: np.ndarray = (rows - 100) ** 2 + (columns - 100) ** 2 < radius**2
    return found


def embedding(size: tuple[int, int]) -> ImageEmbedding:
    return ImageEmbedding(
        np.zeros((1, FEATURE_CHANNELS, GRID_SIZE, GRID_SIZE), np.float32), size
    )


def test_a_window_has_context_and_stays_inside_the_image() -> None:
    mask = np.zeros((100, 200), bool)
    mask[10:30, 50:90] = True
    assert Window.around(mask) == (30, 0, 110, 50)


def test_a_pasted_crop_returns_to_its_place() -> None:
    mask = disc()
    window = Window.around(mask)
    pasted = window.paste(window.crop_mask(mask).astype(np.float32), mask.shape) > 0.5
    assert (pasted & mask).sum() / (pasted | mask).sum() > 0.95


def test_features_are_sampled_where_the_window_lies() -> None:
    features = np.zeros((1, GRID_SIZE, GRID_SIZE), np.float32)
    features[0, :, 32:] = 1
    crop = Window(256, 0, 768, 512).crop_features(features, 1024)
    assert crop.shape == (1, FEATURE_SIZE, FEATURE_SIZE)
    assert crop[0, :, : FEATURE_SIZE // 2 - 1].max() == 0
    assert crop[0, :, FEATURE_SIZE // 2 + 1 :].min() == 1


def half(left: int) -> np.ndarray:
    """Everything from a column on."""
    found = np.zeros((200, 200), bool)
    found[:, left:] = True
    return found


def test_the_network_sees_every_neighbour_and_what_none_covers() -> None:
    network = FakeCompletion()
    mask = disc()
    image = Image.new("RGB", (200, 200), "white")
    complete_mask(network, image, embedding((200, 200)), mask, [half(120), half(199)])
    crops, reverse = network.seen
    assert crops.shape == (2, CROP_CHANNELS, CROP_SIZE, CROP_SIZE), (
        "the second neighbour does not touch the object"
    )
    assert (crops[:, :3] == 1).all()
    assert crops[0, 4].sum() >= crops[0, 3].sum() > 0
    assert not (crops[:, 5] * crops[:, 3]).any(), (
        "neighbours do not cover the visible mask"
    )
    assert (crops[0, 5] + crops[1, 5] + crops[0, 3] == 1).all(), (
        "every pixel belongs to one of them"
    )
    assert len(reverse) == 1, "whether the object hides the neighbour is asked as well"
    assert reverse[0, 5].any()
    assert not (reverse[0, 5] * reverse[0, 3]).any()


def test_a_neighbour_may_have_another_resolution() -> None:
    network = FakeCompletion()
    small = half(120)[::4, ::4]
    complete_mask(
        network, Image.new("RGB", (200, 200)), embedding((200, 200)), disc(), [small]
    )
    complete_mask(
        network,
        Image.new("RGB", (200, 200)),
        embedding((200, 200)),
        disc(),
        [half(120)],
    )
    first, _, second, _ = network.seen
    assert np.abs(first[:, 5] - second[:, 5]).mean() < 0.02


def test_hidden_pixels_lie_on_neighbours_in_front() -> None:
    near = np.stack([half(120)[::2, ::2], ~half(120)[::2, ::2]])
    hidden = merge_neighbours(
        np.full(near.shape, 0.8, np.float32),
        near,
        half(0)[::2, ::2],
        np.array([True, False]),
    )
    assert np.array_equal(hidden > MIN_PROBABILITY, near[0])


def test_neighbours_that_overlap_vote() -> None:
    near = np.stack([half(120), half(120), half(150)])[:, ::2, ::2]
    hidden = merge_neighbours(
        np.ones(near.shape, np.float32),
        near,
        half(0)[::2, ::2],
        np.array([True, True, False]),
    )
    assert np.allclose(hidden[near[0] & ~near[2]], 1)
    assert np.allclose(hidden[near[2]], 2 / 3)


def test_pixels_outside_the_hull_need_a_higher_probability() -> None:
    near = half(120)[None, ::2, ::2]
    hull = ~half(150)[::2, ::2]
    hidden = merge_neighbours(
        np.full(near.shape, 0.6, np.float32), near, hull, np.array([True])
    )
    assert np.array_equal(hidden > MIN_PROBABILITY, near[0] & hull)


def test_of_two_objects_the_likelier_one_is_in_front() -> None:
    front = np.array([0.4, 0.4, 0.9, 0.0], np.float32)
    reverse = np.array([0.05, 0.5, 0.95], np.float32)
    assert judge_order(front, reverse).tolist() == [True, False, False, False]


class OrderedCompletion:
    """Says that small objects are in front of large ones, and that every object fills its window."""

    def complete(
        self, crops: np.ndarray, features: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        in_front = (crops[:, 5].mean((1, 2)) < crops[:, 3].mean((1, 2))).astype(
            np.float32
        )
        return np.ones((len(crops), CROP_SIZE, CROP_SIZE), np.float32), in_front


def test_only_the_object_behind_is_completed() -> None:
    small = disc(radius=20)
    large = disc(radius=60) & ~disc(radius=20)
    image = Image.new("RGB", (200, 200))
    behind = complete_mask(
        OrderedCompletion(), image, embedding((200, 200)), large, [small]
    )
    assert (behind & small).sum() > 0.9 * small.sum()
    before = complete_mask(
        OrderedCompletion(), image, embedding((200, 200)), small, [large]
    )
    assert not (before & large & disc(radius=30)).any()


def test_an_object_behind_nothing_is_left_as_it_is() -> None:
    mask = disc()
    image = Image.new("RGB", (200, 200), "white")
    done = complete_mask(
        FakeCompletion(0.0), image, embedding((200, 200)), mask, [half(120)]
    )
    assert np.array_equal(done, mask)


def test_the_visible_mask_is_part_of_the_completed_one() -> None:
    mask = disc()
    done = complete_mask(
        FakeCompletion(), Image.new("RGB", (200, 200)), embedding((200, 200)), mask
    )
    assert (done >= mask).all()
    assert done.sum() > mask.sum()


def test_an_empty_mask_stays_empty() -> None:
    empty = np.zeros((50, 60), bool)
    done = complete_mask(
        FakeCompletion(), Image.new("RGB", (60, 50)), embedding((60, 50)), empty
    )
    assert not done.any()


def test_the_bundled_network_leaves_a_complete_disc_alone() -> None:
    mask = disc()
    pixels = np.where(mask[..., None], np.uint8(220), np.uint8(30)).repeat(3, -1)
    network = OnnxCompletionNetwork(threads=1)
    done = complete_mask(network, Image.fromarray(pixels), embedding((200, 200)), mask)
    assert (done & mask).sum() == mask.sum()
    assert done.sum() < 1.1 * mask.sum()


def test_sam_input_is_padded_at_the_bottom() -> None:
    tensor = to_encoder_input(Image.new("RGB", (200, 100), "white"))
    assert tensor.shape == (1, 3, 1024, 1024)
    assert tensor[0, :, :512].min() > 0
    assert not tensor[0, :, 512:].any()
