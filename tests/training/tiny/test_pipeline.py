"""Training, small enough for a test: the same code and stages as the run of the bundled model."""

import json
import re
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import MaskwiseError
from maskwise.models.tiny import Tiny
from maskwise.models.tiny.networks import NETWORKS, OnnxNetworks
from maskwise.models.tiny.scene_example import scene_to_example
from maskwise.models.tiny.spec import IMAGE_SIZE
from maskwise.store import Dataset
from maskwise.training.stage_config import StageConfig
from maskwise.training.tiny.config import (
    TrainingConfig,
    WorldData,
    read_config,
)
from maskwise.training.tiny.losses import detector_loss
from maskwise.training.tiny.networks import TorchNetworks, TwoStageDetector
from maskwise.training.tiny.pipeline import load_trained, train
from maskwise.training.tiny.targets import make_detector_batch
from maskwise.world import make_scene, write_scenes

SHORT = StageConfig(
    steps=2, batch_size=2, learning_rate=0.001, warmup_steps=1, checkpoint_every=1
)
TINY_CONFIG = Path(__file__).parents[3] / "configs" / "tiny.toml"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run: world scenes and a dataset folder, every stage a few steps long."""
    folder = tmp_path_factory.mktemp("training")
    write_scenes(folder / "more", 2, 11)
    config = TrainingConfig(
        seed=3,
        world=WorldData(scenes=4, crowded_scenes=1, questions=2, validation_scenes=2),
        detector=SHORT,
        detector_augmented=SHORT,
        grounder=SHORT,
        detected_scenes=3,
        datasets=(str(folder / "more"),),
        threads=1,
    )
    train(config, folder / "run")
    (folder / "config.json").write_bytes(msgspec.json.encode(config))
    return folder


def config_of(run: Path) -> TrainingConfig:
    return msgspec.json.decode((run / "config.json").read_bytes(), type=TrainingConfig)


def test_a_run_writes_weights_curves_events_and_networks(run: Path) -> None:
    names = {path.name for path in (run / "run").iterdir()}
    assert names >= {
        "stages",
        "config.json",
        "events",
        "detections",
    }
    assert names >= {f"{name}.onnx" for name in NETWORKS}
    curve = [
        json.loads(line)
        for line in (run / "run" / "detector.jsonl").read_text().splitlines()
    ]
    assert [row["step"] for row in curve] == [1, 2]
    assert all(0 <= row["val_giou"] <= 1 for row in curve), (
        "validated by the strict protocol"
    )
    assert list((run / "run" / "events" / "detector").glob("events.*"))


def test_a_finished_run_is_not_repeated_and_another_config_is_refused(
    run: Path,
) -> None:
    before = (run / "run" / "stages" / "detector.safetensors").stat().st_mtime_ns
    train(config_of(run), run / "run")
    assert (
        run / "run" / "stages" / "detector.safetensors"
    ).stat().st_mtime_ns == before
    with pytest.raises(MaskwiseError, match="seed: 3 then, 4 now"):
        train(msgspec.structs.replace(config_of(run), seed=4), run / "run")


def test_a_run_killed_between_stages_gives_the_same_weights(
    run: Path, tmp_path: Path
) -> None:
    shutil.copytree(run / "run", tmp_path / "run")
    for path in (tmp_path / "run").glob("grounder*"):
        path.unlink()
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "grounder")
    train(config_of(run), tmp_path / "run")
    again, before = (
        (folder / "stages" / "grounder.safetensors").read_bytes()
        for folder in (tmp_path / "run", run / "run")
    )
    assert again == before


def test_a_damaged_weights_file_is_named(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "run", tmp_path / "run")
    (tmp_path / "run" / "stages" / "detector.safetensors").write_bytes(b"torn")
    with pytest.raises(
        MaskwiseError,
        match=r"detector\.safetensors is not a safetensors file.*delete it",
    ):
        train(config_of(run), tmp_path / "run")


def test_onnx_and_torch_give_the_same_outputs(run: Path) -> None:
    torch_networks = TorchNetworks(*load_trained(run / "run"))
    onnx_networks = OnnxNetworks(run / "run", threads=1)
    image = np.random.default_rng(1).random((1, 3, IMAGE_SIZE, IMAGE_SIZE), np.float32)
    maps = torch_networks.detect(image)
    for a, b in zip(maps, onnx_networks.detect(image)):
        np.testing.assert_allclose(a, b, atol=1e-3, rtol=1e-3)
    boxes = np.array(
        [[0.1, 0.2, 0.5, 0.6], [-0.1, 0.3, 0.4, 1.1], [0, 0, 1, 1]], np.float32
    )
    inputs = (maps.fine, maps.coarse, boxes)
    rois = torch_networks.predict_rois(*inputs)
    for a, b in zip(rois, onnx_networks.predict_rois(*inputs)):
        np.testing.assert_allclose(a, b, atol=1e-3, rtol=1e-3)
    np.testing.assert_allclose(
        torch_networks.predict_masks(image, *inputs[:2], boxes=boxes, rois=rois),
        onnx_networks.predict_masks(image, *inputs[:2], boxes=boxes, rois=rois),
        atol=1e-3,
        rtol=1e-3,
    )
    image_of_dataset = Dataset.open(run / "more").open_image(0)
    encoded = Tiny(onnx_networks).encode(image_of_dataset)
    assert len(encoded.answer(["the mug", "all of it"])) == 2


def test_export_needs_the_folder_of_a_finished_run(run: Path, tmp_path: Path) -> None:
    with pytest.raises(MaskwiseError, match=r"has no config\.json"):
        load_trained(tmp_path)
    shutil.copy(run / "run" / "config.json", tmp_path)
    with pytest.raises(
        MaskwiseError,
        match=r"has no stages/detector\.safetensors; run `maskwise train` to the end",
    ):
        load_trained(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b'{"seed": 1, "wor', b"\xff\xfe", b'{"seed": "one"}', b"[" * 5000]
)
def test_a_damaged_config_of_a_run_is_named_with_what_to_do(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(MaskwiseError) as failed:
        load_trained(tmp_path)
    message = str(failed.value)
    assert message.startswith(f"{path} is damaged: ")
    assert "as `maskwise train` wrote it" in message
    assert "restore the file" in message


def test_export_command_writes_the_networks_of_a_run(run: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["export", str(run / "run"), "--out", str(tmp_path), "--json"]
    )
    assert [Path(path).name for path in json.loads(result.stdout)["files"]] == [
        "detector.onnx",
        "roi_head.onnx",
        "mask_head.onnx",
        "grounder.onnx",
    ]
    for name in [f"{network}.onnx" for network in NETWORKS]:
        assert (tmp_path / name).read_bytes() == (run / "run" / name).read_bytes()


def test_the_loss_falls_on_one_image() -> None:
    torch.manual_seed(0)
    examples = [scene_to_example(make_scene(1, 0, "train"))]
    network = TwoStageDetector()
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3)
    totals = []
    for _ in range(8):
        total = sum(
            detector_loss(
                network, make_detector_batch(examples, np.random.default_rng(0))
            ).values()
        )
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        totals.append(total.item())
    assert totals[-1] < 0.8 * totals[0]


def test_an_invalid_config_is_reported_by_field(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("seed = 1\nsteps = 3\n")
    with pytest.raises(MaskwiseError, match=r"config\.toml"):
        read_config(path)
    valid = TINY_CONFIG.read_text()
    for line, field in (
        ("seed = -1", "seed"),
        ("threads = 0", "threads"),
        ("detected_scenes = -3", "detected_scenes"),
    ):
        path.write_text(re.sub(f"^{field} = .*", line, valid, flags=re.MULTILINE))
        with pytest.raises(MaskwiseError, match=rf"config\.toml: .*{field}"):
            read_config(path)
    path.write_bytes(b"seed = \xff")
    with pytest.raises(MaskwiseError, match=r"config\.toml"):
        read_config(path)


def test_the_config_of_the_bundled_model_is_valid() -> None:
    world = read_config(TINY_CONFIG).world
    assert (world.scenes, world.crowded_scenes) == (15000, 9000)


def test_train_prints_json_and_names_a_file_in_place_of_the_folder(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "maskwise.training.tiny.pipeline.read_config", lambda _: config_of(run)
    )
    any_config = str(TINY_CONFIG)
    result = CliRunner().invoke(
        app, ["train", any_config, "--out", str(run / "run"), "--json"]
    )
    assert len(json.loads(result.stdout)["files"]) == len(NETWORKS)
    result = CliRunner().invoke(
        app, ["train", any_config, "--out", str(run / "config.json")]
    )
    assert "cannot write to" in f"{result.exception} {result.output}"
