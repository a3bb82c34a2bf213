"""Fine-tuning from the bundled weights."""

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from maskwise.errors import MaskwiseError
from maskwise.masks import Mask
from maskwise.models.tiny import Tiny, load
from maskwise.models.tiny.model import BUNDLED_WEIGHTS
from maskwise.models.tiny.networks import OnnxNetworks
from maskwise.schema import ImageInfo, Prediction, Region, Sample
from maskwise.store import DatasetWriter
from maskwise.training.progress import reporting
from maskwise.training.stage_config import StageConfig
from maskwise.training.tiny.config import (
    TrainingConfig,
    WorldData,
    read_config,
)
from maskwise.training.tiny.export import export
from maskwise.training.tiny.networks import TorchNetworks, load_onnx
from maskwise.training.tiny.pipeline import initial_networks, load_trained, train
from maskwise.world import make_scene

SHORT = StageConfig(
    steps=2, batch_size=2, learning_rate=1e-4, warmup_steps=1, checkpoint_every=2
)
CONFIGS = Path(__file__).parents[3] / "configs"


def predict(model: Tiny, index: int) -> list[Prediction]:
    shown = make_scene(41, index, "val")
    return model.predict(
        Image.fromarray(shown.image), [question.text for question in shown.questions]
    )


def assert_same_predictions(one: Tiny, other: Tiny) -> None:
    for index in range(3):
        for a, b in zip(predict(one, index), predict(other, index), strict=True):
            assert a.answer == b.answer
            assert [r.score for r in a.regions] == pytest.approx(
                [r.score for r in b.regions], abs=1e-3
            )
            for own, same in zip(a.regions, b.regions, strict=True):
                assert own.amodal is not None
                assert same.amodal is not None
                assert (own.amodal - same.amodal).area + (
                    same.amodal - own.amodal
                ).area <= 3


def test_networks_loaded_from_the_bundled_weights_predict_the_same() -> None:
    assert_same_predictions(Tiny(TorchNetworks(*initial_networks("tiny"))), load())


def test_exported_networks_predict_the_same_and_can_be_loaded_again(
    tmp_path: Path,
) -> None:
    networks = initial_networks("tiny")
    export(*networks, tmp_path)
    assert_same_predictions(Tiny(OnnxNetworks(tmp_path, threads=1)), load())
    for own, again in zip(networks, load_onnx(tmp_path), strict=True):
        for name, value in again.state_dict().items():
            torch.testing.assert_close(value, own.state_dict()[name], msg=name)


def test_exported_weights_are_stored_in_half_precision(tmp_path: Path) -> None:
    detector, grounder = initial_networks(None)
    paths = export(detector, grounder, tmp_path)
    parameters = [p for network in (detector, grounder) for p in network.parameters()]
    assert sum(path.stat().st_size for path in paths) < 2.2 * sum(
        p.numel() for p in parameters
    )


def small_dataset(folder: Path) -> Path:
    """One image with a red mug, and a zeppelin that the model does not know; one image without an object."""
    masks = np.zeros((2, 60, 80), bool)
    masks[0, 10:30, 10:40] = masks[1, 20:50, 30:70] = True
    regions = [
        Region(
            id="m",
            name="red mug",
            visible=Mask.from_dense(masks[0] & ~masks[1]),
            amodal=Mask.from_dense(masks[0]),
        ),
        Region(id="z", name="zeppelin", visible=Mask.from_dense(masks[1])),
    ]
    pixels = np.full((60, 80, 3), 200, np.uint8)
    pixels[masks[0]] = (200, 30, 30)
    pixels[masks[1]] = (90, 90, 95)
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    with DatasetWriter(folder, name="own") as writer:
        writer.add_image(
            ImageInfo(id="p", width=80, height=60), regions, buffer.getvalue()
        )
        writer.add_image(ImageInfo(id="q", width=80, height=60), [], buffer.getvalue())
        writer.add_sample(
            Sample(id="s", image_id="p", question="the red mug", targets=(regions[0],))
        )
        writer.add_sample(
            Sample(id="t", image_id="p", question="the zeppelin", targets=(regions[1],))
        )
    return folder


