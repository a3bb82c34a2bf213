import numpy as np

from maskwise.models.tiny.scene_example import SceneExample, scene_to_example
from maskwise.training.tiny.augment import MIN_VISIBLE, augment
from maskwise.world import make_scene


def examples() -> list[SceneExample]:
    return [
        scene_to_example(make_scene(2, index, "train", questions=0))
        for index in range(6)
    ]


def test_pasted_objects_occlude_others_but_leave_a_minimum_visible() -> None:
    random = np.random.default_rng(0)
    ours = examples()
    added = 0
    for number in range(12):
        example = ours[number % 6]
        other = ours[(number + 1) % 6]
        augmented = augment(example, other, random)
        before = example.objects()
        after = augmented.objects()
        count = len(example.labels)
        added += len(augmented.labels) - count
        assert (after.amodal[:count] == before.amodal).all(), (
            "amodal masks do not change"
        )
        assert (after.visible <= after.amodal).all()
        assert after.visible.sum(0).max() <= 1
        enough = after.visible.sum((1, 2)) >= MIN_VISIBLE * after.amodal.sum((1, 2))
        assert enough[:count][
            before.visible.sum((1, 2)) >= MIN_VISIBLE * before.amodal.sum((1, 2))
        ].all()
    assert added > 0


def test_permuted_channels_make_the_color_unknown() -> None:
    random = np.random.default_rng(1)
    ours = examples()
    augmented = [augment(ours[0], ours[1], random) for _ in range(30)]
    unknown = [example for example in augmented if (example.labels[:, 1] == -1).any()]
    assert 0 < len(unknown) < 30
    assert all((example.labels[:, 1] == -1).all() for example in unknown)
    assert all((example.labels[:, 0] >= 0).all() for example in augmented)


def test_the_given_example_is_not_changed() -> None:
    ours = examples()
    image = ours[0].image.copy()
    instances = ours[0].instances.copy()
    for seed in range(5):
        augment(ours[0], ours[1], np.random.default_rng(seed))
    assert (ours[0].image == image).all()
    assert (ours[0].instances == instances).all()
