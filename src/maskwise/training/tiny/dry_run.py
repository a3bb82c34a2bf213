"""What a training run of the bundled model would do."""

from torch import nn

from maskwise.training.config_file import open_dataset
from maskwise.training.dry_run import DryRun, ParameterCount, SourcePlan, StagePlan
from maskwise.training.tiny.config import TrainingConfig
from maskwise.training.tiny.grounder import Grounder
from maskwise.training.tiny.networks import TwoStageDetector
from maskwise.training.tiny.validation import open_validation

BYTES = 4
"""Of a float32 number."""


def dry_run(config: TrainingConfig) -> DryRun:
    """Parameters, stages and data of a run. Memory is without activations, which are small beside the examples."""
    stages = config.stages()
    if config.validation is not None:
        open_validation(config.validation)
    detector = _count(TwoStageDetector())
    grounder = _count(Grounder())
    sizes = {name: grounder if name == "grounder" else detector for name in stages}
    counts = (
        _parameters(
            "detector", detector, trained=any(name != "grounder" for name in stages)
        ),
        _parameters("grounder", grounder, trained="grounder" in stages),
    )
    largest = max(sizes.values())
    return DryRun(
        model="tiny",
        parameters=counts,
        stages=tuple(
            StagePlan(
                name=name,
                steps=one.last_step,
                batch_size=one.batch_size,
                trainable=sizes[name],
            )
            for name, one in stages.items()
        ),
        sources=_sources(config),
        memory={
            "weights": BYTES * (detector + grounder),
            "averaged weights": BYTES * largest,
            "gradients": BYTES * largest,
            "optimizer": 2 * BYTES * largest,
        },
    )


def _count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def _parameters(module: str, count: int, *, trained: bool) -> ParameterCount:
    return ParameterCount(
        module=module, trainable=count if trained else 0, frozen=0 if trained else count
    )


def _sources(config: TrainingConfig) -> tuple[SourcePlan, ...]:
    """Images are drawn uniformly from all sources together; `drawn` counts images."""
    datasets = {name: open_dataset(name) for name in config.datasets}
    images = {"world": config.world.scenes} | {
        name: len(one.images) for name, one in datasets.items()
    }
    samples = {"world": config.world.scenes * config.world.questions}
    samples |= {name: len(one) for name, one in datasets.items()}
    total = max(1, sum(images.values()))
    draws = sum(one.last_step * one.batch_size for one in config.stages().values())
    return tuple(
        SourcePlan(
            name=name, images=count, samples=samples[name], drawn=draws * count // total
        )
        for name, count in images.items()
    )
