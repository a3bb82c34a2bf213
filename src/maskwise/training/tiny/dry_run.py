"""What a training run of the bundled model would do."""

from maskwise.training.config_file import open_dataset
from maskwise.training.dry_run import DryRun, plan_small_run
from maskwise.training.tiny.config import TrainingConfig
from maskwise.training.tiny.grounder import Grounder
from maskwise.training.tiny.networks import TwoStageDetector
from maskwise.training.validation import open_validation


def dry_run(config: TrainingConfig) -> DryRun:
    """Parameters, stages and data of a run; a dataset that does not exist is an error."""
    if config.validation is not None:
        open_validation(config.validation)
    scenes = config.world.scenes + config.world.crowded_scenes
    images = {"world": scenes}
    samples: dict[str, int | None] = {"world": scenes * config.world.questions}
    for name in config.datasets:
        dataset = open_dataset(name)
        images[name] = len(dataset.images)
        samples[name] = len(dataset)
    stages = config.stages()
    trained = {}
    for stage in stages:
        trained[stage] = "grounder" if stage == "grounder" else "detector"
    return plan_small_run(
        "tiny",
        {"detector": TwoStageDetector(), "grounder": Grounder()},
        stages,
        trained=trained,
        images=images,
        samples=samples,
    )
