"""Splits are by image, stay the same in later versions, respect tags and keep together what belongs together."""

from collections import Counter
from pathlib import Path

import pytest

from maskwise.builder.occlude import OccludeOptions, occlude
from maskwise.builder.release.splits import RATIOS, assign_splits, parse_ratios
from maskwise.errors import ReleaseError
from maskwise.store import Dataset
from tests.builder.release.made import encode, make_dataset
from tests.builder.test_occlude import write_shapes


def by_image(dataset: Dataset, **options: object) -> dict[str, str]:
    return dict(zip(dataset.images.id, assign_splits(dataset, RATIOS, **options)))  # type: ignore[arg-type]


def test_shares_are_about_the_ratios(tmp_path: Path) -> None:
    counts = Counter(by_image(make_dataset(tmp_path / "a", 600)).values())
    assert set(counts) == set(RATIOS)
    assert 450 < counts["train"] < 510


def test_a_later_version_keeps_every_image_in_its_split(tmp_path: Path) -> None:
    old = by_image(make_dataset(tmp_path / "old", 60))
    new = by_image(make_dataset(tmp_path / "new", 80, first=20))
    common = set(old) & set(new)
    assert len(common) == 40
    assert {image: old[image] for image in common} == {
        image: new[image] for image in common
    }


def test_another_seed_gives_other_splits(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "a", 60)
    assert by_image(dataset) != by_image(dataset, seed=1)


def test_the_tag_split_is_respected(tmp_path: Path) -> None:
    dataset = make_dataset(
        tmp_path / "a", 60, tags=lambda number: {"split": "dev"} if number < 20 else {}
    )
    splits = by_image(dataset)
    assert all(splits[f"image{number}"] == "dev" for number in range(20))
    assert "dev" not in {splits[f"image{number}"] for number in range(20, 60)}
    assert "dev" not in by_image(dataset, keep_tags=False).values()


def test_images_made_from_one_stay_together_when_composites_are_added(
    tmp_path: Path,
) -> None:
    def id(number: int) -> str:
        return f"photo{number // 3}#{number % 3}-{'composite' if number % 3 else 'original'}"

    old = by_image(make_dataset(tmp_path / "old", 90, id=id))
    assert all(
        len({old[id(3 * photo + k)] for k in range(3)}) == 1 for photo in range(30)
    )
    assert len(set(old.values())) == 3
    ids = [*map(id, range(90)), *(f"photo{photo}#9-composite" for photo in range(30))]
    new = by_image(make_dataset(tmp_path / "new", 120, id=ids.__getitem__))
    assert {image: new[image] for image in old} == old
    assert all(
        new[f"photo{photo}#9-composite"] == old[f"photo{photo}#0-original"]
        for photo in range(30)
    )


def test_composites_of_a_build_stay_with_their_originals(tmp_path: Path) -> None:
    occlude(
        write_shapes(tmp_path / "shapes"),
        tmp_path / "pairs",
        OccludeOptions(per_image=2),
    )
    splits = by_image(Dataset.open(tmp_path / "pairs"))
    sources = {image.partition("#")[0] for image in splits}
    assert len(sources) > 2
    for source in sources:
        assert (
            len(
                {
                    split
                    for image, split in splits.items()
                    if image.startswith(f"{source}#")
                }
            )
            == 1
        )


def test_contradictory_tags_are_refused(tmp_path: Path) -> None:
    split = {0: "train", 1: "test"}
    dataset = make_dataset(
        tmp_path / "a",
        2,
        tags=lambda number: {"split": split[number]},
        data=lambda number: encode(0),
    )
    with pytest.raises(ReleaseError, match="'image0' and 'image1' belong together"):
        assign_splits(dataset, RATIOS)


def test_images_that_are_not_there_are_assigned_by_id(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "a", 60, embed=False)
    assert set(by_image(dataset).values()) == set(RATIOS)


def test_ratios_are_parsed() -> None:
    assert parse_ratios("train=0.5, test=0.5") == {"train": 0.5, "test": 0.5}


@pytest.mark.parametrize(
    "text", ["train", "train=x", "train=0.5", "train=2,test=-1", "a/b=1", "all=1", ""]
)
def test_invalid_ratios_are_refused(text: str) -> None:
    with pytest.raises(ReleaseError):
        parse_ratios(text)


def test_a_split_without_a_share_stays_empty(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "a", 40)
    assert set(assign_splits(dataset, {"train": 1.0, "test": 0.0})) == {"train"}
