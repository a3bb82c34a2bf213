"""Training, small enough for a test: the same code and the same stages as the bundled model's run."""

import json
import re
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from torch import nn  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from maskwise.cli.main import app  # noqa: E402
from maskwise.errors import MaskwiseError  # noqa: E402
from maskwise.models.export import export, load_networks, make_eye  # noqa: E402
from maskwise.models.fitting import Schedule, Task, fit, rate_at  # noqa: E402
from maskwise.models.lessons import scene_to_lesson  # noqa: E402
from maskwise.models.seeing import make_targets, seeing_loss  # noqa: E402
from maskwise.models.tiny import CATEGORY_NAMES, SIDE, OnnxNetworks, Tiny  # noqa: E402
from maskwise.models.training import Settings, TorchNetworks, WorldSource, read_settings, train  # noqa: E402
from maskwise.store import Dataset  # noqa: E402
from maskwise.world import scene, write_scenes  # noqa: E402

SHORT = Schedule(steps=2, batch=2, rate=0.001, warmup=1, every=1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run: world scenes and a dataset folder, every stage a few steps long."""
    folder = tmp_path_factory.mktemp("training")
    write_scenes(folder / "more", 2, 11)
    settings = Settings(
        seed=3,
        world=WorldSource(scenes=4, questions=2, validation=2),
        first=SHORT,
        eye=SHORT,
        choice=SHORT,
        views=3,
        datasets=(str(folder / "more"),),
        threads=1,
    )
    train(settings, folder / "run")
    (folder / "settings.json").write_bytes(msgspec.json.encode(settings))
    return folder


def test_a_run_leaves_checkpoints_curves_events_and_networks(run: Path) -> None:
    names = {path.name for path in (run / "run").iterdir()}
    assert names >= {"eye.safetensors", "choice.safetensors", "settings.json", "events", "views"}
    assert names >= {"eye.onnx", "look.onnx", "choice.onnx"}
    curve = [json.loads(line) for line in (run / "run" / "eye.jsonl").read_text().splitlines()]
    assert [row["step"] for row in curve] == [1, 2]
    assert all(0 <= row["val_giou"] <= 1 for row in curve), "validated by the strict protocol"
    assert list((run / "run" / "events" / "eye").glob("events.*"))


def test_a_finished_run_is_not_repeated_and_other_settings_are_refused(run: Path) -> None:
    settings = msgspec.json.decode((run / "settings.json").read_bytes(), type=Settings)
    before = (run / "run" / "eye.safetensors").stat().st_mtime_ns
    train(settings, run / "run")
    assert (run / "run" / "eye.safetensors").stat().st_mtime_ns == before
    with pytest.raises(MaskwiseError, match="seed: 3 then, 4 now"):
        train(msgspec.structs.replace(settings, seed=4), run / "run")


def test_a_run_killed_between_stages_ends_as_if_it_had_not_been(run: Path, tmp_path: Path) -> None:
    """The eye's stages are done; what follows depends on the seed alone, not on how the process came there."""
    settings = msgspec.json.decode((run / "settings.json").read_bytes(), type=Settings)
    shutil.copytree(run / "run", tmp_path / "run")
    for path in (tmp_path / "run").glob("choice*"):
        path.unlink()
    train(settings, tmp_path / "run")
    again, before = (
        (folder / "choice.safetensors").read_bytes() for folder in (tmp_path / "run", run / "run")
    )
    assert again == before


def test_a_damaged_checkpoint_is_named(run: Path, tmp_path: Path) -> None:
    settings = msgspec.json.decode((run / "settings.json").read_bytes(), type=Settings)
    shutil.copytree(run / "run", tmp_path / "run")
    (tmp_path / "run" / "eye.safetensors").write_bytes(b"torn")
    with pytest.raises(MaskwiseError, match=r"eye\.safetensors is not a safetensors file.*delete it"):
        train(settings, tmp_path / "run")


def test_onnx_says_what_torch_says(run: Path) -> None:
    eye, chooser = load_networks(run / "run")
    ours, theirs = TorchNetworks(eye, chooser), OnnxNetworks(run / "run", threads=1)
    image = np.random.default_rng(1).random((1, 3, SIDE, SIDE), np.float32)
    maps, same = ours.see(image), theirs.see(image)
    for a, b in zip(maps, same):
        np.testing.assert_allclose(a, b, atol=1e-3, rtol=1e-3)
    boxes = np.array([[0.1, 0.2, 0.5, 0.6], [-0.1, 0.3, 0.4, 1.1], [0, 0, 1, 1]], np.float32)
    for a, b in zip(ours.look(*maps[:2], boxes), theirs.look(*maps[:2], boxes)):
        np.testing.assert_allclose(a, b, atol=1e-3, rtol=1e-3)
    sight = Tiny(ours).see(Dataset.open(run / "more").open_image(0))
    assert len(Tiny(theirs).answer(sight, ["the mug", "all of it"])) == 2


def test_a_folder_without_networks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MaskwiseError, match=r"has no eye\.safetensors"):
        export(tmp_path, tmp_path)
    (tmp_path / "eye.safetensors").write_bytes(b"no weights")
    with pytest.raises(MaskwiseError, match="is not a safetensors file"):
        export(tmp_path, tmp_path)


