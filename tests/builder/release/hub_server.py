"""A local server that speaks the part of the Hugging Face hub's API that uploading a folder uses."""

import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_test"


class HubHandler(BaseHTTPRequestHandler):
    """Routes of one dataset repository."""

    server: "HubServer"
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._route("GET")

    def do_POST(self) -> None:
        self._route("POST")

    def do_PUT(self) -> None:
        self._route("PUT")

    def _route(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = unquote(urlsplit(self.path).path)
        self.server.calls.append(f"{method} {path}")
        if path.startswith("/storage/"):
            self._store(path.removeprefix("/storage/"), body)
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._reply(401, {"error": "Invalid username or password."})
        elif self.server.fail is not None:
            self._reply(*self.server.fail)
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif path == "/api/whoami-v2":
            self._reply(200, {"name": "someone", "type": "user"})
        elif path == "/api/validate-yaml":
            self._reply(200, {"errors": [], "warnings": []})
        elif self.server.repository is None or f"/{self.server.repository}" not in path:
            self._reply(404, {"error": "Repository not found"})
        else:
            self._in_repository(path, body)

    def _in_repository(self, path: str, body: bytes) -> None:
        if "/tree/" in path:
            self._reply(200, [self._entry(name) for name in self.server.files])
        elif "/revision/" in path or path.endswith(str(self.server.repository)):
            self._reply(
                200, {"id": self.server.repository, "sha": "0" * 40, "siblings": []}
            )
        elif "/preupload/" in path:
            names = [file["path"] for file in json.loads(body)["files"]]
            modes = {
                name: "lfs" if name.endswith(".parquet") else "regular"
                for name in names
            }
            files = [
                {"path": name, "uploadMode": mode, "shouldIgnore": False}
                for name, mode in modes.items()
            ]
            self._reply(200, {"files": files})
        elif path.endswith("/info/lfs/objects/batch"):
            self._batch(json.loads(body))
        elif "/commit/" in path:
            self._commit(body)
        else:
            self._reply(404, {"error": f"unknown route {path}"})

    def _create(self, asked: dict[str, Any]) -> None:
        name = f"{asked.get('organization') or 'someone'}/{asked['name']}"
        self.server.repository = name
        self.server.created = asked
        self._reply(200, {"url": f"{self.server.address}/datasets/{name}"})

    def _batch(self, asked: dict[str, Any]) -> None:
        objects = [
            {
                "oid": item["oid"],
                "size": item["size"],
                "actions": {
                    "upload": {"href": f"{self.server.address}/storage/{item['oid']}"}
                },
            }
            for item in asked["objects"]
        ]
        self._reply(200, {"transfer": "basic", "objects": objects})

    def _store(self, oid: str, body: bytes) -> None:
        assert hashlib.sha256(body).hexdigest() == oid
        self.server.storage[oid] = body
        self._reply(200, {})

    def _commit(self, body: bytes) -> None:
        for line in map(json.loads, body.decode().splitlines()):
            value = line["value"]
            if line["key"] == "header":
                self.server.messages.append(value["summary"])
            elif line["key"] == "file":
                self.server.files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                self.server.files[value["path"]] = self.server.storage[value["oid"]]
            elif line["key"] == "deletedFile":
                del self.server.files[value["path"]]
        url = (
            f"{self.server.address}/datasets/{self.server.repository}/commit/{'1' * 40}"
        )
        response = {"success": True, "commitUrl": url, "commitOid": "1" * 40}
        if "create_pr=1" in self.path:
            discussion = f"{self.server.address}/{self.server.repository}/discussions/7"
            response["pullRequestUrl"] = discussion
        self._reply(200, response)

    def _entry(self, name: str) -> dict[str, Any]:
        return {
            "type": "file",
            "path": name,
            "size": len(self.server.files[name]),
            "oid": "0" * 40,
        }

    def _reply(self, status: int, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class HubServer(ThreadingHTTPServer):
    """`files`: what the repository holds. `fail`: status and body of every answer, if not None."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HubHandler)
        self.repository: str | None = None
        self.created: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}
        self.storage: dict[str, bytes] = {}
        self.messages: list[str] = []
        self.calls: list[str] = []
        self.fail: tuple[int, Any] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def hub() -> Iterator[HubServer]:
    server = HubServer()
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
