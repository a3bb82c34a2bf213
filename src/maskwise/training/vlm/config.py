"""The settings of a training run of the vision-language model, read from TOML."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from maskwise.engines import EngineOptions
from maskwise.errors import UnknownNameError
from maskwise.models.vlm.config import LossWeights, VlmConfig
from maskwise.models.vlm.folder import read_folder_config
from maskwise.training.config_file import (
    NaturalInt,
    PositiveInt,
    Share,
    read_toml,
    to_config,
)
from maskwise.training.schedule import Decay, Schedule
from maskwise.training.vlm.augment import Augmentation
from maskwise.training.vlm.lora import LoraSettings
from maskwise.training.vlm.nano import nano_config
from maskwise.world.catalogue import PRESETS

Rate = Annotated[float, msgspec.Meta(gt=0)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections: frozen, unknown keys refused."""


class WorldScenes(Section, frozen=True, kw_only=True):
    """Scenes of the world, rendered when they are needed. `paraphrased`: the fraction of their questions that is put
    into the words of the mask-type corpus (docs/results/intent.md). `images`: false leaves the images out, so that only
    texts train. `held_out_colors`: false leaves out questions that name a category in a color that only the test split
    shows; in the other splits nothing is ever there, which teaches that the pair does not exist. `exchanged_colors`:
    the fraction of scenes whose color words are replaced by those of a random permutation, so that no pair of category
    and color is rarer than others; only without images.
    """

    scenes: PositiveInt
    seed: NaturalInt = 1
    split: Literal["train", "val", "test"] = "train"
    preset: str = "default"
    size: Annotated[int, msgspec.Meta(ge=32)] = 160
    questions: PositiveInt = 6
    paraphrased: Share = 0.0
    images: bool = True
    held_out_colors: bool = True
    exchanged_colors: Share = 0.0

    def __post_init__(self) -> None:
        if self.exchanged_colors and self.images:
            raise ValueError(
                "`exchanged_colors` needs `images = false`: the words would not be those of the image"
            )
        if self.preset not in PRESETS:
            raise ValueError(str(UnknownNameError("preset", self.preset, PRESETS)))


class SourceConfig(Section, frozen=True, kw_only=True):
    """Where samples come from: a `dataset` folder (with the folder of its `images`, if they were moved), scenes of the
    `world`, or `text`, questions and answers without masks, so that the model does not forget how to answer: JSON
    lines ({"question": ..., "answer": ...}), or a JSON file in the format of LLaVA, whose images are in the folder
    `images`; without that folder its entries with an image are left out. `questions`: "categories" asks for each
    category of the regions of a dataset's images in place of its own questions, as LISA does for semantic
    segmentation. `stream`: a dataset of the Hugging Face hub, "hf:OWNER/NAME", of which `split` is read while training
    goes on and not stored; it needs `expected_images`, the rows of the split. `expected_images` is otherwise the size
    of a source that is not on this machine, for a dry run.
    """

    dataset: str | None = None
    images: str | None = None
    world: WorldScenes | None = None
    text: str | None = None
    stream: Annotated[str, msgspec.Meta(pattern="^hf:.")] | None = None
    split: str = "train"
    questions: Literal["own", "categories"] = "own"
    expected_images: PositiveInt | None = None

    def __post_init__(self) -> None:
        kinds = (self.dataset, self.world, self.text, self.stream)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError(
                "a source needs exactly one of `dataset`, `world`, `text` and `stream`"
            )
        if self.stream is not None and self.expected_images is None:
            raise ValueError(
                "`stream` needs `expected_images`, the number of rows of the split, which the page of the dataset says"
            )
        if self.questions == "categories" and self.dataset is None:
            raise ValueError('questions = "categories" needs a `dataset`')


