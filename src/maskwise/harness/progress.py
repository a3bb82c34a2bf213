"""How far a run has come."""

from collections.abc import Iterable
from dataclasses import dataclass

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
