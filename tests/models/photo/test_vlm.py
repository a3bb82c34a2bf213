"""The chooser that asks a vision-language model, against a local server that speaks both APIs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maskwise.errors import ModelError, ModelGoneError
from maskwise.harness.evaluate import evaluate
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.model import Photo, PhotoQuestions, make_chooser
from maskwise.models.photo.vlm import VlmChooser, find_price, make_request
from maskwise.schema import ImageInfo, Sample, Turn, continue_dialogue
from maskwise.store import DatasetWriter
from maskwise.writers import Ledger, SendLimits, open_client
from maskwise.writers.client import WriterError
from maskwise.writers.cost import ModelPrice
from tests.models.photo.scene import (
    SIZE,
    FakeCompletion,
    draw_scene,
    encoded_scene,
    fake_networks,
)
from tests.writers.providers import Provider, remove_keys, serve_provider

MODELS = {"anthropic": "claude-test", "openai": "gpt-test"}
PRICE = ModelPrice(input=1.0, output=10.0)
LEFT_CUP, RIGHT_CUP, DOG, TABLE = range(1, 5)
"""The numbers of the marks."""


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with serve_provider() as provider:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        yield provider


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    """Each of the two APIs."""
    return str(request.param)


@pytest.fixture
def chooser(name: str, tmp_path: Path, provider: Provider) -> Iterator[VlmChooser]:
    client = open_client(name, model=MODELS[name])
    found = VlmChooser(client, tmp_path / "ledger.sqlite", PRICE)
    yield found
    found.close()


@pytest.fixture
def photo() -> EncodedPhoto:
    return encoded_scene()


def scene_dataset(folder: Path, questions: list[str]) -> Path:
    """A dataset of one drawn scene per question, each an image of its own."""
    draw_scene().save(folder / "scene.png")
    with DatasetWriter(folder / "scenes", name="scenes", image_root=folder) as writer:
        for number, question in enumerate(questions):
            info = ImageInfo(
                id=str(number), path="scene.png", width=SIZE[0], height=SIZE[1]
            )
            writer.add_image(info, ())
            writer.add_sample(
                Sample(id=f"s{number}", image_id=info.id, question=question)
            )
    return folder / "scenes"


def reply(
    text: str, *phrases: dict[str, Any], mask_type: str = "visible"
) -> dict[str, Any]:
    return {
        "text": json.dumps(
            {"answer": text, "phrases": list(phrases), "mask_type": mask_type}
        )
    }


def phrase(
    text: str, *regions: int, merged: bool = False, boxes: Any = ()
) -> dict[str, Any]:
    return {
        "text": text,
        "regions": list(regions),
        "merged": merged,
        "boxes": list(boxes),
    }


def test_a_right_answer_becomes_a_prediction(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    provider.replies = [
        reply("The dog would bark.", phrase("dog", DOG), mask_type="amodal")
    ]
    (prediction,) = PhotoQuestions(photo, chooser).answer(["Who would bark?"])
    assert len(prediction.regions) == 1
    assert prediction.mask_type == "amodal"
    assert prediction.answer is not None
    (found,) = prediction.answer.phrases
    assert prediction.answer.text[found.start : found.stop] == "dog"
    (call,) = provider.calls
    assert "3: dog?, " in json.dumps(call)
    assert "Who would bark?" in json.dumps(call)
    assert "image/jpeg" in json.dumps(call)


def test_merged_marks_are_one_region(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    provider.replies = [
        reply("Both cups.", phrase("cups", LEFT_CUP, RIGHT_CUP)),
        reply("Both cups.", phrase("cups", LEFT_CUP, RIGHT_CUP, merged=True)),
    ]
    questions = PhotoQuestions(photo, chooser)
    assert len(questions.answer(["the cups"])[0].regions) == 2
    assert len(questions.answer(["the cups as one"])[0].regions) == 1


def test_an_answer_without_marks_is_no_target(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    provider.replies = [reply("There is no elephant.")]
    (prediction,) = PhotoQuestions(photo, chooser).answer(["the elephant"])
    assert prediction.no_target
    assert not prediction.regions


def test_numbers_that_do_not_exist_are_ignored(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    provider.replies = [
        reply(
            "It is the dog.", phrase("the dog", 0, 99, -1, DOG, DOG), phrase("dog", 77)
        )
    ]
    (choice,) = chooser.choose(photo, ["the dog"])
    assert [one.regions for one in choice.phrases] == [(DOG - 1,)]


def test_a_refusal_fails_the_question(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    provider.replies = [
        {"text": "", "stop": "refusal", "refusal": "I cannot help with that."}
    ]
    with pytest.raises(ModelError, match="refused"):
        chooser.choose(photo, ["the dog"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the dog is number 3", "not a JSON object"),
        ('{"answer": "dog"}', "lacks the fields phrases, mask_type"),
        (
            '{"answer": "dog", "phrases": [{"text": "dog", "regions": ["three"]}], "mask_type": "visible"}',
            "another form",
        ),
        ('{"answer": "dog", "phrases": [], "mask_type": "whole"}', "another form"),
    ],
)
def test_a_malformed_reply_fails_the_question(
    chooser: VlmChooser,
    provider: Provider,
    photo: EncodedPhoto,
    text: str,
    message: str,
) -> None:
    provider.replies = [{"text": text}] * 2
    with pytest.raises(ModelError, match=message):
        chooser.choose(photo, ["the dog"])


def test_a_box_is_masked_and_looked_at_again(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    photo.look_around()
    marks = len(photo.proposals)
    box = [500, 50, 600, 150]
    provider.replies = [
        reply("The lamp.", phrase("lamp", boxes=[box])),
        reply("The lamp there.", phrase("lamp", marks + 1)),
    ]
    (choice,) = chooser.choose(photo, ["the lamp"])
    assert choice.text == "The lamp there."
    assert choice.phrases[0].regions == (marks,)
    assert photo.proposals[marks].box == pytest.approx((160, 12, 192, 36), abs=2)
    assert f"The marks {marks + 1} were added" in json.dumps(provider.calls[1])


def test_a_wrong_box_is_corrected(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    provider.replies = [
        reply("The dog.", phrase("dog", boxes=[[0, 0, 100, 100]])),
        reply("The dog.", phrase("dog", DOG, boxes=[[0, 0, 50, 50]])),
    ]
    (choice,) = chooser.choose(photo, ["the dog"])
    assert choice.phrases[0].regions == (DOG - 1,)
    assert len(provider.calls) == 2, "there is one second look"


def test_impossible_boxes_are_ignored(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    provider.replies = [
        reply(
            "The dog.",
            phrase("dog", DOG, boxes=[[900, 900, 100, 100], [2000, 0, 3000, 10]]),
        )
    ]
    (choice,) = chooser.choose(photo, ["the dog"])
    assert choice.phrases[0].regions == (DOG - 1,)
    assert len(provider.calls) == 1


def test_nothing_is_paid_for_twice(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    provider.replies = [reply("The dog.", phrase("dog", DOG))]
    first = chooser.choose(photo, ["the dog"])
    assert chooser.choose(encoded_scene(), ["the dog"]) == first
    assert len(provider.calls) == 1
    assert chooser.cost == pytest.approx((100 * 1.0 + 20 * 10.0) / 1e6)


def test_an_interrupted_evaluation_continues_and_a_repeated_one_costs_nothing(
    chooser: VlmChooser, provider: Provider, tmp_path: Path
) -> None:
    questions = ["the dog", "the cup", "the table"]
    dataset = scene_dataset(tmp_path, questions)
    model = Photo(fake_networks(), FakeCompletion(), chooser)
    provider.replies = [
        reply("The dog.", phrase("dog", DOG)),
        reply("The cup.", phrase("cup", LEFT_CUP)),
        {"status": 401, "text": "bad key"},
    ]
    with pytest.raises(ModelGoneError):
        evaluate(model, dataset, tmp_path / "run", protocols=["strict"])
    with Ledger(chooser.ledger) as ledger:
        paid = ledger.cost
    assert paid > 0
    provider.replies = [reply("The table.", phrase("table", TABLE))]
    run = evaluate(model, dataset, tmp_path / "run", protocols=["strict"])
    assert len(run.ids) == len(questions)
    assert len(provider.calls) == 4, "three answers and the refused call"
    evaluate(model, dataset, tmp_path / "again", protocols=["strict"])
    assert len(provider.calls) == 4
    with Ledger(chooser.ledger) as ledger:
        assert ledger.cost == pytest.approx(1.5 * paid)


def test_an_unusable_reply_is_not_paid_for_twice(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    provider.replies = [{"text": "the dog is number 3"}] * 2
    for _ in range(2):
        with pytest.raises(ModelError, match="not a JSON object"):
            chooser.choose(photo, ["the dog"])
    assert len(provider.calls) == 2, "the request and its repair"


def test_a_busy_server_is_asked_again(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    busy = {
        "status": 429,
        "text": "slow down",
        "headers": {"retry-after-ms": "1", "retry-after": "0"},
    }
    provider.replies = [busy, busy, reply("The dog.", phrase("dog", DOG))]
    (choice,) = chooser.choose(photo, ["the dog"])
    assert choice.phrases[0].regions == (DOG - 1,)
    assert len(provider.calls) == 3


def test_a_server_that_stays_busy_stops_the_run(
    tmp_path: Path, provider: Provider, photo: EncodedPhoto, name: str
) -> None:
    client = open_client(name, model=MODELS[name])
    limits = SendLimits(max_retries=1)
    chooser = VlmChooser(client, tmp_path / "ledger.sqlite", PRICE, limits)
    provider.replies = [
        {"status": 429, "headers": {"retry-after-ms": "1", "retry-after": "0"}}
    ] * 2
    with pytest.raises(ModelGoneError, match="429"):
        chooser.choose(photo, ["the dog"])
    chooser.close()


def test_a_slow_server_is_waited_for(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    provider.replies = [reply("The dog.", phrase("dog", DOG)) | {"delay": 0.5}]
    (choice,) = chooser.choose(photo, ["the dog"])
    assert choice.phrases[0].regions == (DOG - 1,)
    assert len(provider.calls) == 1


def test_a_reply_that_takes_too_long_is_asked_for_again(
    tmp_path: Path, provider: Provider, photo: EncodedPhoto, name: str
) -> None:
    client = open_client(name, model=MODELS[name])
    limits = SendLimits(timeout=0.5)
    chooser = VlmChooser(client, tmp_path / "ledger.sqlite", PRICE, limits)
    right = reply("The dog.", phrase("dog", DOG))
    provider.replies = [right | {"delay": 2.0}, right]
    (choice,) = chooser.choose(photo, ["the dog"])
    assert choice.phrases[0].regions == (DOG - 1,)
    assert len(provider.calls) == 2
    chooser.close()


def test_a_refused_key_stops_the_run(
    chooser: VlmChooser, provider: Provider, photo: EncodedPhoto
) -> None:
    provider.replies = [{"status": 401, "text": "bad key"}]
    with pytest.raises(ModelGoneError):
        chooser.choose(photo, ["the dog"])


def test_the_budget_stops_the_run(
    provider: Provider, photo: EncodedPhoto, tmp_path: Path
) -> None:
    client = open_client("openai", model="gpt-test")
    chooser = VlmChooser(
        client, tmp_path / "ledger.sqlite", PRICE, SendLimits(budget=0.0001)
    )
    with pytest.raises(ModelGoneError, match="budget"):
        chooser.choose(photo, ["the dog"])
    assert provider.calls == []
    chooser.close()


def test_a_chooser_is_named_by_provider_and_model(provider: Provider) -> None:
    chooser = make_chooser("vlm:openai/qwen-vl", base_url=f"{provider.url}/v1")
    assert chooser.name == "vlm:openai/qwen-vl"


def test_a_model_without_a_price_is_free_only_at_an_address_of_ones_own() -> None:
    assert find_price("qwen-vl", free=True).input == 0
    with pytest.raises(Exception, match="no price"):
        find_price("qwen-vl", free=False)


def test_a_missing_key_is_said_before_a_ledger_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_keys(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WriterError, match="ANTHROPIC_API_KEY"):
        make_chooser("vlm:anthropic/claude-sonnet-5")
    assert not [*tmp_path.iterdir()]


def test_earlier_turns_are_part_of_the_request(photo: EncodedPhoto) -> None:
    turns = [Turn(question="the red cup", answer="It is on the left.")]
    asked = continue_dialogue("And the one behind it?", turns)
    text = make_request(photo, {}, asked).text
    assert text.endswith(
        "Earlier question: the red cup\nYour answer: It is on the left.\n"
        "Question: And the one behind it?"
    )
    assert "Earlier" not in make_request(photo, {}, "the red cup").text
