"""Predictions scored in parts: the scores of all at once, bit for bit, whatever the order of the file."""

from pathlib import Path

import msgspec
import pytest

from maskwise.engines import EngineOptions
from maskwise.errors import MaskwiseError, ProtocolError
from maskwise.harness.parts import compute_scores_in_parts
from maskwise.harness.predict import predict_dataset
from maskwise.harness.score import score
from maskwise.store import Dataset
from maskwise.store.folder import IGNORED_PIXELS, MERGED
from maskwise.world import write_scenes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, and predictions in another order, one of them missing, one failed, one for an unknown sample."""
    path = tmp_path_factory.mktemp("parts")
    write_scenes(path / "scenes", 14, 3)
    predict_dataset("visible-copy", path / "scenes", path / "run")
    lines = (path / "run" / "predictions.jsonl").read_bytes().splitlines(keepends=True)
    records = [msgspec.json.decode(line) for line in lines]
    failed = {"sample": records[5]["sample"], "error": "out of memory"}
    unknown = {"sample": "nobody", "regions": []}
    changed = [failed if item == 5 else record for item, record in enumerate(records)]
    shuffled = [*changed[9:], unknown, *changed[:7]]
    text = b"\n".join(msgspec.json.encode(record) for record in shuffled)
    (path / "predictions.jsonl").write_bytes(text + b'\n\n{"sample": "cut')
    return path


def encoded(folder: Path, **options: object) -> bytes:
    with pytest.warns(UserWarning, match="incomplete last line"):
        run = score(
            folder / "predictions.jsonl",
            folder / "scenes",
            progress=False,
            **options,  # type: ignore[arg-type]
        )
    return msgspec.json.encode(run.scores)


@pytest.mark.parametrize("parts", [1, 2, 5, 1000])
def test_scores_are_those_of_all_at_once(folder: Path, parts: int) -> None:
    assert encoded(folder, parts=parts) == encoded(folder)


def test_columns_do_not_keep_files_open(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_files = Path("/proc/self/fd")
    if not open_files.exists():
        pytest.skip("open files are not listed here")
    whole = encoded(folder)
    before = len(list(open_files.iterdir()))
    with pytest.warns(UserWarning, match="incomplete last line"):
        result = compute_scores_in_parts(
            folder / "predictions.jsonl", Dataset.open(folder / "scenes"), parts=3
        )
    # One for the columns, whatever their number, and one for those of the parts.
    assert len(list(open_files.iterdir())) <= before + 2
    assert result.scores
    # A map that is too small for the next column is followed by another one.
    monkeypatch.setattr("maskwise.harness.parts.MAPPED_BYTES", 256)
    assert encoded(folder, parts=3) == whole


def test_merged_ignored_pixels_are_warned_about(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dataset = Dataset.open(folder / "scenes")
    dataset.manifest.about[IGNORED_PIXELS] = MERGED
    with pytest.warns(UserWarning, match="incomplete last line"):
        compute_scores_in_parts(
            folder / "predictions.jsonl", dataset, ["lisa"], parts=2
        )
    assert "scores under lisa are not those of the original dataset" in caplog.text


def test_tables_are_those_of_all_at_once(folder: Path, tmp_path: Path) -> None:
    for name, parts in (("whole", None), ("parts", 3)):
        encoded(folder, out=tmp_path / name, parts=parts)
    for table in ("scores.json", "scores.arrow", "metrics.arrow"):
        whole = (tmp_path / "whole" / table).read_bytes()
        assert (tmp_path / "parts" / table).read_bytes() == whole
    assert not (tmp_path / "parts" / "report.html").exists()


def test_other_predictions_than_a_jsonl_file_are_refused(folder: Path) -> None:
    with pytest.raises(ProtocolError, match="only a JSONL file"):
        score([None], folder / "scenes", parts=2, progress=False)
    with pytest.raises(ProtocolError, match="does not exist"):
        score(folder / "none.jsonl", folder / "scenes", parts=2, progress=False)


def test_values_of_all_predictions_at_once_are_refused(folder: Path) -> None:
    legacy = {"lisa": {"legacy_float32": True}}
    with (
        pytest.warns(UserWarning, match="incomplete last line"),
        pytest.raises(ProtocolError, match="score it without parts"),
    ):
        score(
            folder / "predictions.jsonl",
            folder / "scenes",
            protocols="lisa",
            options=legacy,
            parts=2,
            progress=False,
        )


def test_views_of_a_dataset_are_refused(folder: Path) -> None:
    view = Dataset.open(folder / "scenes")[:7]
    with pytest.raises(ProtocolError, match="whole dataset"):
        score(folder / "predictions.jsonl", view, parts=2, progress=False)


def test_two_predictions_for_a_sample_are_refused(folder: Path, tmp_path: Path) -> None:
    line = (folder / "run" / "predictions.jsonl").read_bytes().splitlines()[0]
    (tmp_path / "twice.jsonl").write_bytes(line + b"\n" + line + b"\n")
    sample = msgspec.json.decode(line)["sample"]
    ends = len(line) + 1
    expected = f"two predictions for sample '{sample}', in bytes 0 to {ends} and {ends} to {2 * ends}"
    with pytest.raises(MaskwiseError, match=expected):
        score(tmp_path / "twice.jsonl", folder / "scenes", parts=2, progress=False)


def test_workers_of_ray_give_the_same_scores(folder: Path) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    engine = EngineOptions(engine="ray", workers=1)
    assert encoded(folder, parts=3, engine=engine) == encoded(folder)
