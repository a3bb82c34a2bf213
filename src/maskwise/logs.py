"""Logging: what modules log is printed to standard error by the command line.

Every module logs to `logging.getLogger(__name__)`. A library never configures logging: a
Python program that uses maskwise sees warnings and errors, and installs its own handlers
for the rest. The command line calls `configure` once. Its level comes from `--debug` or
`--verbose`, then from the environment variable `MASKWISE_LOG`, and is `warning`
otherwise.

| level | what is logged |
|---|---|
| error | something failed that the program survives, for example a request to the server |
| warning | the result may not be what was wanted |
| info | steps of the work: what was opened, resumed, started, written, with figures |
| debug | the same in detail, and the traceback of the error that ends the command |
"""

import logging
import os
import sys
import warnings
from typing import TextIO

from maskwise.errors import UnknownNameError
from maskwise.terminal import safe_text

ENVIRONMENT_VARIABLE = "MASKWISE_LOG"

LEVELS = ("debug", "info", "warning", "error")
"""Names of levels, from the most output to the least."""

DEFAULT_LEVEL = "warning"

_ROOT = "maskwise"
"""The logger above all loggers of the package."""


def configure(level: str | None = None) -> None:
    """Print records of maskwise's loggers, and Python warnings, to standard error.

    level: one of LEVELS in upper or lower case; None reads MASKWISE_LOG, which may be
    unset or empty. UnknownNameError for any other value. A repeated call replaces the
    level and keeps one handler.
    """
    name = level or os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT_LEVEL
    if name.lower() not in LEVELS:
        raise UnknownNameError("log level", name, LEVELS)
    logger = logging.getLogger(_ROOT)
    logger.setLevel(name.upper())
    for handler in list(logger.handlers):
        if isinstance(handler, _StandardErrorHandler):
            logger.removeHandler(handler)
    logger.addHandler(_StandardErrorHandler())
    # The records are printed here; a handler of the root logger would repeat them.
    logger.propagate = False
    warnings.showwarning = _log_warning


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    *_file_and_line: object,
    **_named: object,
) -> None:
    """`warnings.showwarning`: the text as a record, its place only for debugging."""
    logger = logging.getLogger(_ROOT)
    logger.warning("%s", message)
    logger.debug("%s was raised in %s, line %d", category.__name__, filename, lineno)


class _StandardErrorHandler(logging.StreamHandler[TextIO]):
    """Writes to the standard error of the moment.

    A progress bar replaces `sys.stderr` while it is shown, so that lines appear above
    it; the stream must not be kept from an earlier time.
    """

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(_LineFormatter())

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


class _LineFormatter(logging.Formatter):
    """`maskwise: warning: TEXT`; below warnings also the time and the module.

    Control characters are escaped: a text may contain names from a dataset.
    """

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        level = record.levelname.lower()
        if record.levelno >= logging.WARNING:
            return safe_text(f"maskwise: {level}: {text}")
        time = self.formatTime(record, "%H:%M:%S")
        module = record.name.removeprefix(f"{_ROOT}.")
        return safe_text(f"maskwise: {time} {level} {module}: {text}")
