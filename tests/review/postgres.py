"""A PostgreSQL server for tests, in a temporary folder, started and removed by the test."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
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
    """The URL of a fresh server; skips the test, saying why, where PostgreSQL is not installed.

    The server belongs to a process of its own (`main`), which stops it and removes its folder when the test process
    ends, even if that was killed.
    """
    if find_programs() is None:
        pytest.skip(
            "needs PostgreSQL (initdb, postgres); on Debian: apt-get install postgresql"
        )
    if os.geteuid() == 0 and not _has_account():
        pytest.skip(f"needs the user {USER}, which the package of PostgreSQL makes")
    # -P: the modules beside this file must not hide installed ones of the same name.
    command = [sys.executable, "-P", __file__]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().decode().strip()
        assert url, "PostgreSQL did not start"
        yield url


def main() -> None:
    """Run a server, print its URL, and stop when the standard input ends."""
    programs = find_programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="maskwise-postgres-"))
    try:
        account = _account(folder)
        _init(programs, folder, account)
        with _running(programs, folder, account) as port:
            print(f"postgresql://{USER}@127.0.0.1:{port}/postgres", flush=True)
            sys.stdin.buffer.read()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _init(programs: Path, folder: Path, account: dict[str, object]) -> None:
    options = [
        "-D",
        str(folder / "data"),
        "-U",
        USER,
        "-A",
        "trust",
        "--no-sync",
        "-E",
        "UTF8",
        "--locale=C",
    ]
    subprocess.run(
        [str(programs / "initdb"), *options],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd=folder,
        **account,
    )


def _has_account() -> bool:
    return any(entry.pw_name == USER for entry in pwd.getpwall())


def _account(folder: Path) -> dict[str, object]:
    """PostgreSQL refuses to run as root, so there it runs as the user that its package made."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(USER)
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
            [str(programs / "postgres"), *options],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=folder,
            **account,
        )
    try:
        _wait(port, server, log)
        yield port
    finally:
        server.send_signal(signal.SIGQUIT)  # Nobody needs the data any more.
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
            psycopg.connect(
                host="127.0.0.1", port=port, user=USER, dbname="postgres"
            ).close()
            return
        time.sleep(0.1)
    raise RuntimeError("PostgreSQL does not answer")


if __name__ == "__main__":
    main()
