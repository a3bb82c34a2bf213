"""How far a run has come, and how that is shown."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from maskwise.progress_bars import FailureColumn, RateColumn, make_progress
from maskwise.schema import Prediction


@dataclass
class Progress:
    """Samples in total, predicted and failed. first_error: why the first failed sample of this attempt failed."""

    total: int
    done: int = 0
    failed: int = 0
    first_error: str | None = None

    def add(self, predictions: Iterable[Prediction]) -> None:
        """Count the predictions for one image."""
        for prediction in predictions:
            self.done += 1
            if prediction.error is not None:
                self.failed += 1
                self.first_error = self.first_error or prediction.error


OnProgress = Callable[[Progress], None]
OnStage = Callable[[str], None]


@contextlib.contextmanager
def shown_progress(
    on_progress: OnProgress, on_stage: OnStage, *, shown: bool
) -> Iterator[tuple[OnProgress, OnStage]]:
    """Both functions, which also show a bar (in a log: lines) while the block runs.

    shown: False returns them as they are.
    """
    if not shown:
        yield on_progress, on_stage
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
        FailureColumn(),
    )
    with make_progress(*columns) as bars:
        bar = bars.add_task("opening", total=None, failed=0)

        def show_progress(progress: Progress) -> None:
            bars.update(
                bar,
                completed=progress.done,
                total=progress.total,
                failed=progress.failed,
            )
            on_progress(progress)

        def show_stage(stage: str) -> None:
            bars.update(bar, description=stage)
            on_stage(stage)

        yield show_progress, show_stage


@contextlib.contextmanager
def shown_stages(on_stage: OnStage, stages: int, *, shown: bool) -> Iterator[OnStage]:
    """The function, which also counts its calls in a bar (in a log: lines) while the block runs.

    stages: how many calls are expected. shown: False returns the function as it is.
    """
    if not shown:
        yield on_stage
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with make_progress(*columns) as bars:
        bar = bars.add_task("opening", total=stages)
        begun = 0

        def show_stage(stage: str) -> None:
            nonlocal begun
            bars.update(bar, description=stage, completed=begun)
            begun += 1
            on_stage(stage)

        yield show_stage
