"""A model in a child process that exchanges JSON lines: `--model "command: python their_script.py"`.

    model = SubprocessModel("python their_script.py --checkpoint m2sa", timeout=60)
    model.predict(image, questions)
    model.close()

Each request is one line on its standard input, each response one line on its standard output (`wire_format` defines
them). Its standard error is passed on. Any language and any environment will do. Its first line may announce
capabilities: raw pixels instead of a PNG, and teacher forcing.

A failure affects only the questions of the current request:

| the child | consequence |
|---|---|
| writes an invalid line, or the response to another request | the questions fail; the child is kept |
| reports an error, or a wrong number of predictions | the questions fail; the child is kept |
| does not respond in time | it is killed with all it started, and restarted for the next questions |
| dies | it is restarted for the next questions |
| does not respond to several images in a row, restarted for each | ModelGoneError |

A response that comes after its request was given up is dropped. When this process ends, so do the child and all it
started.
"""

import contextlib
import hashlib
import math
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from PIL import Image

from maskwise.errors import ModelError, ModelGoneError
from maskwise.harness.process_group import ProcessGroup
from maskwise.harness.wire_format import (
    MAX_RESPONSE_BYTES,
    Capabilities,
    PredictResponse,
    decode_capabilities,
    decode_response,
    encode_command_request,
    quote,
    response_to_predictions,
)
from maskwise.schema import Answer, Prediction, Sample

MAX_SCRIPT_BYTES = 2**24
"""Files named on the command line are hashed up to this size: scripts and settings, not checkpoints."""

CHUNK_BYTES = 2**16
"""Bytes written or read at a time: the size of a pipe on Linux."""

STDERR_BYTES = 2**12
STDERR_LINES = 3
"""What is kept of a child's standard error, and how many of its last lines an error message quotes."""

MAX_DRAINS = 64
"""How often a dead child's standard error is read: a process that outlived it may go on writing."""

POLL_SECONDS = 0.5
"""Seconds between checks whether a silent child is alive: a process that it started may keep its pipes open."""

START_FACTOR = 3.0
MIN_START_SECONDS = 5.0
"""A restart may take this many times as long as the longest start so far, and at least these seconds."""

EXIT_SECONDS = 5.0
"""Time for a child to exit after its standard input was closed, or after it closed its standard output."""


