"""A model in a child process: whatever it does, one request fails at most, and the next is answered."""

import base64
import hashlib
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maskwise.errors import ModelError, ModelGoneError
from maskwise.harness import subprocess_model
from maskwise.harness.evaluate import evaluate
from maskwise.harness.registry import make_predictor
from maskwise.harness.subprocess_model import SubprocessModel
from maskwise.harness.wire_format import encode_command_request
from maskwise.schema import Answer, Sample
from tests.harness.clock import Clock
from tests.harness.fakes import write_dataset

TALKER = Path(__file__).parent / "talker.py"
IMAGE = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
Talk = Callable[..., SubprocessModel]


def command(*arguments: str) -> str:
    return shlex.join([sys.executable, "-S", "-E", str(TALKER), *arguments])


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    """Starts models whose time runs out only where a child says that it will not answer."""
    monkeypatch.setattr(subprocess_model, "time", Clock(tmp_path / "log"))
    monkeypatch.setattr(subprocess_model, "MIN_START_SECONDS", 120.0)
    monkeypatch.setattr(subprocess_model, "EXIT_SECONDS", 120.0)
    opened: list[SubprocessModel] = []

    def start(
        *arguments: str, timeout: float = 600.0, **options: float
    ) -> SubprocessModel:
        model = SubprocessModel(
            command(*arguments), timeout=timeout, log=tmp_path / "log", **options
        )  # type: ignore[arg-type]
        opened.append(model)
        return model

    yield start
    for model in opened:
        model.close()


def texts(model: SubprocessModel, *questions: str) -> list[str]:
    answers = [prediction.answer for prediction in model.predict(IMAGE, questions)]
    return ["" if answer is None else answer.text for answer in answers]


def fails(model: SubprocessModel, *questions: str) -> str:
    with pytest.raises(ModelError) as caught:
        model.predict(IMAGE, questions)
    assert not isinstance(caught.value, ModelGoneError)
    return str(caught.value)


def lives(pid: int) -> bool:
    try:
        # A killed process whose new parent has not yet collected it is dead all the same.
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_it_is_started_once_and_answers_in_order(talk: Talk) -> None:
    model = talk()
    assert texts(model, "a mug", "a lid") == ["A MUG", "A LID"]
    first = model._child
    assert texts(model, "a cup") == ["A CUP"]
    assert model._child is first
    assert model.predict(IMAGE, []) == []


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("garbage", "'epoch 1/10 loss 0.3'"),
        ("half", "the response is invalid"),
        ("bytes", "the response is invalid"),
        ("late", "has the id of another request"),
        ("order", "has the id of another request"),
        ("few", "1 predictions for 2 questions"),
        ("many", "3 predictions for 2 questions"),
        ("error", "the model reports: the image is upside down"),
    ],
)
def test_a_wrong_reply_fails_its_request_alone(
    talk: Talk, how: str, message: str
) -> None:
    model = talk()
    assert texts(model, "before") == ["BEFORE"]
    before = model._child
    assert message in fails(model, how, "second")
    assert texts(model, "after") == ["AFTER"]
    assert model._child is before, "a child that still answers is not started again"


def test_a_reply_without_end_is_not_kept(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess_model, "MAX_RESPONSE_BYTES", 10_000)
    model = talk()
    assert "longer than 10000 bytes" in fails(model, "long")
    assert texts(model, "after") == ["AFTER"]


def test_what_it_prints_before_the_first_reply_fails_that_one_alone(talk: Talk) -> None:
    model = talk("--greet")
    assert "'Loading the model ...'" in fails(model, "first")
    assert texts(model, "second") == ["SECOND"]


def test_what_was_asked_before_may_be_asked_again(talk: Talk) -> None:
    model = talk()
    assert texts(model, "again") == texts(model, "again") == ["AGAIN"]
    fails(model, "garbage")
    before = model._child
    # The reply to the first time may still lie in the pipe and would fit: another child is asked.
    fails(model, "garbage")
    assert model._child is not before
    assert texts(model, "after") == ["AFTER"]


def test_one_malformed_prediction_fails_its_question_alone(talk: Talk) -> None:
    bad, good = talk().predict(IMAGE, ["one bad", "and a good one"])
    assert bad.error is not None
    assert "malformed" in bad.error
    assert good.no_target
    assert good.error is None


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("crash", "the command ended with exit code 3 before it responded"),
        ("killed", "was ended by SIGKILL (out of memory?) before it responded"),
        ("silent", "closed its standard output without a response and was killed"),
    ],
)
def test_a_child_that_dies_is_started_again(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, how: str, message: str
) -> None:
    model = talk()
    assert texts(model, "before") == ["BEFORE"]
    if how == "silent":  # it lives on, which is waited out
        monkeypatch.setattr(subprocess_model, "EXIT_SECONDS", 0.2)
    assert fails(model, how).endswith(message)
    assert texts(model, "after") == ["AFTER"]


