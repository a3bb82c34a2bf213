"""The server on a free port, asked by the real client and by hostile ones."""

import base64
import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from maskwise.cli.main import app as command_line
from maskwise.errors import MaskwiseError, ModelError, ModelGoneError
from maskwise.harness.http_model import HttpModel
from maskwise.harness.predictor import describe_model
from maskwise.harness.registry import make_predictor
from maskwise.server.browse import BrowsedDataset
from maskwise.server.connections import ConnectionLimits
from maskwise.server.http_server import is_local, open_server
from maskwise.server.limits import RequestLimits
from maskwise.server.model_pool import ModelPool
from maskwise.server.model_process import ServedModel
from maskwise.server.model_worker import ModelWorker
from maskwise.server.serve import make_model_app
from maskwise.store import Dataset
from tests.server.fake import InThisProcess, Whole

IMAGE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8))


@contextmanager
def serving(
    model: Any,
    *,
    token: str | None = None,
    limits: RequestLimits | None = None,
    connections: ConnectionLimits | None = None,
    port: int = 0,
    names: tuple[str, ...] = (),
    start: Callable[[str], ServedModel] | None = None,
    browsed: dict[str, BrowsedDataset] | None = None,
    examples: Dataset | None = None,
) -> Iterator[str]:
    """The address of a server that runs in a thread. model: a model object, or one that is ready to be served."""
    limits = limits or RequestLimits()
    served: ServedModel = (
        model if hasattr(model, "facts") else InThisProcess(model, limits.pixels)
    )
    worker = ModelWorker(served)
    pool = ModelPool(served.facts.name, worker, names=names, start=start)
    app = make_model_app(
        pool, worker, token, limits, browsed=browsed, examples=examples
    )
    server = open_server(
        app, "127.0.0.1", port, has_token=token is not None, limits=connections
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.address
    finally:
        server.server.should_exit = True
        thread.join(300)
        pool.close()
        assert not thread.is_alive()


def call(
    address: str, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    """Status and decoded body of one plain request. A header given as host_ replaces the client's own."""
    connection = http.client.HTTPConnection(
        address.removeprefix("http://"), timeout=300
    )
    sent = {"Content-Type": "application/json"} | {
        name.strip("_").replace("_", "-"): value for name, value in headers.items()
    }
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    try:
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def request(*questions: str, image: Image.Image = IMAGE) -> dict[str, Any]:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    png = base64.b64encode(buffer.getvalue()).decode()
    return {"id": "q", "image": {"png": png}, "questions": list(questions or ["what?"])}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    small = RequestLimits(
        body_bytes=20_000, pixels=100, questions=3, question_characters=20
    )
    with serving(Whole(), limits=small) as where:
        yield where


# -- the real client


def test_the_client_gets_the_models_predictions() -> None:
    model = Whole()
    with serving(model) as address:
        client = make_predictor(address)
        found = client.predict(IMAGE, ["a", "b"])  # type: ignore[union-attr]
    assert found == Whole().predict(IMAGE, ["a", "b"])
    assert model.asked == [((8, 6), ["a", "b"])]
    assert model.closed


def test_the_client_knows_which_model_is_served() -> None:
    with serving(Whole()) as address:
        client = HttpModel(address + "/")
        facts = describe_model(client, address, {})
        assert client.predict(IMAGE, []) == []
    assert (facts.name, facts.weights_hash, facts.config) == (
        "whole",
        "abc",
        {"server": {"side": 3}},
    )


@pytest.mark.parametrize("question", ["raise", "exit", "few"])
def test_a_model_error_fails_one_request_and_is_not_retried(question: str) -> None:
    model = Whole()
    with serving(model) as address:
        client = HttpModel(address)
        with pytest.raises(
            ModelError, match="the model failed on this request"
        ) as caught:
            client.predict(IMAGE, [question, "b"])
        assert len(client.predict(IMAGE, ["after"])) == 1
    assert not isinstance(caught.value, ModelGoneError)
    assert [questions[0] for _, questions in model.asked] == [question, "after"]


def test_what_a_model_raised_is_in_the_log_and_not_in_the_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(Whole()) as address:
        status, said = call(address, "POST", "/v1/predict", request("raise"))
        again = call(address, "POST", "/v1/predict", request("raise"))
    assert (status, said["id"]) == (500, "q")
    assert again == (status, said)
    assert "fake.py" not in said["error"]
    number = re.search("failure ([0-9a-f]{8})", said["error"])
    assert number is not None
    assert number[1] in caplog.text
    assert "no weights in" in caplog.text
    assert "\x1b" not in caplog.text


def test_another_model_at_the_same_address_is_detected() -> None:
    model = Whole()
    with serving(model) as address:
        client = HttpModel(address)
        port = int(address.rpartition(":")[2])
    other = Whole()
    other.weights_hash = "def"
    with serving(other, port=port):
        with pytest.raises(ModelGoneError, match="has another model now"):
            client.predict(IMAGE, ["a"])
        assert len(HttpModel(address).predict(IMAGE, ["a"])) == 1


def test_too_large_input_fails_one_request(address: str) -> None:
    client = HttpModel(address)
    with pytest.raises(ModelError, match=r"413.*larger than 20000 bytes"):
        client.predict(Image.effect_noise((300, 300), 90), ["a"])
    with pytest.raises(
        ModelError, match=r"422.*20 x 20 pixels, more than the limit of 100"
    ):
        client.predict(Image.new("RGB", (20, 20)), ["a"])
    assert len(client.predict(IMAGE, ["a"])) == 1


def test_the_clients_timeout_is_kept() -> None:
    model = Whole()
    with serving(model) as address:
        client = HttpModel(address, timeout=0.2)
        with pytest.raises(ModelError, match=r"did not respond within 0.2 seconds"):
            client.predict(IMAGE, ["wait"])
        model.go_on.set()


def test_a_token_is_required_from_every_client(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Whole(), token="s3cret") as address:
        assert call(address, "GET", "/healthz") == (200, {"status": "ok"})
        for given in ("", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret"):
            status, said = call(
                address, "POST", "/v1/predict", request(), Authorization=given
            )
            assert (status, said["error"]) == (
                401,
                "expected the header Authorization: Bearer TOKEN",
            )
        monkeypatch.delenv("MASKWISE_TOKEN", raising=False)
        with pytest.raises(ModelGoneError, match="MASKWISE_TOKEN"):
            HttpModel(address).predict(IMAGE, ["a"])
        monkeypatch.setenv("MASKWISE_TOKEN", "s3cret")
        client = HttpModel(address)
        assert len(client.predict(IMAGE, ["a"])) == 1
    facts = describe_model(client, address, {})
    assert facts.name == "whole"
    assert "s3cret" not in repr(facts)


# -- hostile clients


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "invalid request"),
        (b"{", 400, "invalid request"),
        (b"\xff\xfe", 400, "invalid request"),
        (b"[" * 5000, 400, "invalid request"),
        ({"id": "q"}, 400, "`image`"),
        ({**request(), "extra": 1}, 400, "unknown field `extra`"),
        ({**request(), "image": {}}, 400, 'either a "path" or a "png"'),
        (
            {**request(), "image": {"path": "/etc/passwd"}},
            400,
            "files are not read here",
        ),
        ({**request(), "image": {"png": "!!!"}}, 400, "base64"),
        ({**request(), "image": {"png": "aGVsbG8="}}, 422, "cannot be read"),
        ({**request(), "questions": []}, 422, "0 questions; expected 1 to 3"),
        ({**request(), "questions": ["a"] * 4}, 422, "4 questions; expected 1 to 3"),
        ({**request(), "questions": ["a" * 21]}, 422, "more than 20 characters"),
        (
            request(image=Image.new("1", (3000, 2000))),
            422,
            "more than the limit of 100",
        ),
        (b" " * 20_001, 413, "larger than 20000 bytes"),
    ],
)
def test_invalid_requests_are_rejected(
    address: str, body: Any, status: int, message: str
) -> None:
    got, said = call(address, "POST", "/v1/predict", body)
    assert got == status
    assert message in said["error"]


