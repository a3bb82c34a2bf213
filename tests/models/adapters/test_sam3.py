"""SAM 3 with random weights in the published layout, small."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maskwise.errors import ModelError
from maskwise.harness.registry import make_predictor

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from maskwise.models.adapters.sam3 import Sam3Predictor

SMALL = {
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "num_layers": 1,
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `facebook/sam3`: the model and the tokenizer of its text encoder."""
    folder = tmp_path_factory.mktemp("sam3")
    vit = {
        "model_type": "sam3_vit_model",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 112,
        "pretrain_image_size": 56,
        "patch_size": 14,
        "window_size": 4,
        "global_attn_indexes": [1],
    }
    text = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 64,
        "projection_dim": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 32,
    }
    config = transformers.Sam3Config(
        vision_config={
            "backbone_config": vit,
            "fpn_hidden_size": 32,
            "backbone_feature_sizes": [[32, 32], [16, 16], [8, 8]],
        },
        text_config=text,
        geometry_encoder_config=SMALL,
        detr_encoder_config=SMALL,
        detr_decoder_config=SMALL | {"num_queries": 5},
        mask_decoder_config={"hidden_size": 32, "num_attention_heads": 2},
    )
    transformers.Sam3Model(config).save_pretrained(folder)
    words = ["<unk>", "<pad>", "red", "cup", "dog"]
    model = tokenizers.Tokenizer(
        tokenizers.models.WordLevel(
            {word: place for place, word in enumerate(words)}, unk_token="<unk>"
        )
    )
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, unk_token="<unk>", pad_token="<pad>"
    ).save_pretrained(folder)
    return folder


def test_predictions_have_masks_of_the_image_or_no_target(checkpoint: Path) -> None:
    image = Image.fromarray(
        np.random.default_rng(0).integers(0, 255, (40, 60, 3), np.uint8)
    )
    every = make_predictor("sam3", checkpoint=str(checkpoint), min_score=0.0)
    assert isinstance(every, Sam3Predictor)
    found, other = every.predict(image, ["Segment the red cup.", "the dog"])
    assert len(found.regions) == len(other.regions) == 5
    assert found.regions[0].size == (40, 60)
    assert found.regions[0].name == "red cup"
    none = Sam3Predictor(str(checkpoint), min_score=1.0).predict(image, ["the dog"])
    assert none[0].no_target


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"cannot be loaded.*hf download facebook/sam3"
    ):
        make_predictor("sam3", checkpoint=str(tmp_path / "nothing"))
