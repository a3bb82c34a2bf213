"""Adapters on weights that are held in 4 bits."""

from pathlib import Path

import msgspec
import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")
bitsandbytes = pytest.importorskip(
    "bitsandbytes", reason="the extra `qlora` is not installed"
)

from maskwise.errors import ConfigError
from maskwise.harness.registry import make_predictor
from maskwise.models.vlm.folder import read_folder_config
from maskwise.training.vlm.config import Stage
from maskwise.training.vlm.dry_run import dry_run
from maskwise.training.vlm.lora import LoraSettings
from maskwise.training.vlm.nano_tokenizer import new_processor
from maskwise.training.vlm.pipeline import build_training_model, train
from tests.training.vlm.small_runs import small_run

pytestmark = pytest.mark.vlm


def test_adapters_are_trained_on_4_bits_and_exported_on_whole_weights(
    tmp_path: Path,
) -> None:
    train(small_run(stages=(Stage(name="one", steps=1),)), tmp_path / "first")
    model = read_folder_config(tmp_path / "first")
    config = small_run(
        vlm=model,
        init=str(tmp_path / "first"),
        lora=LoraSettings(rank=2, quantization="nf4"),
        stages=(Stage(name="one", steps=2, freeze=("segmenter",)),),
    )
    built = build_training_model(config, new_processor(model))
    layers = [type(module).__name__ for module in built.vision_language.model.modules()]
    assert "Linear4bit" in layers
    train(config, tmp_path / "second")
    exported = make_predictor("vlm", checkpoint=str(tmp_path / "second")).model
    assert not any(
        isinstance(module, bitsandbytes.nn.Linear4bit) for module in exported.modules()
    )
    whole = msgspec.structs.replace(config, lora=LoraSettings(rank=2))
    weights = [dry_run(each).memory["weights"] for each in (config, whole)]
    assert weights[0] < weights[1]


def test_random_weights_are_not_quantized(tmp_path: Path) -> None:
    config = small_run(lora=LoraSettings(rank=2, quantization="nf4"))
    with pytest.raises(ConfigError, match="only pretrained weights"):
        train(config, tmp_path)
