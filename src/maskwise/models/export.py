"""Trained networks as ONNX files, which run without torch."""

import warnings
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from maskwise.errors import MaskwiseError
from maskwise.models.checkpoints import load_weights
from maskwise.models.choice import Chooser
from maskwise.models.descriptions import MEASURES, PAIR
from maskwise.models.perception import COARSE, FINE, Eye, Look, SecondLook
from maskwise.models.tiny import KINDS, MOST_PARTS, SIDE
from maskwise.models.words import MOST_TRIPLES

OPSET = 17
SINGLE = sum(KINDS) + MEASURES + 2 * MOST_PARTS
"""Numbers that describe an object."""


def make_eye() -> Eye:
    """An eye for the world."""
    return Eye(*KINDS, MOST_PARTS)


def make_chooser() -> Chooser:
    """A choice among the world's things."""
    return Chooser(SINGLE, KINDS, MOST_PARTS)


class _FirstStep(nn.Module):
    """What running needs of the first step: no surface, heat in 0..1."""

    def __init__(self, eye: Eye) -> None:
        super().__init__()
        self.eye = eye

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        maps = self.eye.see(image)
        return maps.fine, maps.coarse, maps.heat.sigmoid(), maps.box


class _SecondStep(nn.Module):
    """The second step for the boxes of one image."""

    def __init__(self, look: SecondLook) -> None:
        super().__init__()
        self.look = look

    def forward(self, fine: Tensor, coarse: Tensor, boxes: Tensor) -> Look:
        return self.look(fine, coarse, [boxes])


class _ThirdStep(nn.Module):
    """The choice for several questions about one image."""

    def __init__(self, chooser: Chooser) -> None:
        super().__init__()
        self.chooser = chooser

    def forward(self, words: Tensor, single: Tensor, pair: Tensor) -> Tensor:
        count = words.shape[0]
        present = torch.ones_like(single[:, :, 0]).expand(count, -1)
        meant: Tensor = self.chooser(
            words, single.expand(count, -1, -1), pair.expand(count, -1, -1, -1), present
        )
        return meant


def load_networks(folder: Path) -> tuple[Eye, Chooser]:
    """From eye.safetensors and choice.safetensors of a training run."""
    eye, chooser = make_eye(), make_chooser()
    for name, network in (("eye", eye), ("choice", chooser)):
        path = folder / f"{name}.safetensors"
        if not path.exists():
            raise MaskwiseError(f"{folder} has no {path.name}: give the folder that `maskwise train` wrote")
        load_weights(network, path)
    return eye.eval(), chooser.eval()


def export(folder: Path, out: Path) -> list[Path]:
    """Write eye.onnx, look.onnx and choice.onnx from the checkpoints of a training run."""
    eye, chooser = load_networks(folder)
    out.mkdir(parents=True, exist_ok=True)
    image = torch.zeros(1, 3, SIDE, SIDE)
    fine, coarse = torch.zeros(1, FINE, SIDE // 2, SIDE // 2), torch.zeros(1, COARSE, SIDE // 4, SIDE // 4)
    boxes = torch.tensor([[0.1, 0.1, 0.5, 0.6], [0.2, 0.3, 0.9, 0.9]])
    words = torch.ones(2, 5, 1 + MOST_TRIPLES, dtype=torch.long)
    single, pair = torch.zeros(1, 3, SINGLE), torch.zeros(1, 3, 3, PAIR)
    steps: dict[str, Step] = {
        "eye": Step(_FirstStep(eye), {"image": image}, ("fine", "coarse", "heat", "box"), {}),
        "look": Step(
            _SecondStep(eye.look),
            {"fine": fine, "coarse": coarse, "boxes": boxes},
            ("masks", "category", "colour", "material"),
            {name: {0: "objects"} for name in ("boxes", "masks", "category", "colour", "material")},
        ),
        "choice": Step(
            _ThirdStep(chooser),
            {"words": words, "single": single, "pair": pair},
            ("meant",),
            {
                "words": {0: "questions", 1: "words"},
                "single": {1: "objects"},
                "pair": {1: "objects", 2: "objects"},
                "meant": {0: "questions", 1: "objects"},
            },
        ),
    }
    return [_write(step, out / f"{name}.onnx") for name, step in steps.items()]


class Step(NamedTuple):
    """A network, examples of its inputs by name, the names of its outputs, and which of their axes vary."""

    network: nn.Module
    inputs: dict[str, Tensor]
    outputs: tuple[str, ...]
    varies: dict[str, dict[int, str]]


def _write(step: Step, path: Path) -> Path:
    """The exporter that traces is used: its files are small and keep the names given here. Its warnings are about its
    own age and about sizes that are meant to be fixed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            step.network.eval(),
            tuple(step.inputs.values()),
            str(path),
            input_names=list(step.inputs),
            output_names=list(step.outputs),
            dynamic_axes=step.varies,
            opset_version=OPSET,
            dynamo=False,
        )
    return path
