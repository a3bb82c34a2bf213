"""Flash attention and compiled layers: the same result where they are there, a clear error where they are not."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")

from torch._dynamo.utils import counters
from transformers.utils import is_flash_attn_2_available

from maskwise.errors import ConfigError, MissingDependencyError
from maskwise.training.vlm.config import Stage
from maskwise.training.vlm.pipeline import train
from tests.training.vlm.small_runs import small_run

ONE_STEP = (Stage(name="one", steps=1),)


def test_flash_attention_that_is_not_installed_is_named(tmp_path: Path) -> None:
    if is_flash_attn_2_available():
        pytest.skip("flash attention is installed here")
    config = small_run(stages=ONE_STEP, attention="flash_attention_2", precision="bf16")
    with pytest.raises(
        MissingDependencyError, match=r'"flash_attention_2".*flash-attn'
    ):
        train(config, tmp_path)


def test_flash_attention_needs_16_bits(tmp_path: Path) -> None:
    config = small_run(stages=ONE_STEP, attention="flash_attention_2")
    with pytest.raises(ConfigError, match='set precision = "bf16"'):
        train(config, tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="GPUs need Triton instead")
def test_compiling_without_a_compiler_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ConfigError, match=r"C\+\+ compiler.*no-such-compiler"):
        train(small_run(stages=ONE_STEP, compile=True), tmp_path)


@pytest.mark.vlm
def test_compiled_layers_have_the_losses_and_gradients_of_the_others(
    tmp_path: Path,
) -> None:
    rows = []
    for name, compiled in (("plain", False), ("compiled", True)):
        counters.clear()
        train(small_run(stages=ONE_STEP, compile=compiled), tmp_path / name)
        assert bool(counters["stats"]["unique_graphs"]) is compiled
        rows.append(json.loads((tmp_path / name / "one.jsonl").read_text()))
    plain, with_compiler = rows
    for value in ("loss", "text", "bce", "dice", "gradient_norm"):
        assert with_compiler[value] == pytest.approx(plain[value], rel=1e-4)
