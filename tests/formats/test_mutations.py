"""Whatever is in an annotation file, a reader reports it or refuses the file; it never breaks."""

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maskwise.benchmarks import find_reader
from maskwise.errors import FormatError
from maskwise.formats import convert_annotations
from maskwise.store import Dataset
from tests.formats.layouts import BENCHMARKS, SOURCES

ALL = SOURCES | BENCHMARKS
SPLITS = {"grefcoco": "val"}

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 14),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["../x", "/x", "a\x00b", "{seg}", "[SEG]", "\u00e9"]),
    st.lists(st.integers(-3, 14), max_size=7),
    st.lists(st.lists(st.floats(-20, 20), max_size=9), max_size=3),
    st.dictionaries(
        st.sampled_from(["size", "counts", "id", "bytes"]),
        st.integers(0, 9),
        max_size=3,
    ),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path] * bool(path) + [
        way for key, item in inner for way in places(item, (*path, key))
    ]


def mutate(value: Any, draw: Any) -> Any:
    """Change, remove or double a few values."""
    out = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        found = places(out)
        if not found:
            return draw(JUNK)
        *way, key = draw(st.sampled_from(found))
        holder = out
        for step in way:
            holder = holder[step]
        action = draw(st.sampled_from(["change", "remove", "double"]))
        if action == "remove":
            del holder[key]
        elif action == "double" and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        else:
            holder[key] = draw(JUNK)
    return out


@pytest.mark.parametrize("layout", ALL)
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_mutated_files_break_nothing(
    layout: str, tmp_path: Path, data: st.DataObject
) -> None:
    name, make = ALL[layout]
    for folder in tmp_path.iterdir():
        shutil.rmtree(folder)
    path = make(tmp_path / "in")
    path.write_text(
        json.dumps(mutate(json.loads(path.read_text()), data.draw)), encoding="utf-8"
    )
    try:
        summary = convert_annotations(
            find_reader(name),
            tmp_path / "in",
            tmp_path / "out",
            split=SPLITS.get(layout),
        )
    except FormatError:
        assert not (tmp_path / "out").exists()
        return
    dataset = Dataset.open(tmp_path / "out")
    assert len(list(dataset)) == summary.kept["questions"]
    lines = (tmp_path / "out/diagnostics.jsonl").read_bytes().splitlines()
    assert len(lines) == sum(summary.skipped.values()) + sum(summary.warnings.values())


@pytest.mark.parametrize("layout", ALL)
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_cut_and_scrambled_files_break_nothing(
    layout: str, tmp_path: Path, data: st.DataObject
) -> None:
    name, make = ALL[layout]
    for folder in tmp_path.iterdir():
        shutil.rmtree(folder)
    path = make(tmp_path / "in")
    text = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del text[data.draw(st.integers(0, len(text) - 1)) :]
    else:
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(text)
    try:
        convert_annotations(
            find_reader(name),
            tmp_path / "in",
            tmp_path / "out",
            split=SPLITS.get(layout),
        )
    except FormatError:
        return
    list(Dataset.open(tmp_path / "out"))
