"""Questions about uploaded images, over HTTP."""

import concurrent.futures
import http.client
import io
import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from PIL import Image

from maskwise.masks import Mask
from maskwise.schema import Answer, PredictedRegion, Prediction, earlier_turns
from maskwise.server import encoding_cache, image_uploads, model_pool
from maskwise.server.limits import RequestLimits
from maskwise.server.model_process import ModelProcess
from tests.server.fake import InThisProcess, Whole
from tests.server.test_server import call, serving


def png(width: int = 8, height: int = 6, seed: int = 0) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


class HalfHidden:
    """Answers with a region whose right half is hidden, and notes what it encodes."""

    name = "half"

    def __init__(self) -> None:
        self.encoded: list[tuple[int, int]] = []
        self.asked: list[str] = []
        self.started = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        return self.encode(image).answer(questions)

    def encode(self, image: Image.Image) -> "HalfHidden":
        self.encoded.append(image.size)
        self.size = image.size
        return self

    def answer(self, questions: Sequence[str]) -> list[Prediction]:
        self.asked += questions
        if questions[0] == "wait":
            self.started.set()
        self.go_on.wait(300)
        whole = np.ones((self.size[1], self.size[0]), np.bool_)
        left = whole.copy()
        left[:, self.size[0] // 2 :] = False
        region = PredictedRegion(
            visible=Mask.from_dense(left), amodal=Mask.from_dense(whole), name="cup"
        )
        text = Answer(text=f"The cup: {questions[0]}")
        return [Prediction(answer=text, mask_type="amodal", regions=(region,))]

    def mask_type_probability(self, question: str) -> float:
        return 0.75

    def domain_warning(self, image: Image.Image) -> str:
        return "unlike my images"


def send(
    address: str, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    """A request with the token for writing."""
    token = call(address, "GET", "/v1/session")[1]["token"]
    return call(address, method, path, body, Authorization=f"Bearer {token}", **headers)


def upload(address: str, data: bytes) -> str:
    status, stored = send(
        address, "POST", "/v1/images", data, Content_Type="application/octet-stream"
    )
    assert status == 200, stored
    identity: str = stored["id"]
    return identity


def ask(address: str, image: str, question: str, **more: Any) -> tuple[int, Any]:
    return send(
        address, "POST", "/v1/ask", {"image": image, "question": question, **more}
    )


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(
        Whole(),
        limits=RequestLimits(body_bytes=20_000, pixels=5000, question_characters=30),
    ) as where:
        yield where


def test_an_image_is_encoded_once_for_all_its_questions() -> None:
    model = HalfHidden()
    with serving(model) as address:
        image = upload(address, png())
        status, first = ask(address, image, "one")
        _, second = ask(address, image, "two")
    assert status == 200
    assert model.encoded == [(8, 6)]
    assert (
        first["answer"]["encoding_reused"],
        second["answer"]["encoding_reused"],
    ) == (False, True)
    assert second["answer"]["prediction"]["answer"]["text"] == "The cup: two"
    assert first["image"] == {"id": image, "width": 8, "height": 6}


class OwnEncode:
    """A model whose `encode` is its own affair, as in the example of docs/guides/adapters.md."""

    def encode(self, image: Image.Image) -> tuple[int, int]:
        return image.size

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        return [
            Prediction(answer=Answer(text=f"{self.encode(image)} {text}"))
            for text in questions
        ]


def test_a_model_with_another_kind_of_encode_is_asked_by_predict() -> None:
    with serving(OwnEncode()) as address:
        status, said = ask(address, upload(address, png()), "one")
    assert (status, said["answer"]["prediction"]["answer"]["text"]) == (
        200,
        "(8, 6) one",
    )


def test_an_answer_tells_probability_occlusion_and_domain() -> None:
    with serving(HalfHidden()) as address:
        _, said = ask(address, upload(address, png()), "one")
    answer = said["answer"]
    assert answer["mask_type_probability"] == 0.75
    assert answer["occlusion_rates"] == [0.5]
    assert answer["domain_warning"] == "unlike my images"
    assert answer["prediction"]["mask_type"] == "amodal"


def test_a_model_in_its_process_keeps_encodings_and_gets_the_image_again_after_a_restart() -> (
    None
):
    process = ModelProcess("tests.server.fake:Whole", {}, max_pixels=5000)
    with serving(process) as address:
        image = upload(address, png())
        said = [ask(address, image, text) for text in ("one", "two", "die", "three")]
    assert [status for status, _ in said] == [200, 200, 500, 200]
    reused = [
        content["answer"]["encoding_reused"]
        for status, content in said
        if status == 200
    ]
    assert reused == [False, True, False]


def test_the_cache_of_encodings_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding_cache, "MAX_IMAGES", 2)
    model = HalfHidden()
    with serving(model) as address:
        images = [upload(address, png(seed=seed)) for seed in range(3)]
        for image in (*images, images[2], images[0]):
            assert ask(address, image, "q")[0] == 200
    assert len(model.encoded) == 4


def test_uploaded_images_are_bounded_and_the_oldest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(image_uploads, "MAX_IMAGES", 2)
    with serving(Whole()) as address:
        images = [upload(address, png(seed=seed)) for seed in range(3)]
        status, said = ask(address, images[0], "q")
        assert (status, "upload it (again)" in said["error"]) == (404, True)
        assert ask(address, images[2], "q")[0] == 200


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        (b"", 422, "cannot be read"),
        (b"not an image", 422, "cannot be read"),
        (png()[:40], 422, "cannot be read"),
        (png(200, 100), 413, "larger than 20000 bytes"),
    ],
)
def test_uploads_that_are_no_images_or_too_large_are_rejected(
    address: str, data: bytes, status: int, message: str
) -> None:
    got, said = send(
        address, "POST", "/v1/images", data, Content_Type="application/octet-stream"
    )
    assert (got, message in said["error"]) == (status, True), said
    assert ask(address, upload(address, png()), "still here")[0] == 200


