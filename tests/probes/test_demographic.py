"""The probe `demographic`: groups by tag or by file, and what it says where there are none."""

from pathlib import Path

import pytest

import maskwise as mw
from bench.probe_faults import FailsSometimes, write_squares
from maskwise.errors import MaskwiseError
from maskwise.probes.demographic import find_attributes
from maskwise.store import Dataset


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("people") / "people"
    return write_squares(folder, images=24, groups=("a", "b"))


def groups_of(data: Dataset, column: str, mapping: str) -> list[str | None]:
    codes = find_attributes(data, column, mapping)[column]
    return [codes.names[code] for code in codes.codes]


def test_nothing_is_measured_without_an_annotation(people: Dataset) -> None:
    # The tag is called `group`, which may mean anything: it has to be named.
    (result,) = mw.probe(
        FailsSometimes(), people, probes="demographic", progress=False
    ).results
    assert result.severity == "unmeasured"
    assert "nothing in the dataset says who is shown" in result.finding


def test_a_mapping_names_samples_or_images(tmp_path: Path, people: Dataset) -> None:
    path = tmp_path / "people.csv"
    sample = people.samples.id[4]
    path.write_text(f"sample,age\n{sample},old\n", encoding="utf-8")
    assert [
        row
        for row, group in enumerate(groups_of(people, "age", str(path)))
        if group == "old"
    ] == [4]
    path = tmp_path / "people.jsonl"
    path.write_text('{"image": "0-0", "age": "young"}\n', encoding="utf-8")
    assert groups_of(people, "age", str(path))[:4] == ["young"] * 3 + ["unknown"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("name,age\nx,old\n", "expected a column 'age'"),
        ("sample,sex\nx,old\n", "expected a column 'age'"),
        ("sample,age\nx,old\n", "none of its samples"),
        ("sample,age\nx\n", "another number of cells"),
    ],
)
def test_a_wrong_mapping_says_what_is_wrong(
    tmp_path: Path, people: Dataset, content: str, said: str
) -> None:
    path = tmp_path / "people.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(MaskwiseError, match=said):
        find_attributes(people, "age", str(path))


def test_the_column_has_to_exist(people: Dataset) -> None:
    with pytest.raises(MaskwiseError, match="group"):
        find_attributes(people, "grup", "")


def test_small_groups_are_named_but_not_tested(people: Dataset) -> None:
    options = {"demographic": {"column": "group", "min_images": 1000}}
    (result,) = mw.probe(
        FailsSometimes(),
        people,
        probes="demographic",
        probe_options=options,
        progress=False,
    ).results
    assert result.severity == "unmeasured"
    assert "1000 images" in result.finding
