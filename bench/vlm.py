"""The vision-language model in small (`nano`, random weights): k questions about one image, and a training step."""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import torch
from PIL import Image

from bench.sizes import QUICK
from bench.timing import fastest
from maskwise.models.vlm.batch import ImageQuestions, collate
from maskwise.models.vlm.build import build_model
from maskwise.models.vlm.predictor import Vlm
from maskwise.training.vlm.nano import nano_config
from maskwise.training.vlm.nano_tokenizer import new_processor
from maskwise.world import make_scene

ASKED = (1, 2) if QUICK else (1, 2, 4, 8, 16)
ANSWER_TOKENS = 16
"""Random weights write until the limit; answers of the world have about this many tokens."""


def sections() -> Iterator[str]:
    """The Markdown sections of this file."""
    yield _further_questions()
    yield _training_step()


def _further_questions() -> str:
    """Processor time of k questions about one image in one call, beside one question."""
    config = nano_config(max_new_tokens=ANSWER_TOKENS)
    processor = new_processor(config)
    model = Vlm(build_model(config, processor).eval(), processor)
    scenes = [
        make_scene(5, index, "test", questions=max(ASKED), preset="easy")
        for index in range(4)
    ]
    work = [
        (
            Image.fromarray(scene.image),
            [question.text for question in scene.questions] * max(ASKED),
        )
        for scene in scenes
    ]

    def ask(count: int) -> list[object]:
        return [model.predict(image, texts[:count]) for image, texts in work]

    times = {
        count: fastest(lambda count=count: ask(count), len(work), seconds=20)
        for count in ASKED
    }
    rows = [
        f"| {count} | {found / 1000:.1f} | {found / times[1]:.2f} | {1 + count / 2:.2f} |"
        for count, found in times.items()
    ]
    return "\n".join(
        [
            "## k questions about one image, `vlm` (nano), processor time (wanted: at most 1 + k/2 times one)",
            "",
            "| k | ms | times one | wanted at most |",
            "|--:|--:|--:|--:|",
            *rows,
            "",
        ]
    )


def _training_step() -> str:
    """A process of its own, so that the memory is that of training alone."""
    command = [sys.executable, "-m", "bench.vlm"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, megabytes, parameters, tokens = map(float, done.stdout.split())
    return "\n".join(
        [
            "## A training step of `vlm` (nano): 8 images of 128 x 128 with 3 questions each, all losses, one thread",
            "",
            "| parameters | text tokens | processor time, s | peak memory, MB |",
            "|--:|--:|--:|--:|",
            f"| {parameters:,.0f} | {tokens:,.0f} | {seconds:.2f} | {megabytes:,.0f} |",
            "",
        ]
    )


def measure_step(steps: int = 4) -> None:
    """Print seconds of processor time per step, peak memory in MB, parameters and tokens of the batch."""
    torch.set_num_threads(1)
    config = nano_config()
    processor = new_processor(config)
    model = build_model(config, processor).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scenes = [
        make_scene(5, index, "train", 128, questions=3, preset="easy")
        for index in range(8)
    ]
    images = [
        ImageQuestions(Image.fromarray(one.image), one.samples, one.regions)
        for one in scenes
    ]
    batch = collate(images, processor, dense=True)
    times = []
    for _ in range(steps):
        before = time.process_time()
        model(batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.process_time() - before)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    parameters = sum(one.numel() for one in model.parameters())
    print(min(times), peak, parameters, int(batch.attention_mask.sum()))


if __name__ == "__main__":
    measure_step()