class SubprocessModel:
    """A predictor in a child process. It is started by the first request; `close` ends it.

    timeout: seconds per question, None for no limit; the questions of an image share theirs. start_timeout: seconds
    added until the first response after a start, while weights load; restarts get START_FACTOR times as long as the
    longest start so far. patience: how many images in a row may get no response. log: a file for the child's standard
    error, which otherwise goes to ours.
    """

    weights_hash: str | None = None

    def __init__(
        self,
        command: str,
        *,
        timeout: float | None = 120.0,
        start_timeout: float = 600.0,
        patience: int = 5,
        log: str | os.PathLike[str] | None = None,
    ) -> None:
        if os.name != "posix":
            raise ModelGoneError(
                "a `command:` model needs Linux or macOS; elsewhere serve it over HTTP (docs/guides/model_exchange.md)"
            )
        _check_positive(timeout=timeout, start_timeout=start_timeout, patience=patience)
        self.arguments = _split(command)
        self.timeout = timeout
        self.start_timeout = start_timeout
        self.patience = patience
        self.name = command.strip()
        self._files = _hash_files(self.arguments)
        self.config = {"command": self.name, "files": self._files}
        self._log = None if log is None else Path(log).absolute()
        self._folder = Path.cwd()
        self._child: _Child | None = None
        self._capabilities = Capabilities()
        self._longest_start: float | None = None
        self._unanswered: list[Image.Image] = []

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question. ModelError if this request fails, ModelGoneError if all further ones would."""
        return self._predict(image, questions, None)

    def predict_teacher_forced(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        """One prediction per sample, made with the true answer in the prompt. The child has to announce this."""
        answers = [sample.answer for sample in samples]
        questions = [sample.asked for sample in samples]
        predictions = self._predict(image, questions, answers)
        if not self._capabilities.teacher_forcing:
            raise ModelGoneError(
                f'{self.name!r} does not announce teacher forcing: its first line has to be {{"teacher_forcing": true}}'
            )
        return predictions

    def close(self) -> None:
        """Let the child exit by itself; after a few seconds it is killed."""
        if self._child is not None:
            self._child.finish()
            self._child = None

    def _predict(
        self,
        image: Image.Image,
        questions: Sequence[str],
        answers: Sequence[Answer | None] | None,
    ) -> list[Prediction]:
        if not questions:
            return []
        raw = "rgb" in self._capabilities.accepts
        id, line = encode_command_request(image, questions, answers, raw=raw)
        try:
            response = self._request(id, line, len(questions))
        except _ChildLostError as lost:
            raise self._explain(image, lost) from None
        self._unanswered.clear()
        try:
            size = (image.height, image.width)
            return response_to_predictions(response, len(questions), size)
        except ModelError as error:
            if self._child is not None:
                self._child.add_output_to(error)
            raise

    def _request(self, id: str, line: bytes, questions: int) -> PredictResponse:
        child = self._running_child(id)
        fresh = not child.responded
        budget = math.inf if self.timeout is None else self.timeout * questions
        budget += self._start_budget() if fresh else 0.0
        try:
            response = child.request(id, line, time.monotonic() + budget)
        except TimeoutError:
            # Not the budget, which depends on earlier requests: a resumed run has to give the same message.
            how = f"did not respond within {self.timeout:g} seconds per question and was killed"
            raise _ChildLostError(how, child) from None
        except EOFError as end:
            raise _ChildLostError(str(end), child) from None
        finally:
            self._capabilities = child.capabilities or self._capabilities
            if not child.in_sync:
                child.kill()
                self._child = None
        if fresh:
            self._longest_start = max(
                self._longest_start or 0.0, time.monotonic() - child.started
            )
        return response

    def _start_budget(self) -> float:
        if self._longest_start is None:
            return self.start_timeout
        return min(
            self.start_timeout,
            max(MIN_START_SECONDS, START_FACTOR * self._longest_start),
        )

    def _explain(self, image: Image.Image, lost: "_ChildLostError") -> ModelError:
        """One failure, or ModelGoneError if several images in a row got no response."""
        if not lost.child.responded and not any(
            image is seen for seen in self._unanswered
        ):
            self._unanswered.append(image)
        if len(self._unanswered) < self.patience:
            # Without its last output, which differs between a new child and one with earlier requests: a resumed run
            # has to give the same message. The output is in the log.
            error = ModelError(f"the command {lost}")
            lost.child.add_output_to(error)
            return error
        return ModelGoneError(
            f"{self.name!r} is given up: {self.patience} images in a row got no response. The last time it "
            f"{lost}{lost.child.last_output()}"
        )

    def _running_child(self, id: str) -> "_Child":
        """The child, restarted if it has died since its last response, or if its response to the same request is
        outstanding: a late one could not be told from the one that is due.
        """
        if self._child is not None and (not self._child.alive or self._child.owes(id)):
            self._child.kill()
            self._child = None
        if self._child is None:
            self._check_files()
            self._child = _Child(self.arguments, self._log)
        return self._child

    def _check_files(self) -> None:
        """Refuse to start a script that was edited since it was recorded: its predictions would be another model's."""
        before = self._files
        now = _hash_files(self.arguments, self._folder)
        changed = [
            name for name in {**before, **now} if before.get(name) != now.get(name)
        ]
        if changed:
            raise ModelGoneError(
                f"{changed[0]} has changed since the run began; restore it, or begin another run (--out)"
            )


