"""Pages, scripts and styles: what is sent with them, and that nothing else can be reached."""

import http.client
import re
from collections.abc import Iterator
from http.client import HTTPResponse

import pytest

from maskwise.server.static_files import FOLDER, read_static_files
from tests.server.fake import Whole
from tests.server.test_server import serving


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(Whole()) as where:
        yield where


def get(address: str, path: str, **headers: str) -> tuple[HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(
        address.removeprefix("http://"), timeout=300
    )
    connection.request(
        "GET",
        path,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


@pytest.mark.parametrize(
    "path", ["/", "/browse", "/docs", "/static/js/rle.js", "/v1/nothing", "/healthz"]
)
def test_every_response_has_the_security_headers(address: str, path: str) -> None:
    response, _ = get(address, path)
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"


def test_files_have_their_type_and_are_revalidated(address: str) -> None:
    response, body = get(address, "/static/js/rle.js")
    assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert body == (FOLDER / "js" / "rle.js").read_bytes()
    again, nothing = get(
        address, "/static/js/rle.js", If_None_Match=response.headers["ETag"]
    )
    assert (again.status, nothing) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/js/",
        "/static/js/x.js",
    ],
)
def test_no_path_leaves_the_folder(address: str, path: str) -> None:
    assert get(address, path)[0].status == 404


def test_pages_load_only_files_that_exist_and_have_no_inline_code() -> None:
    files = read_static_files()
    for name, (content, _, _) in files.items():
        text = content.decode()
        if name.endswith(".html"):
            for link in re.findall(r'(?:href|src)="/static/([^"]+)"', text):
                assert link in files, (name, link)
            assert not re.search(
                r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)", text
            ), name
        if name.endswith(".js"):
            for link in re.findall(r'from "\./([^"]+)"', text):
                assert f"js/{link}" in files, (name, link)
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text
            ), name
        assert not re.search(r"https?://(?!www\.w3\.org)", text), (
            f"{name} names another host"
        )
