"""Held-out datasets, and the metrics that validation reports."""

from pathlib import Path

import pytest

from maskwise.errors import ConfigError
from maskwise.store import DatasetWriter
from maskwise.training.validation import (
    VALIDATION_METRICS,
    open_validation,
    select_metrics,
    write_validation,
)


def test_metrics_without_a_value_are_left_out() -> None:
    values = {"giou": 0.5, "occluded_iou": None, "not_reported": 1.0}
    assert select_metrics(values, "val_") == {"val_giou": 0.5}
    assert select_metrics({}) == {}


def test_metrics_keep_their_order() -> None:
    values = dict.fromkeys(reversed(VALIDATION_METRICS), 0.0)
    assert tuple(select_metrics(values)) == VALIDATION_METRICS


def test_scenes_are_written_once(tmp_path: Path) -> None:
    first = write_validation(tmp_path / "val", 2, 5, size=64, questions=2)
    assert len(first.images) == 2
    again = write_validation(tmp_path / "val", 7, 5, size=64, questions=2)
    assert len(again.images) == 2, "a run that continues keeps its held-out scenes"


def test_a_dataset_without_questions_or_folder_is_refused(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "empty", name="empty"):
        pass
    with pytest.raises(ConfigError, match="empty has no questions to validate on"):
        open_validation(str(tmp_path / "empty"))
    with pytest.raises(ConfigError, match="`maskwise read` and `maskwise build` make"):
        open_validation(str(tmp_path / "absent"))
