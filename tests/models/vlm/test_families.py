"""All supported vision-language models and segmenters, in tiny sizes."""

import pytest
import torch
from transformers import AutoConfig, Sam2Model

from maskwise.errors import ModelError, UnknownNameError
from maskwise.models.vlm.batch import collate
from maskwise.models.vlm.build import build_model, build_processor
from maskwise.models.vlm.config import LossWeights, Pretrained, VlmConfig
from maskwise.models.vlm.mask_decoders import MaskDecoders
from maskwise.models.vlm.predictor import Vlm
from maskwise.models.vlm.segmenter import Segmenter
from tests.models.vlm.architectures import IMAGE, SEGMENTERS, VISION_LANGUAGE
from tests.models.vlm.small import scene_questions, small_config, small_model


def _config(language: str, segmenter: str, **options) -> VlmConfig:
    return small_config(
        architectures=(VISION_LANGUAGE[language], SEGMENTERS[segmenter]),
        max_new_tokens=4,
        **options,
    )


PAIRS = [(language, "sam2") for language in VISION_LANGUAGE] + [
    ("qwen3_vl", one) for one in SEGMENTERS
]


@pytest.mark.parametrize(("language", "segmenter"), PAIRS)
def test_every_family_trains_and_predicts(language, segmenter):
    model, processor = small_model(_config(language, segmenter))
    images = [scene_questions(0), scene_questions(1, size=80)]
    output = model(collate(images, processor, dense=True))
    output.loss.backward()
    assert all(torch.isfinite(one) for one in output.losses.values())
    for part in (
        model.vision_language,
        model.segmenter.encoder,
        model.projector,
        model.decoders,
    ):
        assert any(
            one.grad is not None and one.grad.abs().sum() > 0
            for one in part.parameters()
        )
    predictions = Vlm(model, processor).predict_teacher_forced(
        images[1].image, images[1].samples
    )
    assert all(region.size == (80, 80) for one in predictions for region in one.regions)
    assert (
        len(
            Vlm(model, processor).predict(
                images[1].image, ["the mug", "What is in front of the box?"]
            )
        )
        == 2
    )


@pytest.mark.parametrize("segmenter", SEGMENTERS)
def test_early_features_change_the_masks(segmenter):
    model, processor = small_model(_config("qwen3_vl", segmenter, early_block=0))
    batch = collate([scene_questions(0)], processor)
    with torch.no_grad():
        before = model(batch).masks.visible
        model.segmenter.early.second.weight.normal_()
        assert not torch.allclose(model(batch).masks.visible, before)


def test_the_occlusion_head_keeps_the_visible_mask_inside_the_amodal_one():
    config = small_config(occlusion_head=True, visible_inside_amodal=True)
    model, processor = small_model(config)
    output = model(collate([scene_questions(0)], processor))
    masks = output.masks
    assert masks.occlusion_rate.shape == (len(masks.visible),)
    assert ((masks.visible > 0) <= (masks.amodal > 0)).all()


@pytest.mark.parametrize("rate", [False, True])
def test_the_occlusion_map_trains_the_amodal_decoder_alone(rate):
    losses = {"text": 0.0, "bce": 0.0, "dice": 0.0, "occlusion_map": 1.0}
    config = small_config(
        occlusion_map=True, occlusion_head=rate, losses=LossWeights(**losses)
    )
    model, processor = small_model(config)
    output = model(collate([scene_questions(0)], processor))
    assert output.masks.occlusion_map.shape[1:] == (3, 4, 4)
    assert list(output.losses) == ["occlusion_map"]
    output.loss.backward()
    head = model.decoders.occlusion_map
    assert head.classes[1].weight.grad.abs().sum() > 0
    assert all(weight.grad is None for weight in model.decoders.visible.parameters())


def test_decoding_equals_the_library():
    torch.manual_seed(0)
    fields = dict(SEGMENTERS["sam2"])
    fields.pop("model_type")
    sam = Sam2Model(AutoConfig.for_model("sam2", **fields)).eval()
    sam.mask_decoder.dynamic_multimask_via_stability = False
    pixels = torch.randn(2, 3, IMAGE, IMAGE)
    points = torch.rand(2, 1, 3, 2) * IMAGE
    labels = torch.ones(2, 1, 3, dtype=torch.int)
    with torch.no_grad():
        expected = sam(
            pixels, input_points=points, input_labels=labels, multimask_output=False
        ).pred_masks
        prompts = sam.get_prompt_embeddings(points, labels)[0][:, 0]
        segmenter = Segmenter(sam)
        decoders = MaskDecoders(sam, None, visible_inside_amodal=False)
        visible, amodal, _, _ = decoders(
            segmenter, segmenter.encode(pixels), torch.tensor([0, 1]), prompts=prompts
        )
    assert torch.equal(visible, expected[:, 0, 0])
    assert torch.equal(amodal, visible)


def test_the_config_of_the_video_model_gives_the_image_model():
    """Published folders of SAM 2 have the config of the video model."""
    video = SEGMENTERS["sam2"] | {"model_type": "sam2_video"}
    models = [
        build_model(
            small_config(architectures=(VISION_LANGUAGE["llava"], one)), device="meta"
        )
        for one in (video, SEGMENTERS["sam2"])
    ]
    shapes = [
        {name: one.shape for name, one in model.named_parameters()} for model in models
    ]
    assert shapes[0] == shapes[1]


def test_unknown_families_are_refused():
    config = small_config(architectures=({"model_type": "bert"}, SEGMENTERS["sam2"]))
    with pytest.raises(UnknownNameError, match="qwen3_vl"):
        build_model(config)
    config = small_config(
        architectures=(VISION_LANGUAGE["llava"], {"model_type": "clip"})
    )
    with pytest.raises(UnknownNameError, match="sam2"):
        build_model(config)
    config = small_config(
        architectures=({"model_type": "qwen9_vl"}, SEGMENTERS["sam2"])
    )
    with pytest.raises(
        UnknownNameError, match=r"unknown model_type 'qwen9_vl'.*qwen3_vl"
    ):
        build_model(config)


def test_weights_that_cannot_be_reached_are_explained(tmp_path):
    config = VlmConfig(
        vision_language=Pretrained(name=str(tmp_path / "absent")),
        segmenter=Pretrained(config=SEGMENTERS["sam2"]),
    )
    with pytest.raises(ModelError, match="hf download"):
        build_processor(config)


def test_a_model_with_random_weights_has_no_tokenizer_before_training():
    with pytest.raises(ModelError, match="`maskwise train` writes one"):
        build_processor(small_config())


def test_shapes_need_no_memory():
    model = build_model(small_config(), device="meta")
    assert all(one.is_meta for one in model.parameters())
