"""Every stage of the configs of nano runs and the result loads, here with a smaller model and one step per stage."""

from pathlib import Path

import msgspec
import pytest

from maskwise.models.vlm.folder import load_folder
from maskwise.training.vlm.config import read_config
from maskwise.training.vlm.pipeline import train
from tests.training.vlm.small_runs import small_model

CONFIGS = Path(__file__).parents[3] / "configs" / "vlm"


@pytest.mark.parametrize("name", ["nano", "nano-short"])
def test_the_stages_of_nano_run_in_small(tmp_path: Path, name: str) -> None:
    config = read_config(CONFIGS / f"{name}.toml")
    replace = msgspec.structs.replace
    sources = {
        name: replace(one, world=replace(one.world, scenes=4, size=64))
        for name, one in config.sources.items()
    }
    stages = tuple(
        replace(stage, steps=1, warmup_steps=0, batch_size=2) for stage in config.stages
    )
    optimization = replace(config.optimization, batch_size=2, micro_batch_size=1)
    small = replace(
        config,
        vlm=small_model(),
        sources=sources,
        stages=stages,
        optimization=optimization,
        validation=None,
    )
    train(small, tmp_path)
    load_folder(tmp_path)
