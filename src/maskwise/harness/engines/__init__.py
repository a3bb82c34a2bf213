"""Engines: where and by how many workers the predictions of a run are made.

    engine = find_engine("local")
    for predictions in engine(config, plan, worker, shards=folder): ...

An engine gets

- a `WorkerConfig`: everything that is needed to make any part of the predictions on any machine;
- a `Plan`: the images that remain, in order, each with the rows of its questions;
- a `Worker` that is open in this process. An engine that works elsewhere opens its own workers with the config, and may
  close this one;
- `shards`: a folder for predictions that are made before it is their turn. It may exist, from an earlier attempt at the
  same plan or a longer one; `evaluate` removes it when the plan is complete.

and returns a generator. It must guarantee that

1. it yields one list of predictions per image of the plan, in the order of the plan, with one prediction per question,
   in the order of its rows;
2. the questions of an image go to one worker together;
3. predictions depend on the config and the image only: not on the worker, on earlier calls, or on timing.
   `Worker.predict` ensures this if the model does;
4. a failing image or question is a prediction with an error (`Worker.predict` ensures this), never an exception. An
   exception ends the run: ModelGoneError, or a defect of the engine;
5. memory is bounded: it reads a few images ahead, not the whole plan;
6. it works only while the generator is consumed, plus its read-ahead, and releases everything when that is closed.

It writes nothing but shards: only `evaluate` appends to predictions.jsonl, so an interrupted run contains complete
images and continues with the rest of the plan.
"""

import importlib
from collections.abc import Generator
from pathlib import Path
from typing import Any, Protocol

from maskwise.errors import MaskwiseError, UnknownNameError
from maskwise.harness.engines.local import run_locally
from maskwise.harness.engines.worker import Worker, WorkerConfig
from maskwise.harness.plan import Plan
from maskwise.schema import Prediction

__all__ = ["ENGINES", "Engine", "Worker", "WorkerConfig", "find_engine"]

ENGINES = ("local", "ray")


class Engine(Protocol):
    """Makes the predictions of a plan."""

    def __call__(
        self, config: WorkerConfig, plan: Plan, worker: Worker, *, shards: Path
    ) -> Generator[list[Prediction], None, None]:
        """See the package."""


def find_engine(name: str, **options: Any) -> Engine:
    """The engine of this name. Options (ray: fields of RayOptions) that are None count as not given."""
    given = {key: value for key, value in options.items() if value is not None}
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    if name == "local":
        if given:
            raise MaskwiseError(
                f"the local engine has no option {', '.join(given)}; use --engine ray"
            )
        return run_locally
    try:
        ray = importlib.import_module("maskwise.harness.engines.ray")
    except ImportError as error:
        raise MaskwiseError(
            f"the ray engine needs the extra: pip install 'maskwise[ray]' ({error})"
        ) from error
    made: Engine = ray.make_engine(**given)
    return made
