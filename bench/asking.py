"""Latency of the bundled model: a first and a further question, beside MobileSAM's encoder on the same machine.

MobileSAM's weights are expected in $MASKWISE_SHARED/weights or ../shared/weights; without them it is left out.
"""

import os
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

from bench.sizes import choose
from bench.timing import Row, Table, fastest, to_markdown
from maskwise.models.tiny import load
from maskwise.world import make_scene

SHARED = Path(os.environ.get("MASKWISE_SHARED", Path(__file__).parents[2] / "shared"))
SCENES = choose(8, 1)


def sections() -> list[str]:
    """All tables as Markdown."""
    return [to_markdown(table) for table in tables()]


def tables() -> list[Table]:
    """A first question against MobileSAM's encoder (goal: a tenth), a further one against the first (goal: a third)."""
    model = load()
    shown = [make_scene(7, index, "test") for index in range(SCENES)]
    images = [Image.fromarray(one.image) for one in shown]
    questions = [[one.questions[0].text] for one in shown]
    encoded = [model.encode(image) for image in images]
    first = fastest(
        lambda: [model.predict(*pair) for pair in zip(images, questions)], SCENES
    )
    further = fastest(
        lambda: [image.answer(asked) for image, asked in zip(encoded, questions)],
        SCENES,
    )
    rows = (
        [Row("MobileSAM, image encoder alone", _mobile_sam())]
        if _weights().exists()
        else []
    )
    return [
        Table(
            "A first question about an image, bundled model (processor time, all threads)",
            [*rows, Row("maskwise tiny, image and question", first)],
            {"MobileSAM, image encoder alone": 10},
        ),
        Table(
            "A further question about an encoded image (processor time, all threads)",
            [
                Row("maskwise tiny, first question", first),
                Row("maskwise tiny, further question", further),
            ],
            {"maskwise tiny, first question": 3},
        ),
    ]


def _weights() -> Path:
    return SHARED / "weights" / "mobile_sam_encoder.onnx"


def _mobile_sam() -> float:
    session = onnxruntime.InferenceSession(
        _weights(), providers=["CPUExecutionProvider"]
    )
    image = {session.get_inputs()[0].name: np.zeros((1, 3, 1024, 1024), np.float32)}
    return fastest(lambda: session.run(None, image), 1, repeats=3, seconds=20)
