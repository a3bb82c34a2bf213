import numpy as np

from maskwise.models.crowding import LEAST_SEEN, harden
from maskwise.models.lessons import Lesson, lesson_to_objects, scene_to_lesson
from maskwise.world import scene


def lessons() -> list[Lesson]:
    return [scene_to_lesson(scene(2, index, "train", questions=0)) for index in range(6)]


def test_objects_set_in_front_hide_others_but_never_nearly_all() -> None:
    random = np.random.default_rng(0)
    ours, added = lessons(), 0
    for number in range(12):
        lesson, other = ours[number % 6], ours[(number + 1) % 6]
        hardened = harden(lesson, other, random)
        before, after = lesson_to_objects(lesson), lesson_to_objects(hardened)
        count = len(lesson.kinds)
        added += len(hardened.kinds) - count
        assert (after.amodal[:count] == before.amodal).all(), "what is behind keeps its whole shape"
        assert (after.visible <= after.amodal).all()
        assert after.visible.sum(0).max() <= 1
        enough = after.visible.sum((1, 2)) >= LEAST_SEEN * after.amodal.sum((1, 2))
        assert enough[:count][before.visible.sum((1, 2)) >= LEAST_SEEN * before.amodal.sum((1, 2))].all()
    assert added > 0


def test_exchanged_channels_leave_the_colour_untold() -> None:
    random = np.random.default_rng(1)
    ours = lessons()
    hardened = [harden(ours[0], ours[1], random) for _ in range(30)]
    untold = [lesson for lesson in hardened if (lesson.kinds[:, 1] == -1).any()]
    assert 0 < len(untold) < 30
    assert all((lesson.kinds[:, 1] == -1).all() for lesson in untold)
    assert all((lesson.kinds[:, 0] >= 0).all() for lesson in hardened)


def test_the_lesson_given_is_left_as_it_was() -> None:
    ours = lessons()
    image, owner = ours[0].image.copy(), ours[0].owner.copy()
    for seed in range(5):
        harden(ours[0], ours[1], np.random.default_rng(seed))
    assert (ours[0].image == image).all()
    assert (ours[0].owner == owner).all()
