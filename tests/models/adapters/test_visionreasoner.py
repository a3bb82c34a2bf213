"""VisionReasoner with random weights in the published layout, small."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from maskwise.errors import ModelError
from maskwise.harness.registry import make_predictor
from maskwise.models.adapters.qwen_sam2 import WrittenAnswer
from maskwise.models.adapters.visionreasoner import (
    BoxAndPoint,
    VisionReasoner,
    parse_reply,
    to_input_pixels,
    write_prompt,
)
from tests.models.adapters.checkpoints import make_sam2, save_language

IMAGE = Image.fromarray(
    np.random.default_rng(0).integers(0, 255, (42, 60, 3), np.uint8)
)
TWO = (
    "<think> the cup and the jug </think><answer>"
    '[{"bbox_2d": [84, 168, 420, 672], "point_2d": [200, 400]}, '
    '{"bbox_2d": [0,0,840,840], "point_2d": [700,10]}]</answer>'
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> VisionReasoner:
    folder = tmp_path_factory.mktemp("visionreasoner")
    save_language("qwen2_5_vl", folder / "language")
    make_sam2().save_pretrained(folder / "sam2")
    found = make_predictor(
        "visionreasoner",
        checkpoint=str(folder / "language"),
        segmenter=str(folder / "sam2"),
        max_new_tokens=4,
    )
    assert isinstance(found, VisionReasoner)
    return found


def reply_with(
    model: VisionReasoner, monkeypatch: pytest.MonkeyPatch, *replies: str
) -> None:
    """Let the language model write these replies."""
    tokenizer = model.model.processor.tokenizer
    written = [
        WrittenAnswer(tokenizer(one)["input_ids"], torch.zeros(0)) for one in replies
    ]
    monkeypatch.setattr(model.model, "write", lambda _image, _questions: written)


def test_several_questions_encode_the_image_once(model: VisionReasoner) -> None:
    calls: list[str] = []
    seen = {
        "language": model.model.language.model.model.visual,
        "sam": model.model.segmenter.encoder,
    }
    handles = [
        one.register_forward_hook(lambda *_, name=name: calls.append(name))
        for name, one in seen.items()
    ]
    predictions = model.predict(IMAGE, ["the cup", "What holds water?", "the dog"])
    for handle in handles:
        handle.remove()
    assert sorted(calls) == ["language", "sam"]
    assert [one.no_target for one in predictions] == [
        True
    ] * 3  # random words are no list of boxes
    assert all(one.regions == () for one in predictions)


def test_boxes_become_masks_of_the_image(
    model: VisionReasoner, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply_with(
        model,
        monkeypatch,
        TWO,
        "<think>nothing fits</think><answer>[]</answer>",
        "I cannot.",
    )
    found, empty, unparsable = model.predict(IMAGE, ["the cup", "the dog", "the cat"])
    assert [region.size for region in found.regions] == [(42, 60)] * 2
    assert found.answer is not None
    assert found.answer.text == "the cup and the jug"
    assert not found.no_target
    assert (empty.no_target, empty.regions) == (True, ())
    assert (unparsable.no_target, unparsable.regions) == (True, ())


def test_masks_are_those_of_the_library(
    model: VisionReasoner, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply_with(model, monkeypatch, TWO)
    (found,) = model.predict(IMAGE, ["the cup"])
    boxes = [to_input_pixels(one.bbox_2d, IMAGE.size, 64) for one in parse_reply(TWO)]
    points = [
        [to_input_pixels(one.point_2d, IMAGE.size, 64)] for one in parse_reply(TWO)
    ]
    with torch.inference_mode():
        output = model.model.sam(
            pixel_values=model.model.processor.to_segmenter_pixels(IMAGE)[None],
            input_boxes=torch.tensor([boxes]),
            input_points=torch.tensor([points]),
            input_labels=torch.ones((1, 2, 1), dtype=torch.int32),
            multimask_output=True,
        )
    best = output.iou_scores[0].argmax(-1)
    logits = output.pred_masks[0][torch.arange(2), best]
    masks = (
        torch.nn.functional.interpolate(logits[:, None], (42, 60), mode="bilinear")[
            :, 0
        ]
        > 0
    )
    assert len(output.iou_scores[0, 0]) == 3
    assert 0 < masks.sum() < masks.numel()
    for region, mask in zip(found.regions, masks.numpy()):
        assert np.mean(region.visible.to_dense() == mask) > 0.999


def test_coordinates_are_scaled_from_840_pixels() -> None:
    assert to_input_pixels((420, 840, 210, 0), (1680, 420), 1024) == [512, 1024, 256, 0]
    # 10 of 840 is 0.71 pixels of an image 60 wide, so 1 pixel
    assert to_input_pixels((10,), (60, 42), 120) == [2]


def test_the_prompt_is_that_of_the_authors() -> None:
    prompt = write_prompt('What holds "Water"?')
    assert prompt.startswith(
        'Please find "what holds "water" with bboxs and points.Compare the difference'
    )
    assert prompt.endswith(
        '{"bbox_2d": [225,296,706,786], "point_2d": [302,410]}]</answer>'
    )


@pytest.mark.parametrize(
    ("reply", "count"),
    [
        (TWO, 2),
        ('<answer>[{"bbox_2d": [1, 2, 3, 4]}]</answer>', 0),
        (
            '<answer>[{"bbox_2d": [1, 2, 3, 4]}, {"bbox_2d": [1,2,3,4], "point_2d": [1.5, 2]}]</answer>',
            1,
        ),
        ('<answer>[{"bbox_2d": [1, 2, 3], "point_2d": [1, 2]}]</answer>', 0),
        ('<answer>[{"bbox_2d": [1, 2, 3, "4"], "point_2d": [1, 2]}]</answer>', 0),
        ('<answer>[{"bbox_2d": [1, 2, 3, 1e300], "point_2d": [1, 2]}]</answer>', 0),
        ('<answer>[{"bbox_2d": [1, 2, 3, NaN], "point_2d": [1, 2]}]</answer>', 0),
        ('<answer>{"bbox_2d": [1, 2, 3, 4], "point_2d": [1, 2]}</answer>', 0),
        ('[{"bbox_2d": [1, 2, 3, 4], "point_2d": [1, 2]}]', 0),
        ("<answer>" + "[" * 100_000 + "</answer>", 0),
        ("<answer>[1, null]</answer>", 0),
        ("", 0),
    ],
)
def test_replies_are_parsed(reply: str, count: int) -> None:
    assert len(parse_reply(reply)) == count


def test_a_parsed_object_has_a_box_and_a_point() -> None:
    assert parse_reply(TWO)[0] == BoxAndPoint(
        bbox_2d=(84, 168, 420, 672), point_2d=(200, 400)
    )


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nothing: the model cannot be loaded"):
        make_predictor("visionreasoner", checkpoint=str(tmp_path / "nothing"))
