"""A PostgreSQL server for tests, in a temporary folder, started and removed by the test."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

USER = "postgres"


def find_programs() -> Path | None:
    """The folder of initdb and postgres: on the path, or where Debian puts them."""
    found = shutil.which("initdb")
    folders = (
        [Path(found).resolve().parent]
        if found
        else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    )
    return next((folder for folder in folders if (folder / "initdb").is_file()), None)


@contextlib.contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a fresh server; skips the test, saying why, where PostgreSQL is not installed."""
    programs = find_programs()
    if programs is None:
        pytest.skip("needs PostgreSQL (initdb, postgres); on Debian: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="maskwise-postgres-"))
    account = _account(folder)
    try:
        initdb = [
            str(programs / "initdb"),
            "-D",
            str(folder / "data"),
            "-U",
            USER,
            "-A",
            "trust",
            "--no-sync",
        ]
        subprocess.run(
            [*initdb, "-E", "UTF8", "--locale=C"], check=True, capture_output=True, cwd=folder, **account
        )
        with _running(programs, folder, account) as port:
            yield f"postgresql://{USER}@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _account(folder: Path) -> dict[str, object]:
    """PostgreSQL refuses to run as root, so there it runs as the user that its package made."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam(USER)
    except KeyError:
        pytest.skip(f"needs the user {USER}, which the package of PostgreSQL makes")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def _running(programs: Path, folder: Path, account: dict[str, object]) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    options = [
        "-D",
        str(folder / "data"),
        "-p",
        str(port),
        "-k",
        str(folder),
        "-c",
        "listen_addresses=127.0.0.1",
    ]
    # Processes are killed in these tests, never the machine.
    options += ["-c", "fsync=off"]
    log = folder / "log"
    with open(log, "wb") as out:
        server = subprocess.Popen(
            [str(programs / "postgres"), *options], stdout=out, stderr=out, cwd=folder, **account
        )
    try:
        _wait(port, server, log)
        yield port
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait(port: int, server: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(300):
        if server.poll() is not None:
            raise RuntimeError(f"PostgreSQL did not start: {log.read_text()}")
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(host="127.0.0.1", port=port, user=USER, dbname="postgres").close()
            return
        time.sleep(0.1)
    raise RuntimeError("PostgreSQL does not answer")
