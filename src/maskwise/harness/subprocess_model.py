"""A model in a child process that speaks JSON lines: `--model "command: python their_script.py"`.

    model = SubprocessModel("python their_script.py --checkpoint m2sa", timeout=60)
    model.predict(image, questions)
    model.close()

One line goes to its standard input, one comes back (`exchange` says what is in them); whatever it writes to standard
error is passed on. Any language and any environment will do.

What goes wrong fails the questions asked just then, and nothing else:

| it | then |
|---|---|
| writes a line that is no reply, or the reply to something else | the questions fail; it is kept |
| reports an error, or has another number of predictions than questions | the questions fail; it is kept |
| does not answer in time | it is killed with all it started, and started anew for the next questions |
| dies | it is started anew for the next questions |
| lets several images in a row go by without any reply, started anew for each | it is given up: ModelGoneError |

A reply that comes after its questions were given up is dropped.
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
import weakref
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from PIL import Image

from maskwise.errors import ModelError, ModelGoneError
from maskwise.harness.wire_format import (
    MAX_RESPONSE_BYTES,
    PredictResponse,
    decode_response,
    encode_request,
    quote,
    response_to_predictions,
)
from maskwise.schema import Prediction

MAX_SCRIPT_BYTES = 2**24
"""Files named on the command line are hashed up to this size: scripts and settings, not checkpoints."""

CHUNK_BYTES = 2**16
LAST_WORDS_BYTES = 2**12
LAST_WORDS_LINES = 3
MAX_DRAINS = 64
"""How often a dead child's standard error is read: something that outlived it may go on writing."""

GLANCE = 0.5
"""Seconds between looks whether a silent process still lives: one that it started may hold its pipes open."""

SLACK, LEAST_START = 3.0, 5.0
"""How much longer than the longest one before a start may take, and the seconds it may take at least."""

GRACE = 5.0
"""Seconds a process has to leave once its standard input is closed, or it has closed its standard output."""


class SubprocessModel:
    """A predictor in a child process. It starts with the first question; `close` ends it.

    timeout: seconds a question may take, None for any number; the questions of an image share theirs. start_timeout:
    seconds added until the first reply after a start, while weights load; once a start is known to take less, the next
    ones get SLACK times what it took. patience: how many images in a row may go by without any reply. log: a file
    that gets what the child writes to standard error, which otherwise goes to ours.
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
                "a model given by a command needs Linux or macOS; elsewhere serve it over HTTP (docs/adapters.md)"
            )
        self.arguments = _split(command)
        self.timeout, self.start_timeout, self.patience = timeout, start_timeout, patience
        self.name = command.strip()
        self._files = _hash_files(self.arguments)
        self.config = {"command": self.name, "files": self._files}
        self._log = None if log is None else Path(log)
        self._child: _Child | None = None
        self._longest_start: float | None = None
        self._in_vain: list[Image.Image] = []

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction a question. ModelError where this fails, ModelGoneError where it will go on failing."""
        if not questions:
            return []
        id, line = encode_request(image, questions)
        try:
            reply = self._ask(id, line, len(questions))
        except _Lost as lost:
            raise self._judge(image, lost) from None
        self._in_vain.clear()
        return response_to_predictions(reply, len(questions))

    def close(self) -> None:
        """Let the child leave by itself; after a few seconds it is killed."""
        if self._child is not None:
            self._child.leave()
            self._child = None

    def _ask(self, id: str, line: bytes, questions: int) -> PredictResponse:
        child = self._running(id)
        fresh = not child.answered
        budget = math.inf if self.timeout is None else self.timeout * questions
        budget += self._time_to_start() if fresh else 0.0
        try:
            reply = child.ask(id, line, time.monotonic() + budget)
        except TimeoutError:
            # Not the budget, which depends on what came before: a run that is continued has to say the same.
            how = f"did not answer within {self.timeout:g} seconds a question and was killed"
            raise _Lost(how, child) from None
        except EOFError as end:
            raise _Lost(str(end), child) from None
        finally:
            if not child.in_step:
                child.kill()
                self._child = None
        if fresh:
            self._longest_start = max(self._longest_start or 0.0, time.monotonic() - child.started)
        return reply

    def _time_to_start(self) -> float:
        if self._longest_start is None:
            return self.start_timeout
        return min(self.start_timeout, max(LEAST_START, SLACK * self._longest_start))

    def _judge(self, image: Image.Image, lost: "_Lost") -> ModelError:
        """What a lost child means: one failure, or the end where image after image goes by without a reply."""
        if not lost.child.answered and not any(image is seen for seen in self._in_vain):
            self._in_vain.append(image)
        if len(self._in_vain) < self.patience:
            # Not its last words, which differ between a child just started and one that was asked before: a run that is
            # continued has to say the same. They are in the log.
            return ModelError(f"the command {lost}")
        return ModelGoneError(
            f"{self.name!r} is given up: {self.patience} images in a row went by without any reply. The last time it "
            f"{lost}{lost.child.last_words()}"
        )

    def _running(self, id: str) -> "_Child":
        """The child, started anew if it is not there, has died since its last reply, or still owes a reply to the same
        request: one that comes late could not be told from the one that is due.
        """
        if self._child is not None and (not self._child.alive or self._child.owes(id)):
            self._child.kill()
            self._child = None
        if self._child is None:
            self._check_files()
            self._child = _Child(self.arguments, self._log)
        return self._child

    def _check_files(self) -> None:
        """Refuse to start a script that was edited since it was recorded: its replies would be another model's."""
        before, now = self._files, _hash_files(self.arguments)
        changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if changed:
            raise ModelGoneError(
                f"{changed[0]} has changed since the run began; put it back, or begin another run (--out)"
            )


