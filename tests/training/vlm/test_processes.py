"""Several processes give the result of one: gloo processes of torchrun, sharded or not, and workers of Ray."""

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("peft", reason="the extra `vlm` is not installed")

from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_multi_gpu_env

from maskwise.models.vlm.build import build_model
from maskwise.training.checkpoints import read_tensors
from maskwise.training.vlm.config import read_config

pytestmark = pytest.mark.vlm

REPOSITORY = Path(__file__).parents[3]
CONFIGS = REPOSITORY / "configs" / "vlm"
ACCELERATE_CONFIGS = REPOSITORY / "configs" / "accelerate"

CONFIG = """
model = "vlm"
seed = 2
checkpoint_every = 1
log_every = 1
threads = 1

[vlm]
vocabulary_scenes = 20
nano = { image_size = 64, width = 64, layers = 2, vocabulary = 512 }

[lora]
rank = 2
dropout = 0.3

[optimization]
learning_rate = 1e-3
batch_size = 4
questions_per_image = 2
warmup_steps = 0

[sources.world]
world = { scenes = 6, preset = "easy", size = 64, questions = 3 }

[sources.text]             # a process whose images are text only has no gradient of the segmenter
text = "turns.jsonl"

[[stages]]
name = "one"
steps = 2
rates = { world = 1, text = 1 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("processes")
    (folder / "config.toml").write_text(CONFIG)
    (folder / "muon.toml").write_text(
        CONFIG.replace("batch_size", "matrix_rate = 0.01\nbatch_size", 1)
    )
    turns = [
        {"question": f"How many is {n} and 1?", "answer": f"It is {n + 1}."}
        for n in range(4)
    ]
    (folder / "turns.jsonl").write_text(
        "".join(json.dumps(turn) + "\n" for turn in turns)
    )
    start(folder, ["-m", "maskwise.cli.main", "train", "config.toml", "--out", "one"])
    return folder


LAUNCHER = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def start(folder: Path, arguments: list[str], **settings: str) -> None:
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "ACCELERATE_USE_CPU": "true",
        **settings,
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr


def assert_same_training(one: Path, other: Path) -> None:
    curves = [
        [
            json.loads(line)["loss"]
            for line in (run / "one.jsonl").read_text().splitlines()
        ]
        for run in (one, other)
    ]
    assert curves[0] == pytest.approx(curves[1], rel=1e-4)
    weights = read_tensors(one / "stages" / "one.safetensors")
    others = read_tensors(other / "stages" / "one.safetensors")
    assert weights.keys() == others.keys()
    for name, value in weights.items():
        torch.testing.assert_close(others[name], value, atol=2e-4, rtol=1e-3, msg=name)


def test_two_processes_equal_one(folder: Path) -> None:
    start(
        folder,
        [*LAUNCHER, "-m", "maskwise.cli.main", "train", "config.toml", "--out", "two"],
    )
    assert_same_training(folder / "one", folder / "two")


def test_two_machines_equal_one_process(folder: Path) -> None:
    """Each machine has a launcher of its own, as with `accelerate launch --num_machines 2`; here both are this one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = ["--master-addr", "127.0.0.1", "--master-port", port]
    machines = []
    for rank in ("0", "1"):
        command = ["-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", rank]
        run = ["-m", "maskwise.cli.main", "train", "config.toml", "--out", "machines"]
        machines.append([*command, "--nproc-per-node", "1", *place, *run])
    with ThreadPoolExecutor(2) as executor:
        list(executor.map(lambda arguments: start(folder, arguments), machines))
    assert_same_training(folder / "one", folder / "machines")