class _ChildLostError(Exception):
    """A child died or was killed; the message says how."""

    def __init__(self, how: str, child: "_Child") -> None:
        super().__init__(how)
        self.child = child


class _Child:
    """One started process and its three pipes; no wait exceeds its deadline.

    responded: whether it ever did. started: when, on the monotonic clock. in_sync: whether it has read everything that
    was sent, so that it can get another request. capabilities: what its first line announced, if anything.
    """

    def __init__(self, arguments: list[str], log: Path | None) -> None:
        self.responded = False
        self.in_sync = True
        self.started = time.monotonic()
        self.capabilities: Capabilities | None = None
        self._log = log
        self._output = b""
        self._lines = _LineSplitter()
        self._given_up = set[str]()
        self._first = True
        self._unsent = memoryview(b"")
        try:
            self._group = ProcessGroup(arguments)
        except OSError as error:
            raise ModelGoneError(
                f"{arguments[0]!r} cannot be started: {error}"
            ) from None
        self._process = self._group.process
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = cast(
            tuple[IO[bytes], IO[bytes], IO[bytes]], pipes
        )
        self._selector = selectors.DefaultSelector()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        for pipe in (self._stdout, self._stderr):
            self._selector.register(pipe, selectors.EVENT_READ)

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def owes(self, id: str) -> bool:
        """Whether a request with this id was given up and its response may still come."""
        return id in self._given_up

    def request(self, id: str, line: bytes, deadline: float) -> PredictResponse:
        """The response to a request. TimeoutError, EOFError (it died) or ModelError (an invalid response)."""
        self.in_sync = False
        self._output = b""
        self._unsent = memoryview(line + b"\n")
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        try:
            response = self._next_response(deadline)
            while response.id != id and response.id in self._given_up:
                response = self._next_response(deadline)
            if response.id != id:
                raise ModelError(
                    "the response has the id of another request; expected responses in order"
                )
            self.responded = True
        except ModelError:
            self._given_up.add(id)
            self.in_sync = not self._unsent
            raise
        finally:
            self._stop_writing()
        self.in_sync = not self._unsent
        return response

    def last_output(self) -> str:
        """The end of its standard error since the last request, for a message; empty if there is none."""
        lines = [line.strip() for line in self._output.splitlines() if line.strip()]
        return (
            f"; its last output: {quote(b' | '.join(lines[-STDERR_LINES:]))}"
            if lines
            else ""
        )

    def add_output_to(self, error: ModelError) -> None:
        """Note the end of its standard error since the last request, often a traceback, in an error."""
        output = self._output.decode("utf-8", "replace").strip()
        if output:
            error.add_note(f"The last output of the command:\n{output}")

    def finish(self) -> None:
        """Close its standard input, wait for its end, then kill what is left."""
        self._stdin.close()
        deadline = time.monotonic() + EXIT_SECONDS
        with contextlib.suppress(EOFError):
            while time.monotonic() < deadline:
                self._poll(POLL_SECONDS)
                self._lines.complete.clear()
        self.kill()

    def kill(self) -> None:
        """End the process and all that it started, read the rest of its standard error, close the pipes."""
        self._group.kill()
        for _ in range(MAX_DRAINS):
            if not self._read_stderr():
                break
        self._selector.close()
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()

    def _next_response(self, deadline: float) -> PredictResponse:
        while True:
            while not self._lines.complete:
                self._poll(min(_remaining(deadline), POLL_SECONDS))
            _remaining(deadline)  # a line that was not looked at may have come too late
            line = self._lines.complete.popleft()
            if line is None:
                raise ModelError(
                    f"the response is longer than {MAX_RESPONSE_BYTES} bytes"
                )
            if line.strip() and not self._is_announcement(line):
                return decode_response(line)

    def _is_announcement(self, line: bytes) -> bool:
        """Whether this is the first line and announces capabilities."""
        first = self._first
        self._first = False
        if first:
            self.capabilities = decode_capabilities(line)
        return first and self.capabilities is not None

    def _poll(self, seconds: float) -> None:
        """Wait for the pipes, then read and write what is possible. EOFError if no response can come any more."""
        ready = {key.fileobj for key, _ in self._selector.select(seconds)}
        if self._stdin in ready:
            self._write()
        if self._stderr in ready and self._read_stderr() == b"":
            self._selector.unregister(self._stderr)
        if self._stdout in ready:
            data = _read(self._stdout)
            if data == b"":
                raise EOFError(self._describe_end())
            self._lines.add(data or b"")
        if not ready and not self.alive:
            raise EOFError(self._describe_end())

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[
                os.write(self._stdin.fileno(), self._unsent[:CHUNK_BYTES]) :
            ]
        except BlockingIOError:
            return
        except OSError:  # It closed its input or died; its output tells which.
            self._stop_writing()
        if not self._unsent:
            self._stop_writing()

    def _stop_writing(self) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(self._stdin)

    def _read_stderr(self) -> bytes | None:
        """Pass on its standard error; b"" at its end, None if there is nothing yet."""
        data = _read(self._stderr)
        if data:
            self._output = (self._output + data)[-STDERR_BYTES:]
            _pass_on(data, self._log)
        return data

    def _describe_end(self) -> str:
        try:
            code = self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed its standard output without a response and was killed"
        if code >= 0:
            return f"ended with exit code {code} before it responded"
        names = {item.value: item.name for item in signal.Signals}
        hint = " (out of memory?)" if code == -signal.SIGKILL else ""
        return f"was ended by {names.get(-code, f'signal {-code}')}{hint} before it responded"


