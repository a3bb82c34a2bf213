"""What the files of published checkpoints change, and what they must not change."""

import copy
from pathlib import Path

import msgspec
import pytest
import torch
from PIL import Image
from tokenizers import processors
from transformers import AutoConfig

from maskwise.errors import ModelError
from maskwise.models.vlm.build import build_model, build_processor
from maskwise.models.vlm.config import Pretrained, VlmConfig
from maskwise.models.vlm.folder import SEGMENTER, load_folder, save_folder
from maskwise.models.vlm.generation import encode_image, generate_answers
from maskwise.models.vlm.segmenter import find_segmenter_family, read_sizes
from tests.models.vlm.architectures import SEGMENTERS, VISION_LANGUAGE
from tests.models.vlm.hub_files import write_qwen
from tests.models.vlm.small import small_config, small_model, small_processor


def qwen_config(folder: Path, **options: object) -> VlmConfig:
    return VlmConfig(
        vision_language=Pretrained(name=str(folder)),
        segmenter=Pretrained(config=SEGMENTERS["sam2"]),
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("kind", ["qwen2_vl", "qwen2_5_vl"])
@pytest.mark.parametrize("size", [(1440, 1920), (4000, 3000), (40, 30)])
def test_image_tokens_stay_within_the_limits_of_the_config(
    tmp_path: Path, kind: str, size: tuple[int, int]
) -> None:
    processor = build_processor(qwen_config(write_qwen(tmp_path, kind)))
    tokens = processor.encode_images([Image.new("RGB", size)]).token_counts[0]
    assert 256 <= tokens <= 1280
    processor.save(tmp_path / "saved")
    again = build_processor(qwen_config(tmp_path), tmp_path / "saved")
    assert again.encode_images([Image.new("RGB", size)]).token_counts == [tokens]


def test_the_repetition_penalty_of_a_checkpoint_is_not_used(tmp_path: Path) -> None:
    config = qwen_config(
        write_qwen(tmp_path / "hub"),
        min_pixels=56 * 56,
        max_pixels=56 * 56,
        max_new_tokens=12,
    )
    processor = build_processor(config)
    model = build_model(config, processor).eval()
    assert model.vision_language.model.generation_config.repetition_penalty == 1.0
    visible = processor.seg_token_ids[0]

    def nearly_equal(
        _module: object, _inputs: object, logits: torch.Tensor
    ) -> torch.Tensor:
        # A penalty of 1.05 would let another token win after the first.
        changed = torch.full_like(logits, 0.99)
        changed[..., visible] = 1.0
        return changed

    model.vision_language.model.lm_head.register_forward_hook(nearly_equal)
    image = encode_image(model, processor, Image.new("RGB", (56, 56), "red"))
    answer = generate_answers(model, processor, image, ["Where is it?"])[0]
    # The last of the 12 tokens is not read again, so it prompts no mask.
    assert answer.kinds == [0] * 11
    save_folder(model, processor, tmp_path / "own")
    exported, _ = load_folder(tmp_path / "own")
    assert exported.vision_language.model.generation_config.repetition_penalty == 1.0


def test_the_segmenter_of_an_export_is_that_of_the_weights(tmp_path: Path) -> None:
    model, processor = small_model()
    save_folder(model, processor, tmp_path / "first")
    # A config file that describes another architecture than that of the weights.
    other = {"model_type": "sam2"}
    named = small_config(
        segmenter=Pretrained(name=str(tmp_path / "first" / SEGMENTER), config=other)
    )
    loaded = build_model(
        named, build_processor(named, tmp_path / "first/vision_language")
    )
    save_folder(loaded, processor, tmp_path / "second")
    written = AutoConfig.from_pretrained(tmp_path / "second" / SEGMENTER)
    assert written.mask_decoder_config.hidden_size == 48
    again, _ = load_folder(tmp_path / "second")
    for name, value in loaded.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [("sam", (1024, 256)), ("sam2", (1024, 256)), ("sam3_tracker", (1008, 288))],
)
def test_sizes_are_those_of_the_published_geometries(
    kind: str, sizes: tuple[int, int]
) -> None:
    model_class = find_segmenter_family(kind).model
    with torch.device("meta"):
        model = model_class(model_class.config_class())
    assert read_sizes(model) == sizes


def test_an_image_size_that_is_not_the_segmenters_is_refused() -> None:
    wrong = msgspec.structs.replace(small_config(), image_size=128)
    with pytest.raises(ModelError, match="made for images of 64 pixels; remove"):
        build_model(wrong, device="meta")


def test_prompts_begin_with_the_token_that_the_tokenizer_puts_first() -> None:
    tokenizer = copy.deepcopy(small_processor().tokenizer)
    config = small_config((VISION_LANGUAGE["llava"], SEGMENTERS["sam2"]))
    without = build_processor(config, tokenizer=tokenizer).encode_prompt("Where?", 1)
    # As the tokenizer of LLaVA does, whose chat template has no such token.
    tokenizer.bos_token = tokenizer.eos_token
    first = tokenizer.bos_token
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A", special_tokens=[(first, tokenizer.bos_token_id)]
    )
    tokens = build_processor(config, tokenizer=tokenizer).encode_prompt("Where?", 1)
    assert tokens == [tokenizer.bos_token_id, *without]