class _Lost(Exception):
    """A child is gone, and how."""

    def __init__(self, how: str, child: "_Child") -> None:
        super().__init__(how)
        self.child = child


class _Child:
    """One started process and its three pipes, none of which is ever waited for beyond a deadline.

    answered: whether it ever replied. started: when, on the monotonic clock. in_step: whether it has read all it was
    sent, so that it can be asked again.
    """

    def __init__(self, arguments: list[str], log: Path | None) -> None:
        self.answered, self.in_step, self.started = False, True, time.monotonic()
        self._log, self._words = log, b""
        self._lines, self._given_up = _Lines(), set[str]()
        self._rest = memoryview(b"")
        try:
            # A session of its own, so that it can be killed together with all that it starts.
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise ModelGoneError(f"{arguments[0]!r} cannot be started: {error}") from None
        self._end = weakref.finalize(self, _kill_group, self._process)
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        assert None not in pipes
        self._stdin, self._stdout, self._stderr = cast(tuple[IO[bytes], IO[bytes], IO[bytes]], pipes)
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
        """Whether a request was given up whose reply may still come."""
        return id in self._given_up

    def ask(self, id: str, line: bytes, deadline: float) -> PredictResponse:
        """The reply to a request. TimeoutError, EOFError (it died) or ModelError (what came is no reply to it)."""
        self.in_step = False
        self._words, self._rest = b"", memoryview(line + b"\n")
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        try:
            reply = self._next_reply(deadline)
            while reply.id != id and reply.id in self._given_up:
                reply = self._next_reply(deadline)
            if reply.id != id:
                raise ModelError(
                    "the reply carries the id of another request; requests are answered in order"
                )
            self.answered = True
        except ModelError:
            self._given_up.add(id)
            self.in_step = not self._rest
            raise
        finally:
            self._hush()
        self.in_step = not self._rest
        return reply

    def last_words(self) -> str:
        """What it wrote to standard error since it was asked, for a message; empty where it was silent."""
        lines = [line.strip() for line in self._words.splitlines() if line.strip()]
        return f"; its last words: {quote(b' | '.join(lines[-LAST_WORDS_LINES:]))}" if lines else ""

    def leave(self) -> None:
        """Close its standard input, wait for its end, then kill whatever is left."""
        self._stdin.close()
        deadline = time.monotonic() + GRACE
        with contextlib.suppress(EOFError):
            while time.monotonic() < deadline:
                self._listen(GLANCE)
                self._lines.waiting.clear()
        self.kill()

    def kill(self) -> None:
        """End the process and all that it started, read its last words, close the pipes."""
        self._end()
        for _ in range(MAX_DRAINS):
            if not self._hear():
                break
        self._selector.close()
        for pipe in (self._stdin, self._stdout, self._stderr):
            pipe.close()

    def _next_reply(self, deadline: float) -> PredictResponse:
        while True:
            while not self._lines.waiting:
                self._listen(min(_left(deadline), GLANCE))
            _left(deadline)  # what came while nobody looked may have come too late
            line = self._lines.waiting.popleft()
            if line is None:
                raise ModelError(f"the reply is longer than {MAX_RESPONSE_BYTES} bytes")
            if line.strip():
                return decode_response(line)

    def _listen(self, seconds: float) -> None:
        """Wait for the pipes, then move what can be moved. EOFError where no reply can come any more."""
        ready = {key.fileobj for key, _ in self._selector.select(seconds)}
        if self._stdin in ready:
            self._speak()
        if self._stderr in ready and self._hear() == b"":
            self._selector.unregister(self._stderr)
        if self._stdout in ready:
            data = _read(self._stdout)
            if data == b"":
                raise EOFError(self._how_it_ended())
            self._lines.add(data or b"")
        if not ready and not self.alive:
            raise EOFError(self._how_it_ended())

    def _speak(self) -> None:
        try:
            self._rest = self._rest[os.write(self._stdin.fileno(), self._rest[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:  # It has closed its input or died; which of the two, its output tells.
            self._hush()
        if not self._rest:
            self._hush()

    def _hush(self) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(self._stdin)

    def _hear(self) -> bytes | None:
        """Pass on what it says on standard error; b"" at its end, None where nothing has come."""
        data = _read(self._stderr)
        if data:
            self._words = (self._words + data)[-LAST_WORDS_BYTES:]
            _pass_on(data, self._log)
        return data

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            return "closed its standard output without a reply and was killed"
        if code >= 0:
            return f"ended with exit code {code} before it answered"
        names = {one.value: one.name for one in signal.Signals}
        hint = " (out of memory?)" if code == -signal.SIGKILL else ""
        return f"was ended by {names.get(-code, f'signal {-code}')}{hint} before it answered"


class _Lines:
    """Bytes cut into lines. `waiting`: whole lines not yet taken, None for one longer than MAX_RESPONSE_BYTES."""

    def __init__(self) -> None:
        self.waiting: deque[bytes | None] = deque()
        self._line, self._too_long = bytearray(), False

    def add(self, data: bytes) -> None:
        """Take more bytes."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._extend(piece)
            self.waiting.append(None if self._too_long else bytes(self._line))
            self._line, self._too_long = bytearray(), False
        self._extend(rest)

    def _extend(self, piece: bytes) -> None:
        if len(self._line) + len(piece) > MAX_RESPONSE_BYTES:
            self._line, self._too_long = bytearray(), True
        if not self._too_long:
            self._line += piece


def _split(command: str) -> list[str]:
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise ModelError(f"the command {command!r} cannot be split into words: {error}") from None
    if not arguments:
        raise ModelError('no command given; expected for example --model "command: python their_script.py"')
    if shutil.which(arguments[0]) is None:
        raise ModelError(f"the command {arguments[0]!r} is not found, or is not a program")
    return arguments


def _hash_files(arguments: Sequence[str]) -> dict[str, str]:
    """SHA-256 of every file the command names, so that a changed script is a changed model."""
    found = {}
    for argument in arguments:
        path = Path(argument)
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_size <= MAX_SCRIPT_BYTES:
                found[argument] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _read(pipe: IO[bytes]) -> bytes | None:
    """What has come, b"" at its end, None where nothing has."""
    try:
        return os.read(pipe.fileno(), CHUNK_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _pass_on(words: bytes, log: Path | None) -> None:
    if log is None:
        sys.stderr.write(words.decode("utf-8", "replace"))
        return
    try:
        with open(log, "ab") as file:
            file.write(words)
    except OSError as error:
        raise ModelGoneError(f"{log} cannot be written: {error}") from None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
