"""Sa2VA with random weights in the published layout, small."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from transformers import Sam2Config, Sam2Model

from maskwise.errors import ModelError
from maskwise.harness.registry import make_predictor
from maskwise.models.adapters.sa2va import (
    SAM2_LARGE,
    Sa2va,
    translate_name,
    translate_sam2,
    write_request,
)
from tests.models.adapters.checkpoints import make_language, make_sam2

IMAGE = Image.fromarray(
    np.random.default_rng(0).integers(0, 255, (42, 60, 3), np.uint8)
)

HEADS = ("output_hypernetworks_mlps", "iou_prediction_head", "pred_obj_score_head")
ORIGINAL = {
    "vision_encoder.backbone.": "image_encoder.trunk.",
    "patch_embed.projection.": "patch_embed.proj.",
    "prompt_encoder.shared_embedding.positional_embedding": (
        "prompt_encoder.pe_layer.positional_encoding_gaussian_matrix"
    ),
    "mask_embed.conv1.": "mask_downscaling.0.",
    "mask_embed.layer_norm1.": "mask_downscaling.1.",
    "mask_embed.conv2.": "mask_downscaling.3.",
    "mask_embed.layer_norm2.": "mask_downscaling.4.",
    "mask_embed.conv3.": "mask_downscaling.6.",
    "upscale_conv1.": "output_upscaling.0.",
    "upscale_layer_norm.": "output_upscaling.1.",
    "upscale_conv2.": "output_upscaling.3.",
    "layer_norm": "norm",
    "o_proj": "out_proj",
}


def original_name(name: str) -> str:
    """The name of a weight of transformers in the authors' SAM 2."""
    for theirs, ours in ORIGINAL.items():
        name = name.replace(theirs, ours)
    name = re.sub(
        r"vision_encoder\.neck\.convs\.(\d)\.",
        r"image_encoder.neck.convs.\1.conv.",
        name,
    )
    if any(head in name for head in HEADS):
        name = (
            name.replace(".layers.0.", ".layers.1.")
            .replace("proj_in", "layers.0")
            .replace("proj_out", "layers.2")
        )
    name = name.replace("mlp.proj_in", "mlp.layers.0").replace(
        "mlp.proj_out", "mlp.layers.1"
    )
    name = re.sub(r"^(prompt_encoder|mask_decoder)", r"sam_\1", name)
    return "no_mem_embed" if name == "no_memory_embedding" else name


def to_original(sam: Sam2Model) -> dict[str, torch.Tensor]:
    """The weights as the authors store them, with some of those for videos."""
    weights = {original_name(name): value for name, value in sam.state_dict().items()}
    weights.pop("shared_image_embedding.positional_embedding")
    for kind, row in enumerate(weights.pop("sam_prompt_encoder.point_embed.weight")):
        weights[f"sam_prompt_encoder.point_embeddings.{kind}.weight"] = row[None]
    video = (
        "memory_attention.norm.weight",
        "maskmem_tpos_enc",
        "obj_ptr_proj.layers.0.weight",
        "no_obj_ptr",
    )
    return weights | {name: torch.zeros(3) for name in video}


