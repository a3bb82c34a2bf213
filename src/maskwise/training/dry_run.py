"""What a training run would do, without doing it: parameters, memory, steps, samples per source, tokens per sample."""

from collections.abc import Mapping

import msgspec
from torch import nn

from maskwise.training.stage_config import StageConfig

FLOAT_BYTES = 4
"""Of a float32 number: weights, gradients and moments are trained in it."""


class ParameterCount(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a module. `trainable`: trained in at least one stage."""

    module: str
    trainable: int
    frozen: int


class StagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A stage: optimizer steps, items (images) per step over all processes, and parameters it trains."""

    name: str
    steps: int
    batch_size: int
    trainable: int


class SourcePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A source of samples: its images and samples (None if it cannot be opened here, or is not known in advance), how
    many samples the run draws, and how often it goes through the images.
    """

    name: str
    images: int | None
    samples: int | None
    drawn: int | None
    epochs: float | None = None


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a run. `memory`: an estimate in bytes per GPU, by what needs it. `hours`: an estimate for one GPU, if
    the model is made for GPUs. `tokens`: percentiles of the tokens
    per sample by their name (`p50`), empty for a model without a tokenizer. `notes`: what the numbers assume.
    """

    model: str
    parameters: tuple[ParameterCount, ...]
    stages: tuple[StagePlan, ...]
    sources: tuple[SourcePlan, ...]
    memory: dict[str, int]
    tokens: dict[str, int] = {}
    hours: float | None = None
    notes: tuple[str, ...] = ()


def plan_small_run(
    model: str,
    networks: Mapping[str, nn.Module],
    stages: Mapping[str, StageConfig],
    *,
    trained: Mapping[str, str],
    images: Mapping[str, int],
    samples: Mapping[str, int | None],
) -> DryRun:
    """The plan of a run of small networks (`tiny`, `completion`), each trained whole.

    networks: by name. stages: in order. trained: the network that a stage trains, by name of the stage. images: the
    number of each source, which are drawn uniformly from all sources together. samples: their questions.
    """
    counts = {}
    for name, network in networks.items():
        counts[name] = sum(parameter.numel() for parameter in network.parameters())
    trained_networks = set(trained.values())
    parameters = []
    for name, count in counts.items():
        trainable = count if name in trained_networks else 0
        parameters.append(
            ParameterCount(module=name, trainable=trainable, frozen=count - trainable)
        )
    plans = []
    draws = 0
    for name, stage in stages.items():
        plans.append(
            StagePlan(
                name=name,
                steps=stage.last_step,
                batch_size=stage.batch_size,
                trainable=counts[trained[name]],
            )
        )
        draws += stage.last_step * stage.batch_size
    all_images = max(1, sum(images.values()))
    sources = []
    for name, number in images.items():
        drawn = draws * number // all_images
        sources.append(
            SourcePlan(name=name, images=number, samples=samples[name], drawn=drawn)
        )
    largest = max(counts[name] for name in trained_networks)
    # Activations are left out: those of such networks are small beside the examples in memory.
    return DryRun(
        model=model,
        parameters=tuple(parameters),
        stages=tuple(plans),
        sources=tuple(sources),
        memory={
            "weights": FLOAT_BYTES * sum(counts.values()),
            "averaged weights": FLOAT_BYTES * largest,
            "gradients": FLOAT_BYTES * largest,
            "optimizer": 2 * FLOAT_BYTES * largest,
        },
    )