class _LineSplitter:
    """Splits bytes into lines. complete: lines not taken yet, None for one longer than MAX_RESPONSE_BYTES."""

    def __init__(self) -> None:
        self.complete: deque[bytes | None] = deque()
        self._line = bytearray()
        self._too_long = False

    def add(self, data: bytes) -> None:
        """Take more bytes."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._extend(piece)
            self.complete.append(None if self._too_long else bytes(self._line))
            self._line = bytearray()
            self._too_long = False
        self._extend(rest)

    def _extend(self, piece: bytes) -> None:
        if len(self._line) + len(piece) > MAX_RESPONSE_BYTES:
            self._line = bytearray()
            self._too_long = True
        if not self._too_long:
            self._line += piece


def _check_positive(**options: float | None) -> None:
    for name, value in options.items():
        if value is not None and not value > 0:
            raise ModelError(f"option {name} is {value}; expected a number above 0")


def _split(command: str) -> list[str]:
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise ModelError(
            f"the command {command!r} cannot be split into words: {error}"
        ) from None
    if not arguments:
        raise ModelError(
            'no command given; expected for example --model "command: python their_script.py"'
        )
    if shutil.which(arguments[0]) is None:
        raise ModelError(
            f"the command {arguments[0]!r} is not found, or is not a program"
        )
    return arguments


def _hash_files(arguments: Sequence[str], folder: Path = Path()) -> dict[str, str]:
    """SHA-256 of every file that the command names, relative to a folder: a changed script is a changed model."""
    hashes = {}
    for argument in arguments:
        path = folder / argument
        # An argument that is no path may be too long for one, or contain a null byte.
        with contextlib.suppress(OSError, ValueError):
            if path.is_file() and path.stat().st_size <= MAX_SCRIPT_BYTES:
                hashes[argument] = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashes


def _remaining(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _read(pipe: IO[bytes]) -> bytes | None:
    """What has come, b"" at its end, None if nothing has."""
    try:
        return os.read(pipe.fileno(), CHUNK_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _pass_on(output: bytes, log: Path | None) -> None:
    if log is None:
        sys.stderr.write(output.decode("utf-8", "replace"))
        return
    try:
        with open(log, "ab") as file:
            file.write(output)
    except OSError as error:
        raise ModelGoneError(f"{log} cannot be written: {error}") from None