def test_a_chunked_body_is_bounded(address: str) -> None:
    connection = http.client.HTTPConnection(
        address.removeprefix("http://"), timeout=300
    )
    chunks = (b" " * 5000 for _ in range(5))
    connection.request(
        "POST", "/v1/predict", chunks, {"Content-Type": "application/json"}
    )
    assert connection.getresponse().status == 413
    connection.close()


def test_a_missing_body_times_out() -> None:
    with serving(Whole(), limits=RequestLimits(body_seconds=0.2)) as address:
        connection = http.client.HTTPConnection(
            address.removeprefix("http://"), timeout=300
        )
        connection.putrequest("POST", "/v1/predict")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "100")
        connection.endheaders()
        assert connection.getresponse().status == 408
        connection.close()


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", ""]
)
def test_content_types_a_web_page_can_send_are_rejected(
    address: str, kind: str
) -> None:
    status, said = call(address, "POST", "/v1/predict", request(), Content_Type=kind)
    assert (status, said["error"]) == (
        415,
        "expected a body of content type application/json",
    )


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[", "a@b:x"],
)
@pytest.mark.parametrize("path", ["/healthz", "/docs", "/v1/predict"])
def test_requests_for_another_host_are_rejected(
    address: str, host: str, path: str
) -> None:
    status, _ = call(
        address, "POST" if "predict" in path else "GET", path, request(), Host=host
    )
    assert status == 421 if host else status in (400, 421)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:9", "127.0.0.1:8000", "[::1]:8000"]
)
def test_requests_for_this_machine_are_answered(address: str, host: str) -> None:
    assert call(address, "GET", "/healthz", Host=host)[0] == 200


