"""Sources of training samples, and the settings of a run."""

import gc
import json
import weakref
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("peft", reason="the extra `vlm` is not installed")

from maskwise.errors import ConfigError, MaskwiseError
from maskwise.training.vlm import sources
from maskwise.training.vlm.augment import Augmentation
from maskwise.training.vlm.color_words import names_held_out_color
from maskwise.training.vlm.config import SourceConfig, Stage, WorldScenes, read_config
from maskwise.training.vlm.sources import (
    SCENE_BYTES_PER_PIXEL,
    TrainingItems,
    WorldSource,
    open_source,
)
from maskwise.world import bundled
from tests.training.vlm.small_runs import small_run, small_scenes

CONFIGS = Path(__file__).parents[3] / "configs" / "vlm"


def test_a_dataset_gives_each_image_with_its_questions_and_regions() -> None:
    source = open_source(SourceConfig(dataset=str(bundled())))
    assert (len(source), source.samples) == (48, 240)
    item = source[7]
    assert item.image is not None
    assert {sample.image_id for sample in item.samples} == {item.samples[0].image_id}
    assert len(item.samples) == 5
    assert {region.id for sample in item.samples for region in sample.targets} <= {
        region.id for region in item.regions
    }


def test_kept_scenes_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the scenes of a source take does not grow with their number."""
    scene_bytes = 64**2 * SCENE_BYTES_PER_PIXEL
    monkeypatch.setattr(sources, "CACHE_BYTES", 3 * scene_bytes)
    source = open_source(SourceConfig(world=small_scenes(8)))
    scenes = [weakref.ref(source[index]) for index in range(8)]
    gc.collect()
    assert sum(scene() is not None for scene in scenes) == 3


def test_a_scene_is_about_as_large_as_its_limit_says() -> None:
    scenes = WorldScenes(scenes=4, preset="easy", size=160, questions=6)
    item = open_source(SourceConfig(world=scenes))[0]
    assert item.image is not None
    # Pillow keeps four bytes per pixel of a color image.
    pixels = item.image.width * item.image.height * 4
    masks = sum(
        len(mask.counts)
        for region in item.regions
        for mask in (region.visible, region.amodal)
        if mask is not None
    )
    assert pixels + masks < 1.2 * SCENE_BYTES_PER_PIXEL * 160**2


def test_text_only_turns_have_no_image(tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    path.write_text(
        '{"question": "What is a mug?", "answer": "A cup."}\n\n{"question": "a", "answer": "b"}\n'
    )
    source = open_source(SourceConfig(text=str(path)))
    assert len(source) == 2
    item = source[0]
    assert item.image is None
    assert [str(sample.answer) for sample in item.samples] == ["A cup."]
    path.write_text('{"question": "a"}\n')
    with pytest.raises(MaskwiseError, match=r"turns\.jsonl, line 1: .*answer"):
        open_source(SourceConfig(text=str(path)))


def test_a_text_file_that_cannot_be_read_is_named_with_what_was_expected(
    tmp_path: Path,
) -> None:
    for path, reason in (
        (tmp_path / "turns.jsonl", "no such file"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(ConfigError) as caught:
            open_source(SourceConfig(text=str(path)))
        assert str(caught.value) == (
            f'{path}: {reason}; expected a file of JSON lines such as {{"question": "What is a mug?", '
            '"answer": "A cup."}, or LLaVA\'s JSON; correct `text` or remove the source'
        )


def test_items_of_a_stage_depend_on_their_position_only(tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    path.write_text(
        "".join(
            json.dumps({"question": f"q{n}", "answer": f"a{n}"}) + "\n"
            for n in range(5)
        )
    )
    sources = {
        "world": open_source(SourceConfig(world=small_scenes(3))),
        "text": open_source(SourceConfig(text=str(path))),
    }
    settings = Augmentation(flip=0.5, crop=0.5, brightness=0.2)

    def items() -> TrainingItems:
        return TrainingItems(
            sources, {"world": 2, "text": 1}, settings, questions_per_image=2, seed=4
        )

    one = items()
    other = items()
    first = [one[position] for position in range(12)]
    for position in reversed(range(12)):
        again = other[position]
        assert again.samples == first[position].samples
        assert np.array_equal(
            np.asarray(again.image), np.asarray(first[position].image)
        )
    assert {item.image is None for item in first} == {True, False}
    assert max(len(item.samples) for item in first) == 2
    for item in first:
        if item.image is None:
            assert item.samples[0].question[1:] == str(item.samples[0].answer)[1:], (
                "pairs stay together"
            )


# nano-grpo takes its model from another run; test_grpo.py has one.
@pytest.mark.parametrize(
    "path",
    [path for path in sorted(CONFIGS.glob("*.toml")) if path.stem != "nano-grpo"],
    ids=lambda path: path.stem,
)
def test_bundled_configs_are_valid(path: Path) -> None:
    config = read_config(path)
    assert config.model == "vlm"
    assert config.stages
    decoded = msgspec.json.decode(msgspec.json.encode(config), type=type(config))
    assert decoded == config, "config.json of a run gives the same settings"


def test_invalid_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"stage 'one' names unknown sources other; known: world"
    ):
        small_run(stages=(Stage(name="one", steps=1, rates={"other": 1}),))
    with pytest.raises(
        ValueError, match="unknown losses bcee; known: text, mask_type, bce"
    ):
        Stage(name="one", steps=1, losses={"bcee": 1})
    with pytest.raises(ValueError, match="not a regular expression"):
        Stage(name="one", steps=1, freeze=("(",))
    with pytest.raises(
        ValueError, match="exactly one of `dataset`, `world`, `text` and `stream`"
    ):
        SourceConfig(dataset="a", text="b")
    path = tmp_path / "config.toml"
    path.write_text(
        (CONFIGS / "nano.toml")
        .read_text()
        .replace("batch_size = 8\n", "batch_size = 9\n", 1)
    )
    with pytest.raises(
        MaskwiseError,
        match=r"config\.toml: batch_size 9 is not a multiple of micro_batch_size \d",
    ):
        read_config(path)


def test_an_unknown_preset_is_named_with_the_config(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    text = (CONFIGS / "nano.toml").read_text()
    path.write_text(f'{text}\n[sources.more.world]\nscenes = 1\npreset = "eassy"\n')
    with pytest.raises(
        ConfigError,
        match=r"config\.toml: unknown preset 'eassy'; known: crowded, default, easy\.",
    ):
        read_config(path)


def test_questions_of_the_world_can_be_paraphrased_and_asked_without_images() -> None:
    plain = open_source(SourceConfig(world=small_scenes()))
    world = msgspec.structs.replace(small_scenes(), paraphrased=1.0, images=False)
    source = open_source(SourceConfig(world=world))
    item = source[0]
    same = plain[0]
    assert item.image is None
    assert [one.answer for one in item.samples] == [one.answer for one in same.samples]
    assert all(
        one.question != other.question for one, other in zip(item.samples, same.samples)
    )
    assert source[0] == open_source(SourceConfig(world=world))[0]


LLAVA = [
    {
        "id": "000000033471",
        "image": "photos/bus.png",
        "conversations": [
            {"from": "human", "value": "<image>\nWhat colour is the bus?"},
            {"from": "gpt", "value": "The bus is white and red."},
            {"from": "human", "value": "Which side is its door on?"},
            {"from": "gpt", "value": "On the right."},
        ],
    },
    {
        "id": 7,
        "conversations": [
            {"from": "human", "value": "What is a mug?"},
            {"from": "gpt", "value": "A cup with a handle."},
        ],
    },
]
"""Entries in the format of llava_instruct_150k.json."""


def test_conversations_of_llava_are_questions_with_their_image(tmp_path: Path) -> None:
    path = tmp_path / "llava.json"
    path.write_text(json.dumps(LLAVA))
    (tmp_path / "images" / "photos").mkdir(parents=True)
    Image.new("RGB", (8, 6)).save(tmp_path / "images" / "photos" / "bus.png")
    source = open_source(SourceConfig(text=str(path), images=str(tmp_path / "images")))
    assert (len(source), source.samples) == (2, 3)
    bus = source[0]
    assert bus.image is not None
    assert bus.image.size == (8, 6)
    assert [sample.question for sample in bus.samples] == [
        "What colour is the bus?",
        "Which side is its door on?",
    ]
    assert source[1].image is None
    without = open_source(SourceConfig(text=str(path)))
    assert (len(without), without.samples) == (1, 1)


def test_conversations_that_cannot_be_used_say_what_is_expected(tmp_path: Path) -> None:
    path = tmp_path / "llava.json"
    path.write_text(json.dumps(LLAVA[:1]))
    with pytest.raises(ConfigError, match="no questions without an image"):
        open_source(SourceConfig(text=str(path)))
    path.write_text('[{"question": "What?"}]')
    with pytest.raises(MaskwiseError, match="expected a list of objects with `conv"):
        open_source(SourceConfig(text=str(path)))
    outside = [LLAVA[0] | {"image": "../../etc/passwd"}]
    path.write_text(json.dumps(outside))
    source = open_source(SourceConfig(text=str(path), images=str(tmp_path)))
    with pytest.raises(MaskwiseError):
        source[0]


def test_each_category_of_an_image_is_a_question() -> None:
    source = open_source(SourceConfig(dataset=str(bundled()), questions="categories"))
    assert len(source) == 48
    assert source.samples == sum(len(source[index].samples) for index in range(48))
    item = source[0]
    names = {region.name for region in item.regions if region.visible}
    assert {sample.targets[0].name for sample in item.samples} == names
    for sample in item.samples:
        (target,) = sample.targets
        same = [region for region in item.regions if region.name == target.name]
        assert target.visible is not None
        assert target.visible.area >= max(region.visible.area for region in same)
        assert target.name in sample.question
    with pytest.raises(ValueError, match="needs a `dataset`"):
        SourceConfig(text="turns.jsonl", questions="categories")


def world_source(**options: object) -> WorldSource:
    scenes = WorldScenes(
        scenes=40, preset="easy", size=48, questions=8, paraphrased=0.5, **options
    )  # type: ignore[arg-type]
    return WorldSource(scenes)


def count_held_out_names(source: WorldSource) -> tuple[int, int]:
    """Questions that name a color which only the test split shows, without targets and with."""
    counts = [0, 0]
    for index in range(len(source)):
        for sample in source[index].samples:
            if names_held_out_color(sample.question):
                counts[bool(sample.targets)] += 1
    return counts[0], counts[1]


def test_questions_about_pairs_that_are_never_there_can_be_left_out() -> None:
    without, with_targets = count_held_out_names(world_source(images=False))
    assert without > 0
    assert with_targets == 0
    assert count_held_out_names(world_source(held_out_colors=False)) == (0, 0)


def test_exchanged_colors_give_every_pair_in_texts_without_images() -> None:
    source = world_source(
        images=False, held_out_colors=False, exchanged_colors=1.0, seed=2
    )
    assert count_held_out_names(source)[1] > 0
    original = world_source(images=False, held_out_colors=False, seed=2)
    for index in range(5):
        for before, after in zip(original[index].samples, source[index].samples):
            assert before.answer is not None
            assert after.answer is not None
            assert len(before.answer.text.split()) == len(after.answer.text.split())
            for phrase, region in zip(after.answer.phrases, after.targets):
                assert region.name in after.answer.text[phrase.start : phrase.stop]


def test_exchanged_colors_are_refused_with_images() -> None:
    with pytest.raises(ValueError, match="images = false"):
        WorldScenes(scenes=2, exchanged_colors=0.5)