def test_pixels_are_limited_by_the_header_alone(address: str) -> None:
    buffer = io.BytesIO()
    Image.new("1", (3000, 2000)).save(buffer, "PNG")
    status, said = send(
        address, "POST", "/v1/images", buffer.getvalue(), Content_Type="image/png"
    )
    assert (
        status,
        "3000 x 2000 pixels; the limits are 5000 pixels" in said["error"],
    ) == (422, True)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"image": "x", "question": "q"}, 404, "no image 'x'"),
        ({"image": "x"}, 400, "question"),
        ({"image": "x", "question": "q", "extra": 1}, 400, "extra"),
        ({"image": "x", "question": "  "}, 422, "empty"),
        ({"image": "x", "question": "q" * 31}, 422, "more than 30 characters"),
        (b"{", 400, "invalid request"),
    ],
)
def test_invalid_questions_are_rejected(
    address: str, body: Any, status: int, message: str
) -> None:
    got, said = send(address, "POST", "/v1/ask", body)
    assert (got, message in said["error"]) == (status, True), said


def test_writing_needs_the_token_and_the_right_content_type(address: str) -> None:
    for path in ("/v1/ask", "/v1/images", "/v1/models/whole"):
        assert call(address, "POST", path, {})[0] == 401
        assert call(address, "POST", path, {}, Authorization="Bearer wrong")[0] == 401
    assert send(address, "POST", "/v1/ask", {}, Content_Type="text/plain")[0] == 415


def test_a_server_with_a_token_shows_nothing_without_it() -> None:
    with serving(Whole(), token="s3cret") as address:
        for path in (
            "/v1/session",
            "/v1/models",
            "/v1/examples",
            "/v1/images/x",
            "/v1/datasets",
            "/metrics",
        ):
            assert call(address, "GET", path)[0] == 401
        assert call(address, "GET", "/v1/session", Authorization="Bearer s3cret") == (
            200,
            {"token": "s3cret"},
        )


def test_an_uploaded_image_comes_back_in_a_format_that_browsers_show(
    address: str,
) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(buffer, "TIFF")
    image = upload(address, buffer.getvalue())
    connection = http.client.HTTPConnection(
        address.removeprefix("http://"), timeout=300
    )
    connection.request("GET", f"/v1/images/{image}")
    response = connection.getresponse()
    content = response.read()
    connection.close()
    assert response.headers["Content-Type"] == "image/png"
    assert Image.open(io.BytesIO(content)).size == (8, 6)


def test_a_model_is_started_when_it_is_chosen_and_the_idle_one_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_pool, "MAX_RUNNING", 2)
    started: dict[str, HalfHidden] = {}

    def start(name: str) -> InThisProcess:
        started[name] = HalfHidden()
        return InThisProcess(started[name], 10_000)

    with serving(Whole(), names=("a", "b"), start=start) as address:
        image = upload(address, png())
        assert ask(address, image, "q", model="a")[1]["model"] == "a"
        assert ask(address, image, "q", model="b")[1]["model"] == "b"
        running = {
            one["name"]: one["running"] for one in call(address, "GET", "/v1/models")[1]
        }
        assert ask(address, image, "q", model="unknown")[0] == 404
        assert ask(address, image, "q")[1]["model"] == "whole"
    assert running == {"whole": True, "a": False, "b": True}


def test_a_model_that_needs_an_option_is_described_too() -> None:
    with serving(Whole(), names=("vlm",)) as address:
        described = {
            one["name"]: one["description"]
            for one in call(address, "GET", "/v1/models")[1]
        }
    assert described["vlm"].startswith("a trained vision-language model")


