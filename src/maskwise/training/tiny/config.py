"""The settings of a training run of the bundled model, read from TOML."""

from pathlib import Path
from typing import Literal

import msgspec

from maskwise.training.config_file import (
    NaturalInt,
    PositiveInt,
    read_toml,
    to_config,
)
from maskwise.training.stage_config import StageConfig

STAGES = ("detector", "detector_augmented", "grounder")


class WorldData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rendered scenes: how many, with how many questions each, and how many of the validation split to validate on.

    `crowded_scenes`: scenes of the preset `crowded`, with more objects and more occlusion, in addition.
    """

    scenes: NaturalInt
    crowded_scenes: NaturalInt = 0
    questions: NaturalInt = 12
    validation_scenes: NaturalInt = 40


class TrainingConfig(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A training run.

    `detector`, `detector_augmented`: the detector with its RoI head, on scenes as they are, then with augmentation.
    `grounder`: the grounder, on the detections of `detected_scenes` examples and on the annotations of all.
    `datasets`: dataset folders whose images are added to the world's scenes. `validation`: a dataset folder to validate
    on, beside the world's validation scenes. `init`: start from `tiny`, the bundled weights, or from a folder of ONNX
    files; stages may then be left out. `batch_norm`: put batch normalisation, which those files have folded into the
    convolutions, back before training; for long runs. `precision`: of the networks in training; losses and weights stay
    in float32. `threads`: of torch and rendering.
    """

    model: Literal["tiny"] = "tiny"
    seed: NaturalInt
    world: WorldData
    detector: StageConfig | None = None
    detector_augmented: StageConfig | None = None
    grounder: StageConfig | None = None
    detected_scenes: NaturalInt
    datasets: tuple[str, ...] = ()
    validation: str | None = None
    init: str | None = None
    batch_norm: bool = False
    precision: Literal["fp32", "bf16"] = "fp32"
    threads: PositiveInt = 2

    def __post_init__(self) -> None:
        missing = [name for name in STAGES if getattr(self, name) is None]
        if missing and self.init is None:
            raise ValueError(
                f"sections [{'], ['.join(missing)}] are missing; only a run with `init` may leave out stages"
            )
        if self.batch_norm and self.init is None:
            raise ValueError(
                "batch_norm needs init: networks that are new have batch normalisation"
            )
        if self.batch_norm and {"detector", "detector_augmented"} <= set(missing):
            raise ValueError(
                "batch_norm needs a stage that trains the detector: expected [detector] or [detector_augmented]"
            )
        if len(missing) == len(STAGES):
            raise ValueError(
                f"there is no stage to train; expected at least one of [{'], ['.join(STAGES)}]"
            )

    def stages(self) -> dict[str, StageConfig]:
        """The stages of this run, in order."""
        stages = {}
        for name in STAGES:
            stage: StageConfig | None = getattr(self, name)
            if stage is not None:
                stages[name] = stage
        return stages


def read_config(path: Path) -> TrainingConfig:
    """A TOML file; MaskwiseError names a field that is missing, unknown or invalid."""
    return to_config(read_toml(path), TrainingConfig, path)