def test_how_a_child_died_is_the_same_whether_it_was_just_started(
    talk: Talk, tmp_path: Path
) -> None:
    """A run that is continued asks a fresh child what one that had answered before was asked."""
    fresh = talk("--hum")
    used = talk("--hum")
    assert texts(used, "before") == ["BEFORE"]
    assert fails(fresh, "crash") == fails(used, "crash")
    assert "loading" in (tmp_path / "log").read_text()
    assert "CUDA out of memory" in (tmp_path / "log").read_text()


def test_an_edited_script_is_not_started(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_bytes(TALKER.read_bytes())
    model = SubprocessModel(
        shlex.join([sys.executable, "-S", "-E", str(script)]), log=tmp_path / "log"
    )
    assert texts(model, "before") == ["BEFORE"]
    script.write_bytes(TALKER.read_bytes() + b"\n# another model")
    assert texts(model, "still") == ["STILL"], (
        "the child that runs is what was recorded"
    )
    fails(model, "crash")
    with pytest.raises(
        ModelGoneError, match=r"model\.py has changed since the run began"
    ):
        model.predict(IMAGE, ["after"])


def test_one_that_left_between_two_questions_is_started_again(talk: Talk) -> None:
    model = talk()
    assert texts(model, "leave") == ["LEAVE"]
    assert model._child is not None
    model._child._process.wait(120)
    assert texts(model, "after") == ["AFTER"]


def test_a_child_that_hangs_is_killed_with_all_it_started(
    talk: Talk, tmp_path: Path
) -> None:
    model = talk()
    assert texts(model, "before") == ["BEFORE"]
    problem = fails(model, "hang", "second")
    assert (
        "the command did not respond within 600 seconds per question and was killed"
        in problem
    )
    started = re.search(r"started (\d+)", (tmp_path / "log").read_text())
    assert started is not None
    deadline = time.monotonic() + 120
    while lives(int(started[1])) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not lives(int(started[1]))
    assert texts(model, "after") == ["AFTER"]


def test_a_reply_after_its_time_is_never_taken_for_another(talk: Talk) -> None:
    model = talk()
    assert texts(model, "before") == ["BEFORE"]
    assert "did not respond within 600 seconds per question" in fails(model, "slow")
    assert texts(model, "after") == ["AFTER"]


@pytest.mark.parametrize("how", ["flood", "deaf"])
def test_a_flood_fails_what_it_drowns(talk: Talk, how: str) -> None:
    model = talk()
    assert texts(model, "before") == ["BEFORE"]
    assert "the response is invalid" in fails(model, how)
    # Until its input is full the flood goes on; then it is started again.
    large = Image.effect_noise((400, 400), 90)
    for _ in range(3):
        try:
            model.predict(large, ["after"])
            break
        except ModelError:
            continue
    assert texts(model, "again") == ["AGAIN"]


def test_a_child_that_always_dies_is_given_up(talk: Talk) -> None:
    model = talk("--die", patience=3)
    for _ in range(4):
        assert "exit code 1" in fails(
            model, "the same image again and again is one failure"
        )
    with pytest.raises(ModelError):
        model.predict(IMAGE.copy(), ["b"])
    with pytest.raises(
        ModelGoneError, match=r"3 images in a row got no response.*no such checkpoint"
    ):
        model.predict(IMAGE.copy(), ["c"])


def test_replies_between_deaths_keep_it_going(talk: Talk) -> None:
    model = talk(patience=2)
    for _ in range(3):
        with pytest.raises(ModelError, match="exit code 3"):
            model.predict(IMAGE.copy(), ["crash"])
        assert texts(model, "well") == ["WELL"]


def test_much_on_standard_error_does_not_stop_it(talk: Talk, tmp_path: Path) -> None:
    model = talk()
    assert texts(model, "noisy") == ["NOISY"]
    model.close()
    assert (tmp_path / "log").stat().st_size == 1_000_001


def test_standard_error_goes_to_ours_without_a_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = SubprocessModel(command())
    with pytest.raises(ModelError):
        model.predict(IMAGE, ["crash"])
    model.close()
    assert "CUDA out of memory" in capsys.readouterr().err


def test_images_go_by_path_where_their_file_says_the_same(
    talk: Talk, tmp_path: Path
) -> None:
    IMAGE.save(tmp_path / "p.png")
    model = talk()
    with Image.open(tmp_path / "p.png") as image:
        [by_path] = model.predict(image, ["image"])
        [turned] = model.predict(image.transpose(Image.Transpose.ROTATE_90), ["image"])
    [in_memory] = model.predict(IMAGE, ["image"])
    assert by_path.answer is not None
    assert by_path.answer.text == '{"path": "' + str(tmp_path.resolve())[:8] + '"}'
    for prediction in (turned, in_memory):
        assert prediction.answer is not None
        assert prediction.answer.text == '{"png": "iVBORw0K"}'


def test_closing_leaves_nothing_behind(talk: Talk) -> None:
    model = talk()
    texts(model, "hello")
    assert model._child is not None
    process = model._child._process
    model.close()
    assert process.returncode == 0, "it left by itself when its input ended"
    model.close()


def test_the_command_and_its_script_are_the_record() -> None:
    model = make_predictor("command: " + command())
    assert isinstance(model, SubprocessModel)
    assert model.config["command"] == command()
    assert (
        model.config["files"][str(TALKER)]
        == hashlib.sha256(TALKER.read_bytes()).hexdigest()
    )
    assert model.weights_hash is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("command:", "no command given"),
        ("command: 'unclosed", "cannot be split"),
        ("command: no-such-program-here x", "is not found"),
    ],
)
def test_a_command_that_is_none(spec: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make_predictor(spec)


def test_a_program_that_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("not a program")
    os.chmod(tmp_path / "model", 0o755)
    with pytest.raises(ModelGoneError, match="cannot be started"):
        SubprocessModel(str(tmp_path / "model")).predict(IMAGE, ["a"])


def test_a_child_that_accepts_raw_pixels_gets_them(talk: Talk) -> None:
    model = talk("--announce")
    plain = talk()
    texts(model, "start"), texts(plain, "start")
    assert texts(model, "describe") == ['[["rgb", "size"], []]']
    assert texts(plain, "describe") == ['[["png"], []]']
    assert "ended with exit code 3" in fails(model, "crash")
    assert texts(model, "describe") == ['[["rgb", "size"], []]'], (
        "it is remembered when the child is restarted"
    )


def test_raw_pixels_are_those_of_the_image() -> None:
    line = encode_command_request(IMAGE, ["a"], None, raw=True)[1]
    sent = json.loads(line)["image"]
    pixels = np.frombuffer(base64.b64decode(sent["rgb"]), np.uint8).reshape(
        *sent["size"], 3
    )
    np.testing.assert_array_equal(pixels, np.asarray(IMAGE))
    png = encode_command_request(IMAGE, ["a"], None, raw=False)[1]
    assert json.loads(line)["id"] == json.loads(png)["id"], (
        "the id does not depend on how the image is sent"
    )


def samples(*answers: str | None) -> list[Sample]:
    texts = [None if text is None else Answer(text=text) for text in answers]
    return [
        Sample(id="s", image_id="p", question="describe", answer=answer)
        for answer in texts
    ]


def test_teacher_forcing_sends_the_true_answers(talk: Talk) -> None:
    model = talk("--announce", "--forced")
    found = model.predict_teacher_forced(IMAGE, samples("the mug", None))
    assert [one.answer and one.answer.text for one in found] == [
        '[["png"], ["the mug", null]]'
    ] * 2
    assert texts(model, "describe") == ['[["rgb", "size"], []]'], (
        "free predictions get none"
    )


@pytest.mark.parametrize("arguments", [(), ("--announce",)])
def test_teacher_forcing_has_to_be_announced(
    talk: Talk, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(ModelGoneError, match="does not announce teacher forcing"):
        talk(*arguments).predict_teacher_forced(IMAGE, samples("the mug"))


def test_a_teacher_forced_evaluation_of_a_command(tmp_path: Path) -> None:
    run = evaluate(
        f"command: {command('--announce', '--forced')}",
        write_dataset(tmp_path / "data", 3),
        tmp_path / "run",
        teacher_forced=True,
        protocols=["mmr"],
    )
    assert run.summary is not None
    assert run.summary.failed == 0
    assert run.teacher_forced
    assert b'"forced":true' in (tmp_path / "run" / "predictions.jsonl").read_bytes()
