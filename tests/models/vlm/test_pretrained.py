"""Files of pretrained models: from folders in the layouts of the hub, and without a connection."""

import json
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="the extra `vlm` is not installed")

from maskwise.errors import ModelError
from maskwise.models.vlm import pretrained
from maskwise.models.vlm.build import build_processor
from maskwise.models.vlm.config import Pretrained, VlmConfig
from maskwise.models.vlm.pretrained import is_hub_reachable, read_architecture
from tests.models.vlm.architectures import SEGMENTERS, VISION_LANGUAGE
from tests.models.vlm.small import small_processor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The config and the processor of a small Qwen3-VL, as in a folder of the hub."""
    read_architecture(Pretrained(config=VISION_LANGUAGE["qwen3_vl"])).save_pretrained(
        tmp_path
    )
    small_processor().save(tmp_path)
    return tmp_path


def vlm_config(name: Path | str, pixels: int) -> VlmConfig:
    return VlmConfig(
        vision_language=Pretrained(name=str(name)),
        segmenter=Pretrained(config=SEGMENTERS["sam2"]),
        min_pixels=pixels,
        max_pixels=pixels,
    )


def test_the_config_limits_the_pixels_of_a_pretrained_model(folder: Path) -> None:
    config = vlm_config(folder, 32 * 32)
    size = build_processor(config).image_processor.size
    assert (size["shortest_edge"], size["longest_edge"]) == (32 * 32, 32 * 32)
    saved = build_processor(config, folder).image_processor.size
    assert saved["longest_edge"] == 64 * 64, "a saved processor is not changed"


def test_a_chat_template_may_be_a_file_of_its_own(folder: Path) -> None:
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match="no chat template"):
        build_processor(vlm_config(folder, 64 * 64))
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": template}))
    assert (
        build_processor(vlm_config(folder, 64 * 64)).tokenizer.chat_template == template
    )


def test_without_a_connection_the_hub_is_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    class Session:
        def head(self, address: str, timeout: float) -> None:
            asked.append(address)
            raise TimeoutError

    monkeypatch.setattr(pretrained, "get_session", Session)
    is_hub_reachable.cache_clear()
    for _ in range(2):
        with pytest.raises(
            ModelError,
            match=r"run `hf download maker/model` on a machine with a connection",
        ):
            read_architecture(Pretrained(name="maker/model"))
    is_hub_reachable.cache_clear()
    assert len(asked) == 1