def test_the_loss_falls_when_one_image_is_seen_again_and_again() -> None:
    torch.manual_seed(0)
    lessons = [scene_to_lesson(scene(1, 0, "train"))]
    eye = make_eye()
    optimizer = torch.optim.AdamW(eye.parameters(), 2e-3)
    totals = []
    for _ in range(8):
        terms = seeing_loss(eye, make_targets(lessons, np.random.default_rng(0)), len(CATEGORY_NAMES))
        total = sum(terms.values())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        totals.append(total.item())
    assert totals[-1] < 0.8 * totals[0]


class Killed(BaseException):
    """Stands for a kill between two steps."""


def teach_line(*, killed_at: int | None = None) -> Task:
    """To fit y = 3 x + 1 from points that depend on the step alone."""

    def draw(step: int) -> torch.Tensor:
        if step == killed_at:
            raise Killed
        return torch.from_numpy(np.random.default_rng(step).random((8, 1), np.float32))

    def loss(network: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"square": ((network(x) - 3 * x - 1) ** 2).mean()}

    return Task(draw=draw, loss=loss, validate=lambda network: {"weight": float(network.weight)})


def fresh_line() -> nn.Linear:
    torch.manual_seed(5)
    return nn.Linear(1, 1)


def test_an_interrupted_run_ends_where_an_uninterrupted_one_does(tmp_path: Path) -> None:
    schedule = Schedule(steps=60, batch=8, rate=0.1, warmup=5, every=7, average=0.9)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    through = fit("line", fresh_line(), teach_line(), schedule, folder=tmp_path / "a")
    for at in (20, 43):
        with pytest.raises(Killed):
            fit("line", fresh_line(), teach_line(killed_at=at), schedule, folder=tmp_path / "b")
    resumed = fit("line", fresh_line(), teach_line(), schedule, folder=tmp_path / "b")
    assert all((a == b).all() for a, b in zip(through.state_dict().values(), resumed.state_dict().values()))
    steps = [json.loads(line)["step"] for line in (tmp_path / "b" / "line.jsonl").read_text().splitlines()]
    assert steps == [7, 14, 21, 28, 35, 42, 49, 56, 60]


def test_the_rate_rises_then_falls() -> None:
    schedule = Schedule(steps=100, batch=1, rate=1.0, warmup=10)
    rates = [rate_at(step, schedule) for step in range(101)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == 1.0
    assert rates[100] == pytest.approx(0.01)


def test_a_config_is_checked_by_field(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("seed = 1\nsteps = 3\n")
    with pytest.raises(MaskwiseError, match=r"config\.toml"):
        read_settings(path)
    whole = (Path(__file__).parents[2] / "configs" / "tiny.toml").read_text()
    for wrong, said in (("seed = -1", "seed"), ("threads = 0", "threads"), ("views = -3", "views")):
        path.write_text(re.sub(f"^{said} = .*", wrong, whole, flags=re.MULTILINE))
        with pytest.raises(MaskwiseError, match=rf"config\.toml: .*{said}"):
            read_settings(path)
    path.write_bytes(b"seed = \xff")
    with pytest.raises(MaskwiseError, match=r"config\.toml"):
        read_settings(path)


def test_the_run_of_the_bundled_model_is_a_config_that_reads() -> None:
    assert read_settings(Path(__file__).parents[2] / "configs" / "tiny.toml").world.scenes == 15000


def test_what_train_prints_is_for_programs_and_a_file_in_the_way_is_named(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = msgspec.json.decode((run / "settings.json").read_bytes(), type=Settings)
    monkeypatch.setattr("maskwise.models.training.read_settings", lambda _: settings)
    result = CliRunner().invoke(app, ["train", "any.toml", "--out", str(run / "run"), "--json"])
    assert len(json.loads(result.stdout)["files"]) == 3
    result = CliRunner().invoke(app, ["train", "any.toml", "--out", str(run / "settings.json")])
    assert "cannot write to" in f"{result.exception} {result.output}"