def test_unknown_routes_return_json(address: str) -> None:
    assert call(address, "GET", "/v2/predict") == (
        404,
        {"error": "Not Found: see /docs"},
    )
    assert call(address, "GET", "/v1/predict") == (
        405,
        {"error": "Method Not Allowed: see /docs"},
    )


def test_requests_beyond_the_queue_get_503() -> None:
    model = Whole()
    with serving(model, limits=RequestLimits(waiting=1)) as address:
        first: list[int] = []
        waiting = threading.Thread(
            target=lambda: first.append(
                call(address, "POST", "/v1/predict", request("wait"))[0]
            )
        )
        waiting.start()
        assert model.started.wait(300)
        assert call(address, "POST", "/v1/predict", request()) == (
            503,
            {"error": "too many requests are waiting"},
        )
        model.go_on.set()
        waiting.join(300)
        assert first == [200]
        assert call(address, "POST", "/v1/predict", request())[0] == 200


def test_a_disconnected_clients_request_is_dropped() -> None:
    model = Whole()
    with serving(model) as address:
        first = threading.Thread(
            target=call, args=(address, "POST", "/v1/predict", request("wait"))
        )
        first.start()
        assert model.started.wait(300)
        second = http.client.HTTPConnection(
            address.removeprefix("http://"), timeout=300
        )
        body = json.dumps(request("left")).encode()
        second.request(
            "POST", "/v1/predict", body, {"Content-Type": "application/json"}
        )
        call(address, "GET", "/healthz")  # the request has arrived
        second.close()
        call(address, "GET", "/healthz")  # and so has its end
        model.go_on.set()
        first.join(300)
        assert call(address, "POST", "/v1/predict", request("last"))[0] == 200
    assert [questions for _, questions in model.asked] == [["wait"], ["last"]]


def test_the_documentation_page_loads_nothing(address: str) -> None:
    connection = http.client.HTTPConnection(
        address.removeprefix("http://"), timeout=300
    )
    connection.request("GET", "/docs")
    page = connection.getresponse().read().decode()
    connection.close()
    assert "POST /v1/predict" in page
    assert "GET /healthz" in page
    assert re.findall(r'(?:href|src)="([^"]*)"', page) == ["/openapi.json"]


def test_the_openapi_document_describes_requests_and_responses(address: str) -> None:
    status, document = call(address, "GET", "/openapi.json")
    assert status == 200
    route = document["paths"]["/v1/predict"]["post"]
    assert set(route["responses"]) >= {
        "200",
        "400",
        "401",
        "408",
        "413",
        "421",
        "422",
        "500",
        "503",
        "504",
    }
    schemas = document["components"]["schemas"]
    assert "sample" not in schemas["Prediction"]["properties"]
    image = schemas["RequestImage"]
    assert image["required"] == list(image["properties"]) == ["png"]
    assert image["properties"]["png"]["type"] == "string"
    wanted = {
        word
        for word in json.dumps(document).split('"')
        if word.startswith("#/components/schemas/")
    }
    assert {word.rpartition("/")[2] for word in wanted} <= set(schemas)


# -- the command


def run(*arguments: str) -> MaskwiseError:
    done = CliRunner().invoke(command_line, ["serve", *arguments])
    assert isinstance(done.exception, MaskwiseError), done.output
    return done.exception


FAKE = ("--model", "tests.server.fake:Whole")


def test_listening_on_other_addresses_requires_a_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MASKWISE_TOKEN", raising=False)
    assert "needs a token" in str(run(*FAKE, "--host", "0.0.0.0"))
    assert "printable ASCII" in str(run(*FAKE, "--token", " x"))


def test_a_missing_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['litestar'] = None; sys.argv = ['maskwise', 'serve', '--model', 'tiny']; "
        "from maskwise.cli.main import main; main()"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (
        2,
        "maskwise: maskwise serve needs litestar, which is not installed: pip install 'maskwise[web]'\n",
    )


def test_a_used_port_is_named(address: str) -> None:
    port = address.rpartition(":")[2]
    assert f"cannot listen on 127.0.0.1, port {port}" in str(run(*FAKE, "--port", port))


def test_local_hosts_are_recognized() -> None:
    assert all(map(is_local, ("localhost", "127.0.0.1", "127.1.2.3", "::1")))
    assert not any(map(is_local, ("0.0.0.0", "::", "10.0.0.1", "example.org", "")))


def test_the_command_serves_until_interrupted(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    started = subprocess.Popen(
        [sys.executable, "-m", "maskwise.cli.main", "serve", *FAKE, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=root,
        env={
            name: value
            for name, value in os.environ.items()
            if name != "MASKWISE_TOKEN"
        },
    )
    try:
        assert started.stderr is not None
        line = started.stderr.readline()
        assert line.startswith("whole at http://127.0.0.1:"), line
        client = HttpModel(line.split()[2])
        assert len(client.predict(IMAGE, ["a"])) == 1
        started.send_signal(signal.SIGINT)
        _, rest = started.communicate(timeout=300)
    finally:
        started.kill()
        started.wait()
    assert (started.returncode, rest) == (0, "")