def save_checkpoint(folder: Path, kind: str) -> None:
    """A folder as `ByteDance/Sa2VA-Qwen3-VL-4B`: three parts in one file, and a config of a model_type of its own."""
    language, processor = make_language(kind)
    processor.save(folder)
    config = language.config.to_dict() | {
        "model_type": "sa2va_chat",
        "architectures": ["Sa2VAChatModelQwen"],
        "auto_map": {"AutoConfig": "configuration_sa2va_chat.Sa2VAChatConfigQwen"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    width = language.config.get_text_config().hidden_size
    weights = {f"model.{name}": value for name, value in language.state_dict().items()}
    sam = {
        f"grounding_encoder.sam2_model.{name}": value
        for name, value in to_original(make_sam2()).items()
    }
    projector = {
        "0.weight": (width, width),
        "0.bias": (width,),
        "2.weight": (32, width),
        "2.bias": (32,),
    }
    heads = {
        f"text_hidden_fcs.{name}": torch.randn(shape)
        for name, shape in projector.items()
    }
    every = weights | sam | heads
    save_file(
        {name: value.clone().contiguous() for name, value in every.items()},
        folder / "model.safetensors",
    )


@pytest.fixture(scope="module", params=["qwen2_5_vl", "qwen3_vl"])
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("sa2va")
    save_checkpoint(folder, request.param)
    make_sam2().config.save_pretrained(folder / "sam2")
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> Sa2va:
    found = make_predictor(
        "sa2va",
        checkpoint=str(folder),
        segmenter=str(folder / "sam2"),
        max_new_tokens=3,
    )
    assert isinstance(found, Sa2va)
    return found


def write_only(model: Sa2va, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the language model write nothing but one token."""
    tokenizer = model.model.processor.tokenizer
    size = model.model.language.model.config.get_text_config().vocab_size
    others = [
        one for one in range(size) if one != tokenizer.convert_tokens_to_ids(token)
    ]
    monkeypatch.setattr(
        model.model.language.model.generation_config, "suppress_tokens", others
    )


def test_all_weights_arrive(folder: Path, model: Sa2va) -> None:
    expected = make_sam2().state_dict()
    loaded = model.model.sam.state_dict()
    assert expected.keys() == loaded.keys()
    assert all(torch.equal(expected[name], loaded[name]) for name in expected)
    stored = load_file(folder / "model.safetensors")
    language = model.model.language.model.state_dict()
    assert all(
        torch.equal(stored[f"model.{name}"], value) for name, value in language.items()
    )


def test_each_seg_token_becomes_a_mask(
    model: Sa2va, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_only(model, "[SEG]", monkeypatch)
    found, other = model.predict(IMAGE, ["Segment the cup.", "What holds water?"])
    assert (
        len(found.regions) == len(other.regions) == 2
    )  # the third token was not read by the model
    assert found.regions[0].size == (42, 60)
    assert found.answer is not None
    assert found.answer.text == ""
    assert found.mask_type == "visible"


def test_an_answer_without_seg_tokens_has_no_target(
    model: Sa2va, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_only(model, "a", monkeypatch)
    (found,) = model.predict(IMAGE, ["the dog"])
    assert (found.no_target, found.regions) == (True, ())
    assert found.answer is not None
    assert found.answer.text == "aa"


def test_several_questions_encode_the_image_once(model: Sa2va) -> None:
    calls: list[str] = []
    seen = {
        "language": model.model.language.model.model.visual,
        "sam": model.model.segmenter.encoder,
    }
    handles = [
        one.register_forward_hook(lambda *_, name=name: calls.append(name))
        for name, one in seen.items()
    ]
    assert len(model.predict(IMAGE, ["the cup", "the dog"])) == 2
    for handle in handles:
        handle.remove()
    assert sorted(calls) == ["language", "sam"]


def test_the_prompt_follows_two_vectors_for_no_point(model: Sa2va) -> None:
    width = model.model.language.width
    with torch.inference_mode():
        prompts = model._prompts(torch.ones((5, width)))
    assert prompts.shape == (5, 3, 32)
    nothing = model.model.sam.prompt_encoder.not_a_point_embed.weight[0]
    assert torch.equal(prompts[0, 0], nothing)
    assert torch.equal(prompts[4, 1], nothing)


def test_names_of_the_large_model_are_translated() -> None:
    with torch.device("meta"):
        large = Sam2Model(Sam2Config(**SAM2_LARGE))
        translated = translate_sam2(to_original(large))
    assert sum(one.numel() for one in large.vision_encoder.parameters()) == 212_703_280
    expected = {name: value.shape for name, value in large.state_dict().items()}
    assert {name: value.shape for name, value in translated.items()} == expected


@pytest.mark.parametrize(
    ("name", "translated"),
    [
        (
            "image_encoder.trunk.blocks.7.mlp.layers.1.bias",
            "vision_encoder.backbone.blocks.7.mlp.proj_out.bias",
        ),
        (
            "image_encoder.trunk.blocks.7.norm1.bias",
            "vision_encoder.backbone.blocks.7.layer_norm1.bias",
        ),
        (
            "image_encoder.neck.convs.2.conv.weight",
            "vision_encoder.neck.convs.2.weight",
        ),
        (
            "sam_mask_decoder.iou_prediction_head.layers.1.bias",
            "mask_decoder.iou_prediction_head.layers.0.bias",
        ),
        (
            "sam_mask_decoder.transformer.layers.0.self_attn.out_proj.bias",
            "mask_decoder.transformer.layers.0.self_attn.o_proj.bias",
        ),
        (
            "sam_mask_decoder.transformer.norm_final_attn.bias",
            "mask_decoder.transformer.layer_norm_final_attn.bias",
        ),
    ],
)
def test_names_are_translated(name: str, translated: str) -> None:
    assert translate_name(name) == translated


@pytest.mark.parametrize(
    ("question", "request_text"),
    [
        ("Segment the red cup.", "Please segment red cup in this image."),
        (
            "What holds water?",
            "What holds water? Please respond with segmentation mask.",
        ),
    ],
)
def test_questions_become_requests(question: str, request_text: str) -> None:
    assert write_request(question) == request_text


def test_a_folder_with_other_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"begins with model\. or .*no weights"):
        make_predictor("sa2va", checkpoint=str(tmp_path))
    save_file({"vision_model.a": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"found: vision_model\.a"):
        make_predictor("sa2va", checkpoint=str(tmp_path))


def test_a_checkpoint_that_lacks_weights_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    for path in folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    weights.pop("grounding_encoder.sam2_model.no_mem_embed")
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(
        ModelError, match=r"1 weights of Sam2Model are missing: no_memory_embedding"
    ):
        make_predictor(
            "sa2va", checkpoint=str(tmp_path), segmenter=str(folder / "sam2")
        )


def test_code_of_the_folder_is_neither_run_nor_offered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda text="": asked.append(text) or "n")
    make_predictor("sa2va", checkpoint=str(folder), segmenter=str(folder / "sam2"))
    assert asked == []


def test_weights_of_another_size_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = json.loads((folder / "sam2" / "config.json").read_text())
    other["mask_decoder_config"]["mlp_dim"] = 8
    monkeypatch.setattr("maskwise.models.adapters.sa2va.SAM2_LARGE", other)
    with pytest.raises(ModelError, match="other shapes than the config of Sam2Model"):
        make_predictor("sa2va", checkpoint=str(folder))
