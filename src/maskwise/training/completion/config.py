"""The settings of a training run of the completion network, read from TOML."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from maskwise.builder.occlude import OccludeOptions
from maskwise.training.config_file import (
    NaturalInt,
    PositiveInt,
    read_toml,
    to_config,
)
from maskwise.training.stage_config import StageConfig

Fraction = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class CompletionConfig(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A training run.

    `datasets`: dataset folders with visible masks (`maskwise read coco ...`); every `held_out`-th image of each is used
    for validation only. `encoded_seeds`: seeds of composites that MobileSAM encodes, which takes seconds per image;
    `seeds`: seeds of covered pairs, without its features. `rates`, `per_image`, `min_area`: as in `maskwise build
    occlude`. `threads`: of torch and onnxruntime.
    """

    model: Literal["completion"]
    seed: NaturalInt = 0
    datasets: tuple[str, ...]
    held_out: Annotated[int, msgspec.Meta(ge=2)] = 8
    encoded_seeds: tuple[NaturalInt, ...]
    seeds: tuple[NaturalInt, ...] = ()
    rates: tuple[Fraction, Fraction] = (0.08, 0.65)
    per_image: PositiveInt = 8
    min_area: Fraction = 0.005
    schedule: StageConfig
    threads: PositiveInt = 2

    def occlude_options(self, seed: int) -> OccludeOptions:
        """How composites with a seed are made: many rather than plausible ones, because a network needs many."""
        return OccludeOptions(
            rates=self.rates,
            per_image=self.per_image,
            min_area=self.min_area,
            seed=seed,
            any_context=True,
        )


def read_config(path: Path) -> CompletionConfig:
    """A TOML file; MaskwiseError names a field that is missing, unknown or invalid."""
    return to_config(read_toml(path), CompletionConfig, path)
