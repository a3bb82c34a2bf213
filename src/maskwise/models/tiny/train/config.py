"""The settings of a training run, read from TOML."""

from pathlib import Path
from typing import Annotated

import msgspec

from maskwise.errors import MaskwiseError

PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
NaturalInt = Annotated[int, msgspec.Meta(ge=0)]


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


class TrainingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A training run. `detector`, `detector_augmented`: the detector with its RoI head, on scenes as they are, then
    with augmentation. `grounder`: the grounder, on the detections of `detected_scenes` examples and on the annotations
    of all. `datasets`: dataset folders whose images are added to the world's scenes. `threads`: of torch and rendering.
    """

    seed: NaturalInt
    world: WorldData
    detector: Schedule
    detector_augmented: Schedule
    grounder: Schedule
    detected_scenes: NaturalInt
    datasets: tuple[str, ...] = ()
    threads: PositiveInt = 2


def read_config(path: Path) -> TrainingConfig:
    """A TOML file; MaskwiseError names a field that is missing or invalid."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=TrainingConfig)
    except (msgspec.MsgspecError, UnicodeError, OSError) as error:
        raise MaskwiseError(f"{path}: {error}") from None
