"""Logs keep every line that was finished, whatever happens to the writer."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from maskwise.errors import StoreError
from maskwise.masks import Mask
from maskwise.schema import Answer, PredictedRegion, Prediction
from maskwise.store import Log

MASK = Mask.from_dense(np.eye(5, dtype=bool))
RECORDS = [
    Prediction(sample="a", answer=Answer(text="déjà vu \n \u2028 🐈"), no_target=True),
    Prediction(
        sample="b",
        regions=(PredictedRegion(visible=MASK, score=0.5),),
        mask_type="visible",
    ),
    Prediction(sample="c", error="timed out"),
]
NEXT = Prediction(sample="d", no_target=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "predictions.jsonl"


def append(path: Path, *records: Prediction) -> None:
    with Log(path, Prediction) as log:
        for record in records:
            log.append(record)


def test_records_come_back_in_order(path: Path) -> None:
    append(path, *RECORDS[:1])
    append(path, *RECORDS[1:])
    log = Log(path, Prediction)
    assert log.read() == list(log) == RECORDS
    assert path.read_bytes().count(b"\n") == 3


def test_a_log_not_begun_is_empty(path: Path) -> None:
    assert Log(path, Prediction).read() == []
    assert not path.exists()
    append(path)
    assert Log(path, Prediction).read() == []


def test_an_appended_record_is_readable_at_once(path: Path) -> None:
    log = Log(path, Prediction, sync=True)
    for count, record in enumerate(RECORDS, 1):
        log.append(record)
        assert Log(path, Prediction).read() == RECORDS[:count]
    log.close()
    log.close()


def test_cut_at_every_byte(path: Path) -> None:
    """Wherever a kill cuts the file, all whole records are read, and appending goes on from there."""
    append(path, *RECORDS)
    whole = path.read_bytes()
    ends = [place for place, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        # A line that lacks only its newline is whole; a shorter one is torn.
        kept = sum(length >= end for end in ends)
        torn = length not in {0, *ends, *(end + 1 for end in ends)}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert Log(path, Prediction).read() == RECORDS[:kept]
        assert len(caught) == torn, length
        if torn:
            assert f"dropped the truncated last line (line {kept + 1})" in str(
                caught[0].message
            )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            append(path, NEXT)
        assert len(caught) == torn, length
        assert Log(path, Prediction).read() == [*RECORDS[:kept], NEXT]
        assert path.read_bytes().startswith(whole[: ends[kept - 1] + 1 if kept else 0])


def test_a_tail_longer_than_a_block_is_cut(path: Path) -> None:
    long = Prediction(sample="long", answer=Answer(text="x" * 200_000))
    append(path, RECORDS[0], long)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.warns(UserWarning, match="cut off the truncated last line"):
        append(path, NEXT)
    assert Log(path, Prediction).read() == [RECORDS[0], NEXT]


@pytest.mark.parametrize(
    "damage",
    [b"{", b"", b"null", b'{"sample":"x","color":1}', b'{"sample":3}', b"\xff\xfe"],
)
def test_a_corrupt_line_within_is_named_not_skipped(path: Path, damage: bytes) -> None:
    append(path, *RECORDS)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + damage + b"\n" + lines[2])
    with pytest.raises(StoreError, match=r"predictions\.jsonl, line 2: "):
        Log(path, Prediction).read()


def test_a_mask_damaged_within_is_named(path: Path) -> None:
    append(path, *RECORDS)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(json.dumps(MASK.counts)[1:-1], "!!"), encoding="utf-8")
    with pytest.raises(StoreError, match="line 2"):
        Log(path, Prediction).read()


def test_a_second_writer_is_refused(path: Path) -> None:
    with Log(path, Prediction) as log:
        log.append(RECORDS[0])
        with pytest.raises(
            StoreError, match=r"predictions\.jsonl is being written by another"
        ):
            append(path, NEXT)
        assert Log(path, Prediction).read() == RECORDS[:1]
    append(path, NEXT)
    assert Log(path, Prediction).read() == [RECORDS[0], NEXT]


@pytest.mark.posix
def test_a_killed_writer_frees_the_log(path: Path) -> None:
    script = textwrap.dedent(f"""
        import os, signal
        from maskwise.schema import Prediction
        from maskwise.store import Log
        log = Log({str(path)!r}, Prediction)
        for number in range(100):
            log.append(Prediction(sample=str(number), no_target=True))
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert (
        subprocess.run([sys.executable, "-c", script], check=False).returncode
        == -signal.SIGKILL
    )
    append(path, NEXT)
    assert [record.sample for record in Log(path, Prediction)] == [
        *map(str, range(100)),
        "d",
    ]


def test_threads_do_not_mix_lines(path: Path) -> None:
    with Log(path, Prediction) as log:
        work = [
            threading.Thread(
                target=lambda: [log.append(record) for record in RECORDS * 20]
            )
            for _ in range(8)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert len(Log(path, Prediction).read()) == 8 * 60


def test_a_full_disk_leaves_whole_lines(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) > 10:
            return write(descriptor, bytes(data[:10]))
        raise OSError(28, "No space left on device")

    with Log(path, Prediction) as log:
        log.append(RECORDS[0])
        monkeypatch.setattr(os, "write", half)
        with pytest.raises(StoreError, match="No space left"):
            log.append(RECORDS[1])
        monkeypatch.setattr(os, "write", write)
        log.append(RECORDS[2])
    assert Log(path, Prediction).read() == [RECORDS[0], RECORDS[2]]
