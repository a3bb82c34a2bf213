"""Evaluate, or only predict, and look at both in one way."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from maskwise.harness.evaluate import evaluate
from maskwise.harness.predict import predict_dataset
from maskwise.runs import Run


@dataclass(frozen=True)
class Outcome:
    """The summary of the predictions, and the run unless nothing was scored."""

    samples: int
    images: int
    failed: int
    first_error: str | None
    resumed: int
    run: Run | None


def run_model(
    model: Any, data: Any, out: Path | None, *, predict_only: bool = False, **more: Any
) -> Outcome:
    """more: arguments of `evaluate` or, if predict_only, of `predict_dataset`."""
    if predict_only:
        assert out is not None
        more.pop("protocols", None)
        return Outcome(**asdict(predict_dataset(model, data, out, **more)), run=None)
    run = evaluate(model, data, out, **more)
    assert run.summary is not None
    return Outcome(**asdict(run.summary), run=run)
