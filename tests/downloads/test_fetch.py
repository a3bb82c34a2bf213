"""Downloads from servers that continue, do not continue, break off, change the file, send another one or fail."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from maskwise.downloads import fetch as module
from maskwise.downloads.fetch import ATTEMPTS, fetch
from maskwise.errors import DownloadError
from tests.downloads.file_server import FileServer, Handler, serving

CONTENT = bytes(range(256)) * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def get(server: FileServer, path: Path, **options: Any) -> str:
    """Fetch the server's file without waiting between attempts."""
    options = {
        "bytes": len(CONTENT),
        "sha256": (SHA256,),
        "pause": lambda seconds: None,
    } | options
    return fetch((server.url,), path, **options)


def cut_after(count: int) -> Any:
    return lambda handler: handler.serve(cut=count)


def reply(status: int, **headers: str) -> Any:
    return lambda handler: handler.reply(status, b"", **headers)


def test_a_file_arrives_whole_and_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    with serving(CONTENT) as server:
        assert (
            get(server, tmp_path / "a" / "file", progress=lambda *now: told.append(now))
            == SHA256
        )
    assert (tmp_path / "a" / "file").read_bytes() == CONTENT
    assert told[0] == (0, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]


def test_a_broken_connection_is_continued_where_it_broke(tmp_path: Path) -> None:
    with serving(CONTENT) as server:
        server.script = [cut_after(500_000), cut_after(300_000)]
        get(server, tmp_path / "file")
        ranges = [request.get("Range") for request in server.requests]
    assert ranges == [None, "bytes=500000-", "bytes=800000-"]
    assert server.requests[1]["If-Range"] == '"1"'
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_the_next_call_continues_what_an_earlier_one_left(tmp_path: Path) -> None:
    with serving(CONTENT) as server:
        server.script = [cut_after(1000)] * ATTEMPTS
        with pytest.raises(DownloadError, match=f"tried {ATTEMPTS} times"):
            get(server, tmp_path / "file")
        assert not (tmp_path / "file").exists()
        get(server, tmp_path / "file")
        assert server.requests[-1]["Range"] == f"bytes={1000 * ATTEMPTS}-"
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_server_that_cannot_continue_sends_all_again(tmp_path: Path) -> None:
    with serving(CONTENT) as server:
        server.ranges = False
        server.script = [cut_after(500_000)]
        get(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_file_that_changed_between_two_attempts_is_taken_again(
    tmp_path: Path,
) -> None:
    with serving(b"x" * len(CONTENT)) as server:

        def change(handler: Handler) -> None:
            handler.serve(cut=500_000)
            server.content = CONTENT
            server.validators = {"ETag": '"2"'}

        server.script = [change]
        get(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "validators",
    [{}, {"ETag": 'W/"1"'}, {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}],
)
def test_a_changed_file_is_noticed_by_its_hash_if_the_server_does_not_tell(
    tmp_path: Path, validators: dict[str, str]
) -> None:
    with serving(b"x" * len(CONTENT)) as server:
        server.validators = validators

        def change(handler: Handler) -> None:
            handler.serve(cut=500_000)
            server.content = CONTENT

        server.script = [change]
        get(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_server_that_ignores_the_condition_is_noticed(tmp_path: Path) -> None:
    with serving(b"x" * len(CONTENT)) as server:

        def change(handler: Handler) -> None:
            handler.serve(cut=500_000)
            server.content = CONTENT
            server.validators = {"ETag": '"2"'}

        def continue_anyway(handler: Handler) -> None:
            del handler.headers["If-Range"]
            handler.serve()

        server.script = [change, continue_anyway]
        get(server, tmp_path / "file", sha256=())
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_wrong_hash_leaves_nothing_behind(tmp_path: Path) -> None:
    with (
        serving(CONTENT) as server,
        pytest.raises(DownloadError, match=r"sha256 [0-9a-f]{64}, expected 0000"),
    ):
        get(server, tmp_path / "file", sha256=("0" * 64,))
    assert not list(tmp_path.iterdir())


def test_any_of_several_versions_is_accepted(tmp_path: Path) -> None:
    with serving(CONTENT) as server:
        assert get(server, tmp_path / "file", sha256=("0" * 64, SHA256)) == SHA256


def test_a_wrong_size_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with (
        serving(CONTENT) as server,
        pytest.raises(DownloadError, match=f"has {len(CONTENT)} bytes, expected 10"),
    ):
        get(server, tmp_path / "file", bytes=10)
    assert not (tmp_path / "file").exists()


def test_a_body_longer_than_it_may_be_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1000)

    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(CONTENT)

    with (
        serving(CONTENT, endless) as server,
        pytest.raises(DownloadError, match="more than 1000 bytes"),
    ):
        get(server, tmp_path / "file", bytes=None, sha256=())


def test_redirects_are_followed(tmp_path: Path) -> None:
    with serving(CONTENT) as server:
        server.script = [reply(302, Location=server.url + "?moved")]
        get(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.org/a"])
def test_redirects_to_other_schemes_are_refused(tmp_path: Path, target: str) -> None:
    turn = reply(302, Location=target)
    with serving(CONTENT, *[turn] * ATTEMPTS) as server, pytest.raises(DownloadError):
        get(server, tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_redirect_from_https_to_http_is_refused() -> None:
    request = module.urllib.request.Request("https://example.org/a")
    with pytest.raises(DownloadError, match="refused a redirect to http://example"):
        module._Redirects().redirect_request(
            request, None, 302, "", {}, "http://example.org/b"
        )  # type: ignore[arg-type]


def test_a_missing_file_is_not_tried_again(tmp_path: Path) -> None:
    with (
        serving(CONTENT, reply(404)) as server,
        pytest.raises(DownloadError, match="HTTP 404"),
    ):
        get(server, tmp_path / "file")
    assert len(server.requests) == 1


def test_a_login_is_named(tmp_path: Path) -> None:
    with (
        serving(CONTENT, reply(401)) as server,
        pytest.raises(DownloadError, match="asks you to log in"),
    ):
        get(server, tmp_path / "file")


def test_a_busy_server_is_tried_again_after_the_time_it_asks_for(
    tmp_path: Path,
) -> None:
    waited: list[float] = []
    with serving(CONTENT) as server:
        server.script = [
            reply(503, **{"Retry-After": "7"}),
            reply(429, **{"Retry-After": "100000"}),
            reply(500, **{"Retry-After": "tomorrow"}),
        ]
        get(server, tmp_path / "file", pause=waited.append)
    assert waited == [7.0, 60.0, 4.0]


def test_the_second_address_is_used_if_the_first_fails(tmp_path: Path) -> None:
    with serving(CONTENT) as server:
        server.script = [reply(404)]
        urls = (server.url + "?first", server.url)
        fetch(urls, tmp_path / "file", bytes=len(CONTENT), sha256=(SHA256,))
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_partial_file_of_another_address_is_not_continued(tmp_path: Path) -> None:
    with serving(CONTENT) as server:
        server.script = [cut_after(1000)] * ATTEMPTS
        with pytest.raises(DownloadError):
            get(server, tmp_path / "file")
        fetch(
            (server.url + "?other",),
            tmp_path / "file",
            bytes=len(CONTENT),
            sha256=(SHA256,),
        )
        assert "Range" not in server.requests[-1]


def test_a_partial_file_that_the_server_does_not_know_is_dropped(
    tmp_path: Path,
) -> None:
    with serving(CONTENT) as server:
        server.script = [cut_after(1000)] * ATTEMPTS
        with pytest.raises(DownloadError):
            get(server, tmp_path / "file", bytes=None)
        server.content = CONTENT[:500]
        server.script = []
        get(server, tmp_path / "file", bytes=None, sha256=())
    assert (tmp_path / "file").read_bytes() == CONTENT[:500]


def test_an_invalid_content_range_is_refused(tmp_path: Path) -> None:
    turn = reply(206, **{"Content-Range": "bytes x"})
    with (
        serving(CONTENT, turn) as server,
        pytest.raises(DownloadError, match="invalid Content-Range"),
    ):
        get(server, tmp_path / "file")


def test_a_full_disk_is_told_before_downloading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        free = 10

    monkeypatch.setattr(module.shutil, "disk_usage", lambda folder: Full)
    with (
        serving(CONTENT) as server,
        pytest.raises(DownloadError, match="10 bytes free"),
    ):
        get(server, tmp_path / "file")


def test_a_server_that_is_away_is_named(tmp_path: Path) -> None:
    with serving(CONTENT) as server:
        pass
    with pytest.raises(DownloadError, match="cannot be reached"):
        get(server, tmp_path / "file")