class Optimization(Section, frozen=True, kw_only=True):
    """AdamW and its schedule. `batch_size`: images per optimizer step, over all processes; `micro_batch_size`: images
    per forward of a process. What does not fit into one forward is accumulated, so the number of processes does not
    change the result. `final_factor`: the learning rate ends at this share of its maximum. `matrix_rate`: the learning
    rate of weight matrices by Muon, for models that start from random weights; None: AdamW trains them as well.
    `group_by_length`: images whose questions have about the same length share a step, so that less is padding and
    processes wait less for each other.
    """

    learning_rate: Rate
    matrix_rate: Rate | None = None
    batch_size: PositiveInt
    micro_batch_size: PositiveInt = 1
    questions_per_image: NaturalInt = 3
    group_by_length: bool = False
    schedule: Decay = "linear"
    warmup_steps: NaturalInt = 100
    final_factor: Share = 0.0
    betas: tuple[Share, Share] = (0.9, 0.95)
    weight_decay: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    clip_norm: Rate = 1.0

    def __post_init__(self) -> None:
        if self.batch_size % self.micro_batch_size:
            raise ValueError(
                f"batch_size {self.batch_size} is not a multiple of micro_batch_size {self.micro_batch_size}"
            )


REWARD_WEIGHTS = {
    "strict": 1.0,
    "no_target": 0.5,
    "mask_type": 0.5,
    "target_count": 0.25,
    "answer": 0.25,
    "format": 0.25,
}
"""The rewards of GRPO and their default weights: the masks count most, then what decides whether any counts."""


class GrpoConfig(Section, frozen=True, kw_only=True):
    """Reinforcement learning by GRPO: several answers to a question are sampled, and those that are rewarded more than
    the others become likelier. `rewards`: their weights (`maskwise.training.vlm.rewards`). `generations`: answers per
    question. `temperature`: of sampling. `questions_per_step`: questions per optimizer step and process.
    `max_new_tokens`: of a sampled answer; by default that of the model. `beta`: weight of the KL divergence from the
    model at the start of the stage; with 0 clipping alone holds answers. `scale_rewards`: what the difference of a
    reward to the mean of its question is divided by: the standard deviation of the answers to the question ("group"),
    that of all answers of the step ("batch"), or nothing ("none"), so that questions whose answers hardly differ count
    less.
    """

    rewards: dict[str, Annotated[float, msgspec.Meta(ge=0)]] = msgspec.field(
        default_factory=REWARD_WEIGHTS.copy
    )
    generations: Annotated[int, msgspec.Meta(ge=2)] = 8
    temperature: Rate = 1.0
    questions_per_step: PositiveInt = 4
    max_new_tokens: PositiveInt | None = None
    beta: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    scale_rewards: Literal["group", "batch", "none"] = "group"

    def __post_init__(self) -> None:
        unknown = set(self.rewards) - set(REWARD_WEIGHTS)
        if unknown or not any(self.rewards.values()):
            raise ValueError(
                f"rewards: expected weights of {', '.join(REWARD_WEIGHTS)}, not all of them 0"
                + (f"; unknown: {', '.join(sorted(unknown))}" if unknown else "")
            )


