"""What happens when questions fail: the tracebacks are kept, and some runs are stopped.

The run folder has a file errors.txt with the traceback of every distinct error:

    ### KeyError: 'missing'
    first at sample 'scene-3-q1'
    Traceback (most recent call last): ...
"""

import logging
from pathlib import Path

from maskwise.errors import ModelError
from maskwise.harness.progress import Progress
from maskwise.harness.worker import PredictedImage
from maskwise.runs import PredictionSummary
from maskwise.runs.files import ERRORS, write_errors
from maskwise.schema import Prediction
from maskwise.terminal import safe_text

logger = logging.getLogger(__name__)

MAX_FIRST_FAILURES = 5
"""Failures in a row at the start of a run that stop it: a model that is broken shows it by then, at little cost."""

MAX_FILE_BYTES = 2**20
"""Size of errors.txt above which no traceback is added."""

HEADING = "### "
"""What the line of an error begins with."""


class Failures:
    """The failures of a run. folder: of the run, None if it is in memory.

    fail_fast: stop at the first failure. keep_going: do not stop where the first questions all fail.
    """

    def __init__(
        self, folder: Path | None, *, fail_fast: bool = False, keep_going: bool = False
    ) -> None:
        self.folder = folder
        self.fail_fast = fail_fast
        self.keep_going = keep_going
        self.first_traceback: str | None = None

    def add(
        self, result: PredictedImage, progress: Progress, *, is_retry: bool = False
    ) -> None:
        """Keep the tracebacks of an image's failures; ModelError if the run has to stop.

        progress: of the run, with this image. is_retry: these questions failed before, so failures say nothing about
        the model. The caller has not recorded the predictions of this image yet, so a
        run that is stopped here predicts it again when it is resumed.
        """
        failed = [item for item in result.predictions if item.error is not None]
        if not failed:
            return
        self._keep_tracebacks(failed, result.tracebacks)
        if self.fail_fast:
            self._stop(f"sample {failed[0].sample!r} failed: {failed[0].error}")
        is_start = progress.failed == progress.done < progress.total
        may_stop = is_start and not is_retry and not self.keep_going
        if may_stop and progress.failed >= MAX_FIRST_FAILURES:
            self._stop(
                f"the first {progress.failed} questions failed, so the run was stopped; --keep-going "
                f"(keep_going=True) asks the others too. The first: {progress.first_error}"
            )

    def check_summary(self, summary: PredictionSummary) -> None:
        """ModelError if there is no prediction at all."""
        if summary.failed == summary.samples:
            self._stop(
                f"all {summary.samples:,} questions failed; the first: {summary.first_error}"
            )

    @property
    def place(self) -> str:
        """Where the tracebacks are, as the end of a message; empty for a run in memory."""
        if self.folder is None or not (self.folder / ERRORS).is_file():
            return ""
        return f" (tracebacks: {self.folder / ERRORS})"

    def _stop(self, reason: str) -> None:
        error = ModelError(f"{reason}{self.place}")
        if self.first_traceback is not None:
            error.add_note(f"The model's traceback:\n{self.first_traceback}")
        raise error

    def _keep_tracebacks(
        self, failed: list[Prediction], tracebacks: dict[str, str]
    ) -> None:
        first_sample = {item.error: item.sample for item in reversed(failed)}
        for reason, text in tracebacks.items():
            sample = first_sample.get(reason, "")
            if self.first_traceback is None:
                self.first_traceback = text
                logger.debug("sample %r failed: %s\n%s", sample, reason, text)
            if self.folder is not None:
                with write_errors(self.folder):
                    _append(self.folder / ERRORS, reason, sample, text)


def _append(path: Path, reason: str, sample: str, text: str) -> None:
    """Add a traceback to errors.txt, unless it has one of this error or is full."""
    # What a model raises may hold anything, and people read this file in a terminal.
    one_line = safe_text(reason).replace("\n", " ")
    heading = f"{HEADING}{one_line}"
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    if heading in known.split("\n") or len(known) > MAX_FILE_BYTES:
        return
    with open(path, "a", encoding="utf-8") as file:
        file.write(
            f"{heading}\nfirst at sample {sample!r}\n{safe_text(text).rstrip()}\n\n"
        )
