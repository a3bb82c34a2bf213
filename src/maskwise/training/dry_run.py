"""What a training run would do, without doing it: parameters, memory, steps, samples per source, tokens per sample."""

import msgspec


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
    """A source of samples: its images and samples (None if it cannot be opened here), and how many samples the run
    draws from it.
    """

    name: str
    images: int | None
    samples: int | None
    drawn: int | None


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a run. `memory`: an estimate in bytes per GPU, by what needs it. `tokens`: percentiles of the tokens
    per sample by their name (`p50`), empty for a model without a tokenizer. `notes`: what the numbers assume.
    """

    model: str
    parameters: tuple[ParameterCount, ...]
    stages: tuple[StagePlan, ...]
    sources: tuple[SourcePlan, ...]
    memory: dict[str, int]
    tokens: dict[str, int] = {}
    notes: tuple[str, ...] = ()