def test_processes_share_the_images_of_a_validation(folder: Path) -> None:
    held_out = """
[validation]
every = 2
world = { scenes = 3, seed = 7, split = "val", preset = "easy", size = 64, questions = 2 }
"""
    (folder / "validated.toml").write_text(CONFIG + held_out)
    command = ["-m", "maskwise.cli.main", "train", "validated.toml", "--out"]
    start(folder, [*command, "validated-one"])
    start(folder, [*LAUNCHER, *command, "validated-two"])
    rows = []
    for name in ("validated-one", "validated-two"):
        lines = (folder / name / "one.jsonl").read_text().splitlines()
        last = json.loads(lines[-1])
        rows.append(
            {key: value for key, value in last.items() if key.startswith("val_")}
        )
    assert "val_failed" in rows[0]
    assert rows[0] == pytest.approx(rows[1], abs=1e-4)


def test_the_file_for_two_machines_is_one_that_accelerate_reads() -> None:
    path = ACCELERATE_CONFIGS / "two-machines.yaml"
    arguments = launch_command_parser().parse_args(
        ["--config_file", str(path), "train.py"]
    )
    arguments, _, _ = _validate_launch_command(arguments)
    assert (arguments.num_machines, arguments.num_processes) == (2, 16)
    assert arguments.main_process_ip
    assert arguments.main_process_port


def test_two_processes_equal_one_with_muon(folder: Path) -> None:
    command = ["-m", "maskwise.cli.main", "train", "muon.toml", "--out"]
    start(folder, [*command, "muon-one"])
    start(folder, [*LAUNCHER, *command, "muon-two"])
    assert_same_training(folder / "muon-one", folder / "muon-two")


def start_sharded(folder: Path, config: str, out: str) -> None:
    settings = fsdp_settings(ACCELERATE_CONFIGS / "fsdp2.yaml")
    settings |= {
        "FSDP_TRANSFORMER_CLS_TO_WRAP": "Qwen3VLTextDecoderLayer",
        "ACCELERATE_MIXED_PRECISION": "no",
        "PYTHONPATH": str(REPOSITORY),
    }
    start(
        folder,
        [*LAUNCHER, "-m", "tests.training.vlm.sharded_run", config, out],
        **settings,
    )


def test_two_sharded_processes_equal_one(folder: Path) -> None:
    start_sharded(folder, "config.toml", "sharded")
    assert_same_training(folder / "one", folder / "sharded")


def test_muon_is_refused_where_matrices_are_split(folder: Path) -> None:
    with pytest.raises(
        AssertionError, match="ConfigError: matrix_rate: Muon needs whole matrices"
    ):
        start_sharded(folder, "muon.toml", "muon-sharded")


def fsdp_settings(path: Path) -> dict[str, str]:
    """The variables by which `accelerate launch --config_file` passes a file to the processes."""
    arguments = launch_command_parser().parse_args(
        ["--config_file", str(path), "train.py"]
    )
    arguments, _, _ = _validate_launch_command(arguments)
    found = prepare_multi_gpu_env(arguments)
    return {
        name: value
        for name, value in found.items()
        if name.startswith(("ACCELERATE_", "FSDP_"))
    }


def test_the_file_for_fsdp_names_layers_of_the_model() -> None:
    settings = fsdp_settings(ACCELERATE_CONFIGS / "fsdp2.yaml")
    assert settings["FSDP_VERSION"] == "2"
    model = build_model(read_config(CONFIGS / "joint-7b.toml").vlm, device="meta")
    classes = {type(module).__name__ for module in model.modules()}
    assert set(settings["FSDP_TRANSFORMER_CLS_TO_WRAP"].split(",")) <= classes
    llava = build_model(read_config(CONFIGS / "mmr-7b.toml").vlm, device="meta")
    assert "LlamaDecoderLayer" in {type(one).__name__ for one in llava.modules()}


def test_two_workers_of_ray_equal_one(folder: Path) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    ray_config = CONFIG + '\n[execution]\nengine = "ray"\nworkers = 2\n'
    (folder / "ray.toml").write_text(ray_config)
    start(folder, ["-m", "maskwise.cli.main", "train", "ray.toml", "--out", "ray"])
    assert_same_training(folder / "one", folder / "ray")
