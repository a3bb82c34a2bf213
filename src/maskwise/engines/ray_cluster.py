"""A Ray to work on: the one at an address, or a temporary one on this machine."""

import contextlib
import logging
import math
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

import maskwise
from maskwise.engines.options import EngineOptions
from maskwise.errors import MaskwiseError
from maskwise.runs.environment import available_cores

log = logging.getLogger(__name__)

STORE_BYTES = 2**28
"""Size of the object store of a Ray started here. Ray's own default is 30 % of the
memory, which other programs need; Ray Data stops distributing work before it is full.
"""

CONNECT_SECONDS = 10.0
"""How long an address is tried. Ray itself would wait for minutes."""

QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
"""The output of workers stays in Ray's own logs."""


@contextlib.contextmanager
def connected(options: EngineOptions) -> Iterator[None]:
    """A Ray to use: the one that this process is connected to already, the one at
    `ray_address`, or a temporary one. MaskwiseError if there is none.
    """
    if options.ray_address is not None:
        _check_address(options.ray_address)
    if ray.is_initialized():
        yield
        return
    _silence_ray()
    address = options.ray_address
    place = "on this machine" if address is None else f"at {address}"
    log.info("connecting to Ray %s", place)
    try:
        if address is None:
            _start_here(options)
        else:
            _join(address)
    except Exception as error:  # Ray raises plain ones when it cannot start
        raise MaskwiseError(f"no Ray {place}: {one_line(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


def one_line(error: BaseException) -> str:
    """One line of an error: the first, or the last one of a worker's traceback."""
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    if isinstance(error, ray.exceptions.RayTaskError):
        return lines[-1]
    return lines[0]


def _start_here(options: EngineOptions) -> None:
    """Start a Ray for this process; it ends with the process."""
    workers = options.workers or 1
    # A Ray with fewer CPUs than are reserved would wait for ever.
    cores = max(available_cores(), math.ceil(workers * options.cpus))
    ray.init(
        "local",
        num_cpus=cores,
        object_store_memory=STORE_BYTES,
        include_dashboard=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(_module_paths())}},
        **QUIET,
    )


def _module_paths() -> Iterator[str]:
    """The module paths that a new process would not have: those outside of this Python
    environment, in their order.
    """
    environments = (sys.prefix + os.sep, sys.base_prefix + os.sep)
    absolute_paths = [os.path.abspath(path) for path in sys.path]
    for path in dict.fromkeys(absolute_paths):
        if not path.startswith(environments):
            yield path


def _join(address: str) -> None:
    """Connect to a cluster and send this maskwise: the nodes may have another version,
    or none.
    """
    package = str(Path(maskwise.__file__).parent)
    ray.init(address, runtime_env={"py_modules": [package]}, **QUIET)


def _silence_ray() -> None:
    """No usage reports, and no output besides that of the command.

    Ray's own logs stay in its folder.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray_log = logging.getLogger("ray.data")
    ray_log.setLevel(logging.WARNING)
    for handler in ray_log.handlers:
        if handler.name == "console":
            handler.setLevel(logging.CRITICAL)


def _check_address(address: str) -> None:
    """Refuse an address at which nothing listens, before Ray waits for minutes.

    `auto` is a cluster on this machine.
    """
    if address.startswith("ray://"):
        raise MaskwiseError(
            f"--ray-address {address}: this process writes the results, so it has to be "
            "on a node of the cluster: run the command there (or through `ray job "
            "submit`) with --ray-address auto"
        )
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise MaskwiseError(f"--ray-address {address}: expected HOST:PORT or auto")
    try:
        connection = socket.create_connection(
            (host.strip("[]"), int(port)), CONNECT_SECONDS
        )
        connection.close()
    except (OSError, OverflowError) as error:
        raise MaskwiseError(
            f"--ray-address {address} cannot be reached: {error}; is the cluster up "
            "(`ray status`)?"
        ) from error
