from pathlib import Path

from maskwise.models.tiny.scene_example import scene_to_example
from maskwise.training.tiny.scene_dataset import read_shard, shard_count, write_shard
from maskwise.world import make_scene


def test_a_shard_gives_back_the_rendered_scenes(tmp_path: Path) -> None:
    path = write_shard(tmp_path, "train", 5, range(3), questions=2)
    examples = read_shard(path)
    assert len(examples) == 3
    for index, example in enumerate(examples):
        rendered = scene_to_example(make_scene(5, index, "train", questions=2))
        for stored, fresh in zip(example[:4], rendered[:4]):
            assert (stored == fresh).all()
        assert all(
            (a == b).all() for a, b in zip(example.part_maps, rendered.part_maps)
        )
        assert example.questions == rendered.questions


def test_a_shard_that_exists_is_not_rendered_again(tmp_path: Path) -> None:
    path = write_shard(tmp_path, "train", 5, range(1), questions=0)
    written = path.stat().st_mtime_ns
    write_shard(tmp_path, "train", 5, range(1), questions=0)
    assert path.stat().st_mtime_ns == written


def test_shards_of_other_presets_have_other_names(tmp_path: Path) -> None:
    path = write_shard(tmp_path, "train", 5, range(1), questions=0, preset="crowded")
    assert path.name == "crowded-train-5-0000.npz"
    rendered = scene_to_example(
        make_scene(5, 0, "train", questions=0, preset="crowded")
    )
    assert (read_shard(path)[0].image == rendered.image).all()


def test_the_last_shard_may_be_smaller() -> None:
    assert [shard_count(scenes) for scenes in (0, 1, 500, 501)] == [0, 1, 1, 2]