class Stage(Section, frozen=True, kw_only=True):
    """A part of the run, with an optimizer and a schedule of its own. `grpo`: the stage is reinforcement learning, of
    the language model alone; without it, it is supervised.

    How long it is and what it draws: either `steps` with `rates`, how often each source is drawn, in proportion (by
    default all equally); or `epochs`, how often each source is gone through, from which both follow. `freeze`:
    regular expressions; parameters whose name contains a match are not trained. `losses`: weights that differ from
    those of the model. `dense`: all regions of an image are supervised by their names. `rate_factors`: regular
    expressions and factors of the learning rate. The other fields replace those of [optimization].
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_-]*$")]
    grpo: GrpoConfig | None = None
    steps: PositiveInt | None = None
    epochs: dict[str, Rate] = {}
    rates: dict[str, Rate] = {}
    freeze: tuple[str, ...] = ()
    losses: dict[str, Annotated[float, msgspec.Meta(ge=0)]] = {}
    dense: bool = False
    rate_factors: dict[str, Rate] = {}
    learning_rate: Rate | None = None
    matrix_rate: Rate | None = None
    warmup_steps: NaturalInt | None = None
    batch_size: PositiveInt | None = None
    questions_per_image: NaturalInt | None = None

    def __post_init__(self) -> None:
        if (self.steps is None) != bool(self.epochs) or (self.epochs and self.rates):
            raise ValueError(
                f"stage {self.name!r} needs either `steps`, with `rates` or without, or `epochs`"
            )
        for pattern in (*self.freeze, *self.rate_factors):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(
                    f"stage {self.name!r}: {pattern!r} is not a regular expression: {error}"
                ) from None
        unknown = set(self.losses) - set(LossWeights.__struct_fields__)
        if unknown:
            raise ValueError(
                f"stage {self.name!r}: unknown losses {', '.join(sorted(unknown))}; "
                f"known: {', '.join(LossWeights.__struct_fields__)}"
            )


STAGE_OPTIMIZATION = (
    "learning_rate",
    "matrix_rate",
    "warmup_steps",
    "batch_size",
    "questions_per_image",
)
"""Fields of a stage that replace those of [optimization]."""


class ValidationConfig(Section, frozen=True, kw_only=True):
    """Held-out samples, scored by the strict protocol every `every` steps: one or several dataset folders, or scenes of
    the world. `limit`: that many images of each.
    """

    every: PositiveInt
    dataset: str | tuple[str, ...] | None = None
    images: str | None = None
    world: WorldScenes | None = None
    limit: PositiveInt | None = None

    def __post_init__(self) -> None:
        if (self.dataset is None) == (self.world is None):
            raise ValueError("validation needs either `dataset` or `world`")
        names = [Path(folder).name for folder in self.dataset_folders()]
        if len(set(names)) < len(names):
            raise ValueError(
                f"two datasets of [validation] have the same name: {', '.join(names)}"
            )

    def dataset_folders(self) -> tuple[str, ...]:
        """The dataset folders, none for scenes of the world."""
        if self.dataset is None:
            return ()
        return (self.dataset,) if isinstance(self.dataset, str) else self.dataset


class Execution(EngineOptions, frozen=True, kw_only=True):
    """Where the run is executed: the options of all engines, and `restarts`.

    `engine`: `local` is this process, or those that accelerate or torchrun started;
    `ray` is workers of Ray Train, one by default. `gpus_per_worker`: 0 trains on CPUs.
    `restarts`: how often Ray starts the workers again after a failure; they continue
    from the last checkpoint.
    """

    restarts: NaturalInt = 0


class VlmTrainingConfig(Section, frozen=True, kw_only=True):
    """A training run. `init`: a model folder (`maskwise export`) or a finished run whose weights it starts from. Its
    model is used, with the fields that [vlm] replaces; an optional part that [vlm] adds starts from random weights.
    `checkpoint_every`: steps between checkpoints, of which the last `keep_checkpoints` are kept.
    `max_skipped`: training stops if a larger share of the drawn samples cannot be used (damaged files, texts that
    are too long). `log_every`: steps between lines of the training curve. `loader_workers`: threads that prepare
    batches ahead. `threads`: of torch, per process; 0 leaves its default. `attention`: how the vision-language model
    computes it; flash attention has to be installed and needs bf16 on a GPU. `compile`: layers of the language model
    are compiled by torch.
    """

    model: Literal["vlm"]
    vlm: VlmConfig
    optimization: Optimization
    sources: dict[str, SourceConfig]
    stages: tuple[Stage, ...]
    init: str | None = None
    seed: NaturalInt = 1
    lora: LoraSettings | None = None
    augmentation: Augmentation = Augmentation()
    validation: ValidationConfig | None = None
    execution: Execution = Execution()
    precision: Literal["fp32", "bf16"] = "fp32"
    attention: Literal["sdpa", "flash_attention_2", "flash_attention_3"] = "sdpa"
    compile: bool = False
    gradient_checkpointing: bool = False
    loader_workers: PositiveInt = 1
    checkpoint_every: PositiveInt = 250
    keep_checkpoints: PositiveInt = 2
    max_skipped: Share = 0.01
    log_every: PositiveInt = 10
    threads: NaturalInt = 0

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if not names or not self.sources:
            raise ValueError(
                "a run needs at least one [sources.NAME] and one [[stages]]"
            )
        if len(set(names)) < len(names):
            raise ValueError(f"two stages have the same name: {', '.join(names)}")
        for stage in self.stages:
            if unknown := {*stage.rates, *stage.epochs} - set(self.sources):
                raise ValueError(
                    f"stage {stage.name!r} names unknown sources {', '.join(sorted(unknown))}; "
                    f"known: {', '.join(self.sources)}"
                )
            self.optimization_of(stage)

    def optimization_of(self, stage: Stage) -> Optimization:
        """The optimization of a stage: its own fields, and [optimization] for the others."""
        own = {name: getattr(stage, name) for name in STAGE_OPTIMIZATION}
        given = {name: value for name, value in own.items() if value is not None}
        return msgspec.structs.replace(self.optimization, **given)

    def with_steps(self, images: Mapping[str, int]) -> "VlmTrainingConfig":
        """The config with steps and rates in place of epochs. images: how many each source has."""
        stages = []
        for stage in self.stages:
            if not stage.epochs:
                stages.append(stage)
                continue
            drawn = {}
            for name, epochs in stage.epochs.items():
                drawn[name] = epochs * images[name]
            batch_size = self.optimization_of(stage).batch_size
            steps = math.ceil(sum(drawn.values()) / batch_size)
            stages.append(
                msgspec.structs.replace(stage, steps=steps, rates=drawn, epochs={})
            )
        return msgspec.structs.replace(self, stages=tuple(stages))

    def schedule_of(self, stage: Stage) -> Schedule:
        """The steps of a stage, which `with_steps` has counted."""
        optimization = self.optimization_of(stage)
        assert stage.steps is not None
        return Schedule(
            steps=stage.steps,
            last_step=stage.steps,
            warmup_steps=optimization.warmup_steps,
            decay=optimization.schedule,
            final_factor=optimization.final_factor,
            log_every=self.log_every,
            validate_every=self.validation.every if self.validation else None,
            checkpoint_every=self.checkpoint_every,
            keep_checkpoints=self.keep_checkpoints,
            clip_norm=optimization.clip_norm,
        )

    def losses_of(self, stage: Stage) -> LossWeights:
        """The loss weights of a stage: its own, and those of the model for the others."""
        return msgspec.structs.replace(self.vlm.losses, **stage.losses)

    def rates_of(self, stage: Stage) -> dict[str, float]:
        """How often each source is drawn in a stage, in proportion."""
        return dict(stage.rates) or dict.fromkeys(self.sources, 1.0)


class NanoSize(Section, frozen=True, kw_only=True):
    """The size of the model in small (`maskwise.training.vlm.nano`)."""

    image_size: PositiveInt = 128
    width: PositiveInt = 128
    layers: PositiveInt = 4
    vocabulary: PositiveInt = 1536


def read_config(path: Path) -> VlmTrainingConfig:
    """A TOML file; MaskwiseError names a field that is missing, unknown or invalid.

    [vlm.nano] stands for the model in small: its fields are those of NanoSize, and those of [vlm] replace its defaults.
    With `init` the model is that of the folder, unless [vlm] has a `vision_language` of its own; fields of [vlm]
    replace those of the folder.
    """
    content = read_toml(path)
    given = content.get("vlm", {})
    init = content.get("init")
    is_whole = isinstance(given, dict) and {"vision_language", "nano"} & set(given)
    if isinstance(init, str) and isinstance(given, dict) and not is_whole:
        folder = msgspec.to_builtins(read_folder_config(Path(init)))
        content["vlm"] = _replace_fields(folder, given)
    if isinstance(given, dict) and "nano" in given:
        size = to_config(given.pop("nano"), NanoSize, path, table="vlm.nano")
        small = msgspec.to_builtins(nano_config(**msgspec.structs.asdict(size)))
        content["vlm"] = _replace_fields(small, given)
    return to_config(content, VlmTrainingConfig, path)


def _replace_fields(model: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a model with those of [vlm] in their place, and each loss likewise."""
    losses = model["losses"] | given.get("losses", {})
    return model | given | {"losses": losses}