def test_fine_tuning_on_an_own_dataset(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = small_dataset(tmp_path / "own")
    config = TrainingConfig(
        seed=1,
        init="tiny",
        world=WorldData(scenes=0, validation_scenes=1),
        datasets=(str(own),),
        validation=str(own),
        detector_augmented=SHORT,
        grounder=SHORT,
        detected_scenes=4,
        threads=1,
    )
    progress: dict[str, tuple[int, int]] = {}

    def show(label: str, done: int, total: int, note: str) -> None:
        progress[label] = (done, total)

    with reporting(show):
        paths = train(config, tmp_path / "run")
    assert "1 of 2 objects, in 1 categories, are unknown to the model" in caplog.text
    assert "zeppelin (1)" in caplog.text
    assert progress[f"reading {own}"] == (2, 2), "an image without objects counts"
    for stage in ("detector_augmented", "grounder"):
        row = json.loads((tmp_path / "run" / f"{stage}.jsonl").read_text())
        assert {"val_giou", "own_val_giou"} <= set(row)
    assert [path.name for path in paths] == [
        "detector.onnx",
        "roi_head.onnx",
        "mask_head.onnx",
        "grounder.onnx",
    ]
    assert len(predict(load(str(tmp_path / "run")), 0)) == len(predict(load(), 0))
    before = initial_networks("tiny")[1].state_dict()
    after = load_trained(tmp_path / "run")[1].state_dict()
    assert any((before[name] != after[name]).any() for name in before), (
        "the grounder was trained"
    )


def test_a_long_run_from_the_bundled_weights_in_bfloat16(tmp_path: Path) -> None:
    config = TrainingConfig(
        seed=1,
        init="tiny",
        batch_norm=True,
        precision="bf16",
        world=WorldData(scenes=2, questions=0, validation_scenes=1),
        detector_augmented=SHORT,
        detected_scenes=0,
        threads=1,
    )
    train(config, tmp_path)
    row = json.loads((tmp_path / "detector_augmented.jsonl").read_text())
    assert np.isfinite(row["val_giou"])
    detector, _ = load_trained(tmp_path)
    assert any(isinstance(part, torch.nn.BatchNorm2d) for part in detector.modules())
    assert {value.dtype for value in detector.parameters()} == {torch.float32}
    # Two steps with a low learning rate move the outputs little: the weights are still those of the bundled model.
    image = np.asarray(make_scene(41, 0, "val").image, np.float32)
    pixels = image.transpose(2, 0, 1)[None] / 255
    bundled, after = (
        OnnxNetworks(folder, threads=1).detect(pixels).heatmap
        for folder in (BUNDLED_WEIGHTS, tmp_path)
    )
    assert np.abs(bundled - after).max() < 0.2


def test_batch_norm_is_for_runs_that_start_from_folded_weights() -> None:
    with pytest.raises(ValueError, match="batch_norm needs init"):
        TrainingConfig(
            seed=1,
            batch_norm=True,
            world=WorldData(scenes=1),
            detector=SHORT,
            detector_augmented=SHORT,
            grounder=SHORT,
            detected_scenes=1,
        )
    with pytest.raises(ValueError, match="needs a stage that trains the detector"):
        TrainingConfig(
            seed=1,
            init="tiny",
            batch_norm=True,
            world=WorldData(scenes=1),
            grounder=SHORT,
            detected_scenes=1,
        )


def test_the_fine_tuning_config_is_valid_and_other_configs_need_all_stages(
    tmp_path: Path,
) -> None:
    for name in ("finetune.toml", "tiny_longer.toml"):
        assert set(read_config(CONFIGS / name).stages()) == {
            "detector_augmented",
            "grounder",
        }
    path = tmp_path / "config.toml"
    path.write_text(
        (CONFIGS / "finetune.toml").read_text().replace("init = ", "# init = ")
    )
    with pytest.raises(MaskwiseError, match=r"sections \[detector\] are missing"):
        read_config(path)


def test_a_folder_without_networks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MaskwiseError, match=r"lacks detector\.onnx"):
        initial_networks(str(tmp_path))


def test_a_validation_set_needs_questions(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "empty", name="empty"):
        pass
    config = TrainingConfig(
        seed=1,
        init="tiny",
        world=WorldData(scenes=1, questions=0, validation_scenes=0),
        validation=str(tmp_path / "empty"),
        grounder=SHORT,
        detected_scenes=1,
        threads=1,
    )
    with pytest.raises(MaskwiseError, match="has no questions to validate on"):
        train(config, tmp_path / "run")
