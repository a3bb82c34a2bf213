"""Every format reads a small dataset in its published layout, without a single diagnostic."""

from pathlib import Path

import pytest

from tests.formats.layouts import BENCHMARKS, SOURCES
from tests.formats.reading import read

ALL = SOURCES | BENCHMARKS
SPLITS = {"grefcoco": "val"}


@pytest.mark.parametrize("layout", ALL)
def test_reads_without_a_problem(layout: str, tmp_path: Path) -> None:
    name, make = ALL[layout]
    make(tmp_path)
    scenes, diagnostics = read(name, tmp_path, split=SPLITS.get(layout))
    assert scenes
    assert diagnostics == []
    assert all(region.size == (10, 12) for scene in scenes for region in scene.regions)
    assert bool(scenes[0].samples) == (layout in BENCHMARKS)


@pytest.mark.parametrize("layout", ALL)
def test_reading_twice_gives_the_same(layout: str, tmp_path: Path) -> None:
    name, make = ALL[layout]
    make(tmp_path)
    assert read(name, tmp_path, split=SPLITS.get(layout)) == read(
        name, tmp_path, split=SPLITS.get(layout)
    )