def test_a_model_that_starts_slowly_does_not_delay_the_others() -> None:
    starting = threading.Event()
    go_on = threading.Event()

    def start(name: str) -> InThisProcess:
        starting.set()
        go_on.wait(300)
        return InThisProcess(HalfHidden(), 10_000)

    with serving(Whole(), names=("slow",), start=start) as address:
        image = upload(address, png())
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            slow = thread.submit(ask, address, image, "q", model="slow")
            assert starting.wait(300)
            assert ask(address, image, "q")[1]["model"] == "whole"
            go_on.set()
            assert slow.result()[1]["model"] == "slow"


def test_a_model_that_cannot_be_loaded_is_reported() -> None:
    def start(name: str) -> ModelProcess:
        return ModelProcess("tests.server.fake:Missing", {}, max_pixels=100)

    with serving(Whole(), names=("broken",), start=start) as address:
        status, said = send(address, "POST", "/v1/models/broken", {})
    assert (status, "'broken' cannot be loaded here" in said["error"]) == (422, True)


def test_two_hundred_questions_at_once_are_answered_and_clients_take_turns() -> None:
    """One client sends 150 questions, others a few: the others are not behind all 150."""
    model = HalfHidden()
    with serving(model) as address:
        token = call(address, "GET", "/v1/session")[1]["token"]
        image = upload(address, png())
        assert ask(address, image, "first")[0] == 200
        model.go_on.clear()

        def ask_from(source: str, question: str) -> int:
            host = address.removeprefix("http://")
            connection = http.client.HTTPConnection(
                host, timeout=300, source_address=(source, 0)
            )
            body = json.dumps({"image": image, "question": question})
            headers = {
                "Content-Type": "application/json",
                "Authorization": f"Bearer {token}",
            }
            connection.request("POST", "/v1/ask", body, headers)
            response = connection.getresponse()
            response.read()
            connection.close()
            return response.status

        asked = [("127.0.0.2", f"many {n}") for n in range(50)] + [
            ("127.0.0.3", f"many {n}") for n in range(50)
        ]
        asked += [("127.0.0.4", f"many {n}") for n in range(50)] + [
            ("127.0.0.5", f"some {n}") for n in range(50)
        ]
        with concurrent.futures.ThreadPoolExecutor(200) as threads:
            waiting = [threads.submit(ask_from, *one) for one in asked[:1]]
            while len(model.asked) < 2:
                pass
            waiting += [threads.submit(ask_from, *one) for one in asked[1:150]]
            _wait_for_queue(address, 150)
            waiting += [threads.submit(ask_from, *one) for one in asked[150:]]
            _wait_for_queue(address, 200)
            model.go_on.set()
            statuses = [one.result() for one in waiting]
    assert statuses == [200] * 200
    first = model.asked[2:42]
    assert sum(question.startswith("some") for question in first) >= 9
    assert len(model.encoded) == 1


def _wait_for_queue(address: str, length: int) -> None:
    waiting = 0.0
    while waiting < length:
        waiting = _metrics(address)["maskwise_questions_waiting"]


def _metrics(address: str) -> dict[str, float]:
    connection = http.client.HTTPConnection(
        address.removeprefix("http://"), timeout=300
    )
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    lines = [
        line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")
    ]
    return {name: float(value) for name, _, value in lines}


def test_metrics_count_requests_by_route_and_model_time(address: str) -> None:
    image = upload(address, png(seed=9))
    ask(address, image, "q")
    found = _metrics(address)
    assert (
        found['maskwise_requests_total{method="POST",route="/v1/ask",status="200"}']
        >= 1
    )
    assert found['maskwise_model_seconds_count{encoding="new",model="whole"}'] >= 1
    assert not any(image in name for name in found)


class Recalls(Whole):
    """Answers with the earlier questions."""

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        return [
            Prediction(
                answer=Answer(
                    text=" | ".join(turn.question for turn in earlier_turns(question))
                    or "none"
                ),
                no_target=True,
            )
            for question in questions
        ]


def test_earlier_turns_reach_the_model_within_limits() -> None:
    limits = RequestLimits(turns=2, question_characters=30)
    turn = {"question": "the red cup", "answer": "It is here."}
    with serving(Recalls(), limits=limits) as address:
        image = upload(address, png())
        status, reply = ask(address, image, "And its handle?", turns=[turn])
        assert status == 200
        assert reply["answer"]["prediction"]["answer"]["text"] == "the red cup"
        _, reply = ask(address, image, "And its handle?")
        assert reply["answer"]["prediction"]["answer"]["text"] == "none"
        assert ask(address, image, "And?", turns=[turn] * 3)[0] == 422
        long = {"question": "x", "answer": "x" * 31}
        assert ask(address, image, "And?", turns=[long])[0] == 422
        assert ask(address, image, "And?", turns=[{"question": " "}])[0] == 422
        assert ask(address, image, "And?", turns=[{"text": "x"}])[0] in (400, 422)
