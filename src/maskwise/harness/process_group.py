"""Start a process that ends with this one, together with everything it starts.

The process leads a session of its own, so `kill` ends its whole group. A tiny shell waits on a pipe that only this
process can write to: when this process ends, however that happens, the pipe closes and the shell kills the group. The
parent-death signal of Linux would not do: it comes when the thread that started the child ends, and only to the child.
"""

import contextlib
import os
import signal
import subprocess
import weakref
from collections.abc import Sequence

KILL_SECONDS = 5.0
"""How long to wait for the end of a killed process."""

WATCH = 'read line || kill -s KILL -- "-$1"'
"""At the end of its input this kills a process group; a line ends it without."""

_WATCH_PIPES: set[int] = set()


class ProcessGroup:
    """A started process with pipes for its standard streams; OSError if it cannot be started.

    `kill` is called at the latest when the object is garbage collected or this process ends.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._watch = GroupWatch(self.process.pid)
        self.kill = weakref.finalize(self, _kill, self.process, self._watch)


class GroupWatch:
    """The shell that kills a process group when this process ends."""

    def __init__(self, group: int) -> None:
        self._watcher, self._pipe = _start_watcher(group)

    def end(self) -> None:
        """Stop watching; the group is left alone."""
        if self._pipe in _WATCH_PIPES:
            _WATCH_PIPES.discard(self._pipe)
            with contextlib.suppress(OSError):
                os.write(self._pipe, b"\n")
            os.close(self._pipe)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._watcher.wait(KILL_SECONDS)


def _start_watcher(group: int) -> tuple[subprocess.Popen[bytes], int]:
    """The shell, and the pipe that keeps it waiting."""
    read, write = os.pipe()
    try:
        watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCH, "sh", str(group)],
            stdin=read,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    finally:
        os.close(read)
    _WATCH_PIPES.add(write)
    return watcher, write


def kill_group(group: int) -> None:
    """Kill all processes of a group; nothing happens if it has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _kill(process: subprocess.Popen[bytes], watch: GroupWatch) -> None:
    kill_group(process.pid)
    watch.end()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILL_SECONDS)


def _close_in_fork() -> None:
    """A forked process must not keep the pipes open: they would outlive the process whose end they report."""
    for pipe in _WATCH_PIPES:
        with contextlib.suppress(OSError):
            os.close(pipe)
    _WATCH_PIPES.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_fork)
