"""Questions about one image in one sequence give the states of separate sequences."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")

from maskwise.models.vlm.batch import ImageQuestions, collate
from maskwise.models.vlm.packing import group_questions, pack_questions
from maskwise.models.vlm.vision_language import VisionLanguage
from tests.models.vlm.architectures import SEGMENTERS, VISION_LANGUAGE
from tests.models.vlm.small import scene_questions, small_config, small_model


def test_questions_are_grouped_by_image_and_texts_stay_alone() -> None:
    assert group_questions([0, 0, -1, 1, -1, 0]) == [[0, 1, 5], [2], [3], [4]]


def test_a_token_sees_its_question_and_what_all_begin_with() -> None:
    # Two questions that share the tokens 1 2, the second one shorter.
    input_ids = torch.tensor([[1, 2, 3, 4], [1, 2, 5, 0]])
    inputs = {
        "input_ids": input_ids,
        "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]),
        "mm_token_type_ids": torch.tensor([[1, 0, 0, 0], [1, 0, 0, 0]]),
    }
    positions = torch.arange(4).expand(3, 2, 4)
    packed = pack_questions(inputs, positions, [0, 0])
    assert packed.input_ids.tolist() == [[1, 2, 3, 4, 5]]
    assert packed.position_ids[0].tolist() == [[0, 1, 2, 3, 2]]
    assert packed.attention_mask[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 0, 0, 1],
    ]
    assert packed.places.tolist() == [[0, 1, 2, 3], [0, 1, 4, 0]]
    assert packed.image_index == (0,)


@pytest.mark.parametrize("kind", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
def test_packed_questions_have_the_loss_and_gradients_of_separate_ones(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, processor = small_model(
        small_config((VISION_LANGUAGE[kind], SEGMENTERS["sam2"]))
    )
    text = ImageQuestions(None, scene_questions(5, 1).samples)
    items = [scene_questions(0, 3), text, scene_questions(1, 2)]
    batch = collate(items, processor)
    results = []
    for packs in (True, False):
        if not packs:
            monkeypatch.setattr(VisionLanguage, "_can_pack", lambda *_: False)
        assert model.vision_language._can_pack(batch.image_index) is packs
        model.zero_grad()
        output = model(batch)
        output.loss.backward()
        layer = model.vision_language.model.model.language_model.layers[0]
        results.append((output, layer.mlp.up_proj.weight.grad.clone()))
    (packed, gradient), (separate, expected) = results
    torch.testing.assert_close(packed.loss, separate.loss, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        packed.masks.visible, separate.masks.visible, atol=1e-4, rtol=1e-4
    )
    torch.testing.assert_close(gradient, expected, atol=1e-5, rtol=1e-4)
