"""Dialogues of the world: their turns, their truth, and what a model gains from them."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from maskwise.harness.evaluate import evaluate
from maskwise.models.tiny.model import load
from maskwise.schema import Turn, continue_dialogue, earlier_turns
from maskwise.store import Dataset, DatasetWriter
from maskwise.world.scenes import make_scene
from tests.cli.commands import run


@pytest.fixture(scope="module")
def dialogues(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    path = tmp_path_factory.mktemp("world") / "dialogues"
    run(
        *("world", "--scenes", 8, "--seed", 5, "--split", "val", "--size", 160),
        *("--questions", 4, "--dialogues", "--out", path),
    )
    return Dataset.open(path)


def test_dialogues_have_two_or_three_turns_and_one_target(dialogues: Dataset) -> None:
    assert len(dialogues) >= 24
    lengths = [1 + len(sample.turns) for sample in dialogues]
    assert set(lengths) == {2, 3}
    for sample in dialogues:
        assert sample.tags["turns"] == str(1 + len(sample.turns))
        assert len(sample.targets) == 1
        assert all(turn.answer for turn in sample.turns)
        assert earlier_turns(sample.asked) == sample.turns


def test_every_kind_of_follow_up_occurs(dialogues: Dataset) -> None:
    kinds = {sample.tags["question_type"] for sample in dialogues}
    assert kinds >= {"mask type", "part", "color"}
    assert kinds & {"in front", "behind"}


def test_a_change_of_mask_type_keeps_the_target() -> None:
    scenes = [make_scene(3, index, "val", 96, dialogues=4) for index in range(12)]
    changes = [
        dialogue
        for scene in scenes
        for dialogue in scene.dialogues
        if dialogue.kind == "mask type" and len(dialogue.turns) == 1
    ]
    assert changes
    for dialogue in changes:
        before = dialogue.turns[0].answer
        assert before is not None
        # "It is the red mug." and "It is the red mug, shown whole."
        shorter, longer = sorted((before, dialogue.answer.text), key=len)
        assert longer.startswith(shorter.rstrip("."))


def test_questions_of_a_scene_do_not_depend_on_its_dialogues() -> None:
    plain = make_scene(1, 0, "val", 96)
    talked = make_scene(1, 0, "val", 96, dialogues=3)
    assert plain.questions == talked.questions
    assert talked.dialogues == make_scene(1, 0, "val", 96, dialogues=3).dialogues


def test_the_bundled_model_uses_earlier_turns(
    dialogues: Dataset, tmp_path: Path
) -> None:
    with DatasetWriter(tmp_path / "alone", name="alone") as writer:
        for row in range(len(dialogues.images)):
            data = dialogues.images.table["data"][row].as_py()
            writer.add_image(dialogues.image(row), dialogues.regions_of(row), data)
        for sample in dialogues:
            writer.add_sample(replace(sample, turns=()))
    values = []
    for data in (dialogues, Dataset.open(tmp_path / "alone")):
        result = evaluate("tiny", data, protocols=["strict"], progress=False)
        values.append(result.scores.protocols["strict"].metrics["giou"].value)
    with_turns, alone = values
    assert with_turns > alone + 0.2


def test_turns_survive_other_formats(dialogues: Dataset, tmp_path: Path) -> None:
    for format in ("coco", "huggingface", "png"):
        run("write", format, dialogues.path, "--out", tmp_path / format)
        run("read", format, tmp_path / format, "--out", tmp_path / f"{format}_again")
        again = Dataset.open(tmp_path / f"{format}_again")
        assert [sample.turns for sample in again] == [
            sample.turns for sample in dialogues
        ]


def test_a_question_alone_is_answered_as_before(dialogues: Dataset) -> None:
    """Questions that refer to nothing are the same inside a dialogue."""
    sample = dialogues[0]
    encoded = load().encode(sample.image)
    question = "Segment the mug as if nothing stood in front of it."
    inside = replace(sample, question=question).asked
    assert encoded.answer([inside]) == encoded.answer([question])


def test_a_mask_type_taken_over_has_no_probability() -> None:
    """The words of "And the red one?" say nothing about the mask type: an earlier turn decides."""
    turns = (Turn(question="the whole red mug, hidden part included"),)
    model = load()
    assert model.mask_type_probability(continue_dialogue("And it?", turns)) is None
    asked = continue_dialogue("Now only its visible part.", turns)
    assert model.mask_type_probability(asked) is not None
