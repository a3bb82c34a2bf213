"""A local HTTP server that speaks the parts of the Anthropic and OpenAI APIs that writers use."""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

Reply = dict[str, Any]
"""status, text, stop (finish or stop reason), refusal, headers, delay (seconds), input_tokens, output_tokens: what one
call is answered with; all optional.
"""


class Provider:
    """The state of the server: what was asked, what is answered, which batches there are."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.replies: list[Reply] = []
        self.batches: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.polls_until_done = 1
        self.expire: set[str] = set()
        self.write: Callable[[dict[str, Any]], Reply] = lambda given: {}
        self.on_batch: Callable[[], None] = lambda: None
        self.lock = threading.Lock()
        self.url = ""

    def next_reply(self, given: dict[str, Any]) -> Reply:
        """The next of the prepared replies, or what `write` makes of the request."""
        with self.lock:
            return self.replies.pop(0) if self.replies else self.write(given)


def anthropic_message(reply: Reply) -> dict[str, Any]:
    return {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [
            {"type": "text", "text": reply.get("text", '{"question": "Where?"}')}
        ],
        "stop_reason": reply.get("stop", "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.get("input_tokens", 100),
            "output_tokens": reply.get("output_tokens", 20),
        },
    }


def openai_completion(reply: Reply) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "content": reply.get("text", '{"question": "Where?"}'),
        "refusal": reply.get("refusal"),
    }
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": reply.get("stop", "stop"),
        "logprobs": None,
    }
    return {
        "id": "chat",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-test",
        "choices": [choice],
        "usage": {
            "prompt_tokens": reply.get("input_tokens", 100),
            "completion_tokens": reply.get("output_tokens", 20),
            "total_tokens": 120,
        },
    }


class _Handler(BaseHTTPRequestHandler):
    provider: Provider
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.split("?")[0]
        if path == "/v1/files":
            return self._upload(body)
        given = json.loads(body)
        if path == "/v1/messages/batches":
            return self._start(given["requests"], {}, anthropic_batch)
        if path == "/v1/batches":
            lines = self.provider.files[given["input_file_id"]].splitlines()
            return self._start(
                [json.loads(line) for line in lines], given, openai_batch
            )
        with self.provider.lock:
            self.provider.calls.append(given)
        reply = self.provider.next_reply(given)
        time.sleep(reply.get("delay", 0.0))
        if reply.get("status", 200) != 200:
            error = {
                "type": "error",
                "error": {"type": "api_error", "message": reply.get("text", "broken")},
            }
            return self._send(error, reply["status"], reply.get("headers", {}))
        return self._send(
            anthropic_message(reply)
            if path == "/v1/messages"
            else openai_completion(reply)
        )

    def do_GET(self) -> None:
        parts = self.path.split("?")[0].strip("/").split("/")
        anthropic = parts[1] == "messages"
        show = anthropic_batch if anthropic else openai_batch
        rest = parts[3:] if anthropic else parts[2:]
        if parts[1] == "files":
            return self._send_lines(self.provider.files[parts[2]])
        if not rest:
            found = [show(batch) for batch in reversed(self.provider.batches.values())]
            return self._send(
                {
                    "data": found,
                    "has_more": False,
                    "first_id": None,
                    "last_id": None,
                    "object": "list",
                }
            )
        batch = self.provider.batches[rest[0]]
        if rest[1:] == ["results"]:
            return self._send_lines(anthropic_results(batch, self.provider))
        batch["polls"] += 1
        batch["done"] = batch["polls"] >= self.provider.polls_until_done
        if batch["done"] and not anthropic:
            self.provider.files[f"out-{batch['id']}"] = openai_results(
                batch, self.provider
            )
        return self._send(show(batch))

    def _start(
        self,
        requests: list[Any],
        given: dict[str, Any],
        show: Callable[[dict[str, Any]], Any],
    ) -> None:
        id = f"batch{len(self.provider.batches)}"
        batch = {
            "id": id,
            "url": self.provider.url,
            "requests": requests,
            "metadata": given.get("metadata"),
            "polls": 0,
            "done": False,
        }
        self.provider.batches[id] = batch
        self.provider.on_batch()
        self._send(show(batch))

    def _upload(self, body: bytes) -> None:
        id = f"file{len(self.provider.files)}"
        start = body.index(b'{"custom_id"')
        self.provider.files[id] = body[start : body.rindex(b"\r\n--")]
        self._send(
            {
                "id": id,
                "object": "file",
                "bytes": 1,
                "created_at": 1,
                "filename": "x",
                "purpose": "batch",
                "status": "ok",
            }
        )

    def _send(
        self, content: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self._send_lines(
            json.dumps(content).encode(), status, headers, kind="application/json"
        )

    def _send_lines(
        self,
        data: bytes,
        status: int = 200,
        headers: dict[str, str] | None = None,
        kind: str = "application/x-jsonl",
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def anthropic_batch(batch: dict[str, Any]) -> dict[str, Any]:
    counts = dict.fromkeys(
        ("canceled", "errored", "expired", "processing", "succeeded"), 0
    )
    counts["succeeded" if batch["done"] else "processing"] = len(batch["requests"])
    return {
        "id": batch["id"],
        "type": "message_batch",
        "processing_status": "ended" if batch["done"] else "in_progress",
        "request_counts": counts,
        "created_at": "2099-01-01T00:00:00Z",
        "expires_at": "2099-01-02T00:00:00Z",
        "results_url": f"{batch['url']}/v1/messages/batches/{batch['id']}/results"
        if batch["done"]
        else None,
    }


def openai_batch(batch: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": batch["id"],
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "input_file_id": "file0",
        "created_at": 1,
        "status": "completed" if batch["done"] else "in_progress",
        "metadata": batch["metadata"],
        "output_file_id": f"out-{batch['id']}" if batch["done"] else None,
    }


def anthropic_results(batch: dict[str, Any], provider: Provider) -> bytes:
    lines = []
    for entry in reversed(batch["requests"]):
        expired = entry["custom_id"] in provider.expire
        good = {
            "type": "succeeded",
            "message": anthropic_message(provider.write(entry["params"])),
        }
        lines.append(
            {
                "custom_id": entry["custom_id"],
                "result": {"type": "expired"} if expired else good,
            }
        )
    return "\n".join(map(json.dumps, lines)).encode()


def openai_results(batch: dict[str, Any], provider: Provider) -> bytes:
    lines = []
    for entry in reversed(batch["requests"]):
        response = {
            "status_code": 200,
            "body": openai_completion(provider.write(entry["body"])),
        }
        if entry["custom_id"] in provider.expire:
            line: dict[str, Any] = {
                "response": None,
                "error": {"code": "batch_expired", "message": "late"},
            }
        else:
            line = {"response": response, "error": None}
        lines.append({"custom_id": entry["custom_id"], **line})
    return "\n".join(map(json.dumps, lines)).encode()


@contextlib.contextmanager
def serve_provider() -> Iterator[Provider]:
    provider = Provider()
    handler = type("Handler", (_Handler,), {"provider": provider})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        provider.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()


def remove_keys(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the environment one without any key, with an empty home directory."""
    monkeypatch.setenv("HOME", str(home))
    for name in [*os.environ]:
        if name.startswith(("ANTHROPIC_", "OPENAI_")):
            monkeypatch.delenv(name)
