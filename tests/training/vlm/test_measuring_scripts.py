"""`make occlusion` and `make reinforcement` run from start to end, here with one step on a model that knows nothing."""

from pathlib import Path

import msgspec
import pytest

from maskwise.training.vlm.config import read_config
from maskwise.training.vlm.pipeline import train
from tests.bench.test_scripts import run_script
from tests.training.vlm.small_runs import small_model

pytestmark = pytest.mark.vlm

CONFIG = Path(__file__).parents[3] / "configs" / "vlm" / "nano-short.toml"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the first stage of nano-short, one step."""
    config = read_config(CONFIG)
    replace = msgspec.structs.replace
    sources = {
        name: replace(source, world=replace(source.world, scenes=4, size=64))
        for name, source in config.sources.items()
    }
    stage = replace(config.stages[0], steps=1, warmup_steps=0, batch_size=2)
    optimization = replace(config.optimization, batch_size=2, micro_batch_size=1)
    small = replace(
        config,
        vlm=small_model(),
        sources=sources,
        stages=(stage,),
        optimization=optimization,
        validation=None,
    )
    folder = tmp_path_factory.mktemp("nano")
    train(small, folder)
    return folder


@pytest.mark.parametrize(
    ("script", "steps", "row"),
    [
        ("occlusion", "1", "occlusion map"),
        ("reinforcement", "5", "no_target, questions without"),
    ],
)
def test_a_script_trains_and_prints_its_table(
    checkpoint: Path, tmp_path: Path, script: str, steps: str, row: str
) -> None:
    arguments = ["-m", f"bench.{script}", str(checkpoint), "--steps", steps]
    table = run_script(*arguments, "--held-out", "3", folder=tmp_path)
    assert row in table
