"""A judge with known faults behind a server: killed and continued, measured and corrected."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from maskwise.judging import judge
from maskwise.judging.calibration import calibrate
from maskwise.judging.language_model import JudgeModel
from maskwise.runs import load_run
from maskwise.runs.judgments import read_judgments
from maskwise.writers import SendLimits
from maskwise.writers.openai_client import OpenAIClient
from tests.judging.cases import make_dataset, make_run
from tests.judging.test_calibration import write
from tests.judging.test_language_model import material, verdict
from tests.writers.providers import Provider, Reply


@pytest.mark.posix
def test_a_killed_judge_continues(run_folder: Path, provider: Provider) -> None:
    provider.write = lambda given: {**verdict(), "delay": 0.1}
    address = ["--base-url", f"{provider.url}/v1", "--concurrency", "1"]
    command = ["-m", "maskwise", "judge", str(run_folder), "--judge", "openai/x"]
    environment = {**os.environ, "OPENAI_API_KEY": "k"}
    process = subprocess.Popen(
        [sys.executable, *command, *address],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while len(provider.calls) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not read_judgments(load_run(run_folder))
    subprocess.run(
        [sys.executable, *command, *address],
        env=environment,
        check=True,
        capture_output=True,
    )
    (judgments,) = read_judgments(load_run(run_folder))
    assert judgments.count("model") == 12
    # What was in flight is sent again, and nothing else.
    assert 12 <= len(provider.calls) <= 13


def test_a_generous_judge_is_corrected(tmp_path: Path, provider: Provider) -> None:
    """Of 160 doubtful answers 60 % are right. The judge accepts them, and half of the wrong ones."""
    images = 40
    dataset = make_dataset(tmp_path / "cups", images)
    answers = tuple(f"Something for tea, number {item}." for item in range(4))
    folder = make_run(tmp_path / "mine", dataset, answers, images=images)
    chance = random.Random(5)
    samples = [f"s{image}-{item}" for image in range(images) for item in range(4)]
    truth = {sample: chance.random() < 0.6 for sample in samples}
    order = iter(samples)

    def accept_too_much(given: dict[str, Any]) -> Reply:
        assert material(given)["question"] == "What can I drink from?"
        right = truth[next(order)]
        return verdict(correct=right or chance.random() < 0.5)

    provider.write = accept_too_much
    client = OpenAIClient(model="generous", base_url=f"{provider.url}/v1")
    # One at a time, so that the server knows which question it is asked.
    model = JudgeModel(client, None, SendLimits(concurrency=1))
    judged = judge(folder, model)
    client.close()
    lines = [
        {"run": "mine", "sample": name, "reviewer": "ann", "correct": truth[name]}
        for name in chance.sample(samples, 80)
    ]
    path = write(tmp_path / "v.jsonl", lines)
    calibration = calibrate(folder, path, "openai/generous").calibration
    assert calibration is not None
    correct = calibration.criteria["correct"]
    share = sum(truth.values()) / len(truth)
    raw = judged.shares["correct"]
    assert raw.low is not None
    assert raw.low > share, "the judge alone is sure of a wrong share"
    low = correct.corrected.low
    high = correct.corrected.high
    assert low is not None
    assert high is not None
    assert low < share < high
    assert correct.confusion[0][1] == 0, "it refuses nothing that people accept"
