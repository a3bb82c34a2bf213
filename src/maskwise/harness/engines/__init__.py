"""Engines: who does the work of a run, and where.

    engine = find_engine("local")
    for answered in engine(job, plan, worker, shards=folder): ...

An engine gets

- a `WorkerConfig`: all that is needed to do any part of the work anywhere, and nothing that cannot be sent there;
- a `Plan`: images in order, each with the rows of its questions; all of the work that is left;
- a `Worker` that stands ready in this process, its dataset and model open. An engine that works elsewhere makes its own
  workers from the job, and may close this one;
- `shards`: a folder for what is answered before its turn. It may be there, left by an earlier session of the same plan,
  or of a longer one; `evaluate` removes it when the plan is done.

and gives back a generator. It must guarantee that

1. there is one `ImagePredictions` for every image of the plan, in the order of the plan, with one prediction per
   question, in the order of its rows;
2. the questions of an image go to one worker together;
3. what is said depends on the job and the image alone: not on the worker, on what was asked before, or on timing.
   `Worker.answer` sees to that where the model does;
4. a failing image or question is an answer with an error (`Worker.answer` makes it so), never an exception. An
   exception ends the run: ModelGoneError, or the engine itself is broken;
5. memory stays bounded: it reads ahead a few images, not the plan;
6. it works only as the generator is asked, plus its read-ahead, and lets go of everything when that is closed.

It writes nothing but shards: `evaluate` alone appends to predictions.jsonl, as answers come, so a run cut short at any
moment has a whole number of images and continues with the rest of the plan.
"""

import importlib
from collections.abc import Generator
from pathlib import Path
from typing import Any, Protocol

from maskwise.errors import MaskwiseError, UnknownNameError
from maskwise.harness.engines.local import run_locally
from maskwise.harness.engines.worker import ImagePredictions, Worker, WorkerConfig
from maskwise.harness.plan import Plan

__all__ = ["ENGINES", "Engine", "ImagePredictions", "Worker", "WorkerConfig", "find_engine"]

ENGINES = ("local", "ray")


class Engine(Protocol):
    """What answers a plan."""

    def __call__(
        self, job: WorkerConfig, plan: Plan, worker: Worker, *, shards: Path
    ) -> Generator[ImagePredictions, None, None]:
        """See the package."""


def find_engine(name: str, **options: Any) -> Engine:
    """The engine of this name. Options (ray: fields of RayOptions) that are None count as not given."""
    given = {key: value for key, value in options.items() if value is not None}
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    if name == "local":
        if given:
            raise MaskwiseError(f"the local engine takes no {', '.join(given)}; say --engine ray")
        return run_locally
    try:
        ray = importlib.import_module("maskwise.harness.engines.ray")
    except ImportError as error:
        raise MaskwiseError(
            f"the ray engine needs the extra: pip install 'maskwise[ray]' ({error})"
        ) from error
    made: Engine = ray.make_engine(**given)
    return made
