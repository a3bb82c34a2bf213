"""The bundled model as it ships: what it says, and that it keeps to what it promises."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maskwise.errors import MaskwiseError
from maskwise.models.descriptions import Objects
from maskwise.models.tiny import (
    CATEGORY_NAMES,
    COLOUR_NAMES,
    KINDS,
    SIDE,
    OnnxNetworks,
    Tiny,
    bundled_model,
    list_items,
)
from maskwise.schema import Prediction
from maskwise.world import Scene, scene


@pytest.fixture(scope="module")
def model() -> Tiny:
    return bundled_model()


@pytest.fixture(scope="module")
def shown() -> Scene:
    return scene(21, 4, "val")


def ask(model: Tiny, shown: Scene, *questions: str) -> list[Prediction]:
    return model.predict(Image.fromarray(shown.image), questions)


def test_it_answers_most_questions_of_unseen_scenes(model: Tiny) -> None:
    right = total = 0
    for index in range(6):
        shown = scene(22, index, "val")
        for question, reply in zip(shown.questions, ask(model, shown, *[q.text for q in shown.questions])):
            wanted = {shown.items[place].name for place in question.targets}
            right += wanted == {region.name for region in reply.regions}
            total += 1
    assert right / total > 0.7


def test_a_target_has_both_masks_and_a_phrase_of_the_answer(model: Tiny, shown: Scene) -> None:
    names = [item.name for item in shown.items if item.part is None and item.seen > 200]
    replies = ask(model, shown, *[f"the {name}" for name in names])
    assert any(reply.regions for reply in replies)
    for reply in replies:
        for number, region in enumerate(reply.regions):
            assert region.visible is not None
            assert region.amodal is not None
            assert region.visible.size == region.amodal.size == (160, 160)
            assert (region.visible - region.amodal).area == 0, "what is seen is part of the whole"
            assert reply.answer is not None
            phrase = next(phrase for phrase in reply.answer.phrases if number in phrase.regions)
            assert reply.answer.text[phrase.start : phrase.stop] == f"the {region.name}"


def test_the_words_choose_the_mask_type(model: Tiny, shown: Scene) -> None:
    seen, whole = ask(
        model, shown, "Segment the box.", "Segment the whole box, including the part that is hidden."
    )
    assert (seen.mask_type, whole.mask_type) == ("visible", "amodal")


def test_what_is_not_there_is_not_found(model: Tiny, shown: Scene) -> None:
    (reply,) = ask(model, shown, "Where is the elephant?")
    assert reply.no_target
    assert not reply.regions


def test_asking_later_is_asking_at_once(model: Tiny, shown: Scene) -> None:
    questions = [question.text for question in shown.questions]
    sight = model.see(Image.fromarray(shown.image))
    apart = [reply for question in questions for reply in model.answer(sight, [question])]
    together = ask(model, shown, *questions)
    for one, other in zip(apart, together):
        assert one.answer == other.answer
        assert [r.visible for r in one.regions] == [r.visible for r in other.regions]


@pytest.mark.parametrize("size", [(33, 97), (1, 1), (640, 480)])
def test_images_of_any_size_and_kind_are_answered_in_their_size(model: Tiny, size: tuple[int, int]) -> None:
    noise = np.random.default_rng(3).integers(0, 255, (size[1], size[0], 3), np.uint8)
    for image in (Image.fromarray(noise), Image.new("L", size, 200)):
        for reply in model.predict(image, ["everything here", ""]):
            assert all(r.visible is None or r.visible.size == (size[1], size[0]) for r in reply.regions)


def test_no_questions_no_replies(model: Tiny, shown: Scene) -> None:
    assert ask(model, shown) == []


def test_a_folder_without_networks_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MaskwiseError, match=r"lacks eye\.onnx, look\.onnx, choice\.onnx"):
        OnnxNetworks(tmp_path)


def test_a_file_that_is_no_network_is_named(tmp_path: Path) -> None:
    for name in ("eye", "look", "choice"):
        (tmp_path / f"{name}.onnx").write_bytes(b"no network")
    with pytest.raises(MaskwiseError, match=r"eye\.onnx is not a network onnxruntime can open"):
        bundled_model(str(tmp_path))


def test_of_two_things_alike_in_one_place_the_hidden_one_is_the_back_one() -> None:
    visible = np.zeros((2, SIDE, SIDE), bool)
    visible[0, 60:70, 40:80] = True  # the upper edge of a box
    visible[1, 70:110, 42:82] = True  # the box in front of it
    amodal = visible.copy()
    amodal[0, 60:100, 40:80] = True
    kinds = np.zeros((2, sum(KINDS)), np.float32)
    kinds[:, [CATEGORY_NAMES.index("box"), KINDS[0] + COLOUR_NAMES.index("red")]] = 1
    items = list_items(Objects(visible, amodal, amodal.astype(np.uint8), kinds))
    assert (items[0, 0].name, items[1, 0].name) == ("back red box", "front red box")


def test_all_that_ships_is_small() -> None:
    package = Path(__file__).parents[2] / "src" / "maskwise"
    shipped = [*package.rglob("*.onnx"), *package.rglob("*.npz"), *(package / "world").rglob("*.arrow")]
    assert sum(path.stat().st_size for path in shipped) <= 25e6
