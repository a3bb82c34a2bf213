"""A dataset of the hub as a source: read in order while training goes on, and not stored."""

import gc
import tempfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("peft", reason="the extra `vlm` is not installed")
pytest.importorskip("datasets", reason="the extra `hub` is not installed")

import maskwise as mw
from maskwise.errors import ConfigError, DownloadError
from maskwise.training.vlm import streamed_source
from maskwise.training.vlm.augment import Augmentation
from maskwise.training.vlm.config import SourceConfig
from maskwise.training.vlm.mixing import MixedOrder
from maskwise.training.vlm.sources import TrainingItems, open_source
from maskwise.world import bundled

ROWS = 12
WINDOW = 5


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceConfig:
    """Twelve images of the bundled benchmark as a folder that `datasets` streams as it does the hub."""
    monkeypatch.setattr(streamed_source, "ROWS_AT_ONCE", WINDOW)
    monkeypatch.setattr(streamed_source.StreamedSource, "window", WINDOW)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    data = mw.load_dataset("world")
    ids = set(data.images.id[:ROWS])
    out = tmp_path / "rows"
    mw.write_dataset(
        data.filter(lambda sample: sample.image_id in ids), "huggingface", out
    )
    return SourceConfig(stream=f"hf:{out}", split="test", expected_images=ROWS)


def test_items_are_those_of_the_dataset(stream: SourceConfig) -> None:
    source = open_source(stream)
    whole = open_source(SourceConfig(dataset=str(bundled())))
    assert len(source) == ROWS
    # Forwards through all windows, then back to the first, which begins the stream again.
    for index in (0, 3, 6, 11, 1):
        item = source[index]
        expected = whole[index]
        assert [sample.question for sample in item.samples] == [
            sample.question for sample in expected.samples
        ]
        assert item.samples[0].targets == expected.samples[0].targets
        assert np.array_equal(np.asarray(item.image), np.asarray(expected.image))


def test_rows_of_a_window_are_shuffled_and_windows_stay_in_order(
    stream: SourceConfig,
) -> None:
    items = TrainingItems(
        {"stream": open_source(stream)},
        {"stream": 1.0},
        Augmentation(),
        questions_per_image=2,
        seed=1,
    )
    drawn = [items.order.draw(position)[1] for position in range(2 * ROWS)]
    for epoch in (drawn[:ROWS], drawn[ROWS:]):
        assert sorted(epoch) == list(range(ROWS))
        assert sorted(epoch[:WINDOW]) == list(range(WINDOW))
        assert sorted(epoch[2 * WINDOW :]) == [10, 11]
    assert drawn[:ROWS] != drawn[ROWS:]
    # An item is a function of its position, wherever a run continues.
    assert items[13].samples == items[13].samples


def test_a_window_that_is_no_longer_needed_leaves_no_files(
    stream: SourceConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_source, "KEPT_WINDOWS", 1)
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(kept))
    source = open_source(stream)
    for index in range(ROWS):
        assert source[index].image is not None
    gc.collect()
    assert len(list(kept.iterdir())) == 1


def test_a_split_with_fewer_rows_is_named(stream: SourceConfig) -> None:
    source = open_source(
        SourceConfig(stream=stream.stream, split="test", expected_images=100)
    )
    with pytest.raises(
        ConfigError, match="test has no row 15; expected_images says 100"
    ):
        source[17]


def test_a_stream_that_cannot_be_read_is_an_error_before_training(
    tmp_path: Path,
) -> None:
    missing = SourceConfig(stream=f"hf:{tmp_path}/no", expected_images=1)
    with pytest.raises(DownloadError, match="cannot be read from the hub"):
        open_source(missing)
    with pytest.raises(ValueError, match="needs `expected_images`"):
        SourceConfig(stream="hf:owner/name")


def test_windows_divide_every_epoch() -> None:
    order = MixedOrder({"a": 10}, {"a": 1.0}, seed=0, windows={"a": 4})
    drawn = [order.draw(position)[1] for position in range(20)]
    for first in (0, 10):
        parts = [drawn[first : first + 4], drawn[first + 4 : first + 8]]
        assert [sorted(part) for part in parts] == [[0, 1, 2, 3], [4, 5, 6, 7]]
