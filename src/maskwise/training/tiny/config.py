"""The settings of a training run, read from TOML."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from maskwise.training.config_file import read_toml, to_config

PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
NaturalInt = Annotated[int, msgspec.Meta(ge=0)]

STAGES = ("detector", "detector_augmented", "grounder")


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The optimisation of one stage. The learning rate rises over `warmup_steps` and then falls to a hundredth along a
    cosine that ends at `steps`. Every `checkpoint_every` steps a checkpoint is written and validated. `stop_step` ends
    training early, without changing the cosine.
    """

    steps: PositiveInt
    batch_size: PositiveInt
    learning_rate: Annotated[float, msgspec.Meta(gt=0)]
    warmup_steps: PositiveInt = 200
    weight_decay: Annotated[float, msgspec.Meta(ge=0)] = 0.02
    ema_decay: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.998
    checkpoint_every: PositiveInt = 250
    stop_step: PositiveInt | None = None

    @property
    def last_step(self) -> int:
        """The step after which training ends."""
        return self.steps if self.stop_step is None else min(self.stop_step, self.steps)


class WorldData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rendered scenes: how many, with how many questions each, and how many of the validation split to validate on."""

    scenes: NaturalInt
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
    files; stages may then be left out. `threads`: of torch and rendering.
    """

    model: Literal["tiny"] = "tiny"
    seed: NaturalInt
    world: WorldData
    detector: Schedule | None = None
    detector_augmented: Schedule | None = None
    grounder: Schedule | None = None
    detected_scenes: NaturalInt
    datasets: tuple[str, ...] = ()
    validation: str | None = None
    init: str | None = None
    threads: PositiveInt = 2

    def __post_init__(self) -> None:
        missing = [name for name in STAGES if getattr(self, name) is None]
        if missing and self.init is None:
            raise ValueError(
                f"sections [{'], ['.join(missing)}] are missing; only a run with `init` may leave out stages"
            )
        if len(missing) == len(STAGES):
            raise ValueError(
                f"there is no stage to train; expected at least one of [{'], ['.join(STAGES)}]"
            )

    def stages(self) -> dict[str, Schedule]:
        """The stages of this run, in order."""
        found = {name: getattr(self, name) for name in STAGES}
        return {
            name: schedule for name, schedule in found.items() if schedule is not None
        }


def read_config(path: Path) -> TrainingConfig:
    """A TOML file; MaskwiseError names a field that is missing, unknown or invalid."""
    return to_config(read_toml(path), TrainingConfig, path)
