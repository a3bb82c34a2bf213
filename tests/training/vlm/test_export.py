"""Exported models: one folder, merged or with adapters, from a run, a folder or a hub."""

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("peft", reason="the extra `vlm` is not installed")

from PIL import Image
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import MaskwiseError, ModelError
from maskwise.harness.registry import make_predictor
from maskwise.models.vlm.predictor import Vlm
from maskwise.training.checkpoints import read_tensors
from maskwise.training.vlm.config import Stage
from maskwise.training.vlm.export import export_adapters, load_run
from maskwise.training.vlm.lora import LoraSettings
from maskwise.training.vlm.pipeline import train
from maskwise.world import make_scene
from tests.training.vlm.small_runs import small_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with adapters."""
    folder = tmp_path_factory.mktemp("export") / "run"
    config = small_run(
        lora=LoraSettings(rank=2),
        stages=(Stage(name="one", steps=3, learning_rate=0.01),),
    )
    train(config, folder)
    return folder


SCENE = make_scene(5, 0, "val", 64, preset="easy")
IMAGE = Image.fromarray(SCENE.image)
QUESTIONS = [question.text for question in SCENE.questions]


def mask_logits(predictor: Vlm) -> torch.Tensor:
    """Mask logits and token logits of teacher-forced samples: what merging may change a little."""
    from maskwise.models.vlm.batch import ImageQuestions, collate  # noqa: PLC0415

    batch = collate([ImageQuestions(IMAGE, SCENE.samples)], predictor.processor)
    with torch.no_grad():
        output = predictor.model(batch)
    return torch.cat([output.masks.visible.flatten(), output.masks.amodal.flatten()])


def test_export_of_a_run_is_one_folder_with_the_same_predictions(
    run: Path, tmp_path: Path
) -> None:
    result = CliRunner().invoke(
        app, ["export", str(run), "--out", str(tmp_path / "model")]
    )
    assert result.exit_code == 0, result.output
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert names == {
        "vlm_config.json",
        "heads.safetensors",
        "vision_language",
        "segmenter",
    }
    exported = make_predictor("vlm", checkpoint=str(tmp_path / "model"))
    trained = make_predictor("vlm", checkpoint=str(run))
    assert exported.predict(IMAGE, QUESTIONS) == trained.predict(IMAGE, QUESTIONS)
    assert torch.equal(mask_logits(exported), mask_logits(trained))
    assert exported.weights_hash == trained.weights_hash
    assert exported.config == trained.config, (
        "the place of a folder is no part of the model"
    )


def test_adapters_beside_the_weights_equal_merged_ones(
    run: Path, tmp_path: Path
) -> None:
    files = export_adapters(run, tmp_path)
    assert "adapter_model.safetensors" in {path.name for path in files}
    unmerged = make_predictor("vlm", checkpoint=str(tmp_path))
    merged = make_predictor("vlm", checkpoint=str(run))
    names = [name for name, _ in unmerged.model.named_parameters()]
    assert any("lora_" in name for name in names)
    torch.testing.assert_close(
        mask_logits(unmerged), mask_logits(merged), atol=1e-4, rtol=1e-4
    )
    model, processor, adapted = load_run(run)
    assert adapted is not None
    assert torch.equal(
        mask_logits(unmerged), mask_logits(Vlm(model.eval(), processor))
    ), "bit for bit"


def test_incomplete_folders_are_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"no model: expected the files vlm_config\.json and heads"
    ):
        make_predictor("vlm", checkpoint=str(tmp_path))
    (tmp_path / "config.json").write_bytes((run / "config.json").read_bytes())
    with pytest.raises(
        MaskwiseError,
        match=r"has no stages/one\.safetensors; run `maskwise train` to the end first",
    ):
        load_run(tmp_path)


# -- a server in place of the hub

COMMIT = "0" * 40


class HubHandler(http.server.SimpleHTTPRequestHandler):
    """Serves the folder NAME as the repository OWNER/NAME of a hub: the files, and what there is to say about it."""

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        parts = self.path.split("?")[0].strip("/").split("/")
        content = None
        if parts[:2] == ["api", "models"] and len(parts) == 4:
            files = [
                {"rfilename": path.name}
                for path in (Path(self.directory) / parts[3]).iterdir()
            ]
            name = "/".join(parts[2:])
            content = json.dumps(
                {"id": name, "modelId": name, "sha": COMMIT, "siblings": files}
            ).encode()
        elif len(parts) == 5 and parts[2] == "resolve":
            path = Path(self.directory) / parts[1] / parts[4]
            content = path.read_bytes() if path.is_file() else None
        self.send_response(404 if content is None else 200)
        if content is None:
            self.send_header("X-Error-Code", "EntryNotFound")
        else:
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        if body and content:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture
def hub(run: Path) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(HubHandler, directory=str(run))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


HUB_CONFIG = """
model = "vlm"
threads = 1
vlm.image_size = 64
vlm.vision_language.name = "maker/vision_language"
vlm.segmenter.name = "maker/segmenter"
lora = { rank = 2 }
optimization = { learning_rate = 1e-4, batch_size = 1, warmup_steps = 0 }
sources = { world = { world = { scenes = 2, size = 64, questions = 2 } } }
stages = [{ name = "one", steps = 1 }]
"""


def start(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "config.toml").write_text(HUB_CONFIG)
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "maskwise.cli.main",
            "train",
            "config.toml",
            "--out",
            "run",
        ],
        cwd=folder,
        env=os.environ
        | {"OMP_NUM_THREADS": "1", "HF_HOME": str(folder / "cache"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.vlm
def test_a_run_starts_from_models_of_a_hub(hub: str, tmp_path: Path) -> None:
    done = start(tmp_path, HF_ENDPOINT=hub)
    assert not done.returncode, done.stderr
    stored = [
        name
        for name in read_tensors(tmp_path / "run" / "stages" / "one.safetensors")
        if "vision_language" in name
    ]
    assert all("lora_" in name or "trainable_tokens" in name for name in stored), (
        "no weight of the hub is copied"
    )
    assert make_predictor("vlm", checkpoint=str(tmp_path / "run")).predict(
        IMAGE, QUESTIONS[:1]
    )


@pytest.mark.vlm
@pytest.mark.parametrize(
    "environment",
    [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}],
    ids=str,
)
def test_without_a_connection_the_message_says_what_to_run(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = start(tmp_path, **environment)
    assert done.returncode == 2
    assert "hf download maker/vision_language" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Retry" not in done.stderr, (
        "the client of the hub does not repeat its requests"
    )
