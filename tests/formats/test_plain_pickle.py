"""Plain pickles are read; every way to name, call or blow up anything is refused, and nothing runs."""

import copyreg
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest

from maskwise.errors import FormatError
from maskwise.formats import plain_pickle
from maskwise.formats.plain_pickle import read_plain_pickle

REFERENCES = [{"ref_id": 2**70, "sentences": [{"sent": "a cat", "tokens": ["a"]}]}]


def load(tmp_path: Path, data: bytes) -> Any:
    path = tmp_path / "refs.p"
    path.write_bytes(data)
    return read_plain_pickle(path)


@pytest.mark.parametrize("protocol", range(6))
def test_plain_values_of_every_protocol_are_read(protocol: int, tmp_path: Path) -> None:
    assert load(tmp_path, pickle.dumps(REFERENCES, protocol)) == REFERENCES


def test_text_of_python_2_is_read_as_ascii_or_latin1(tmp_path: Path) -> None:
    # SHORT_BINSTRING is what Python 2 writes for str.
    assert load(tmp_path, b"\x80\x02]U\x03cata.") == ["cat"]
    assert load(tmp_path, b"\x80\x02]U\x04caf\xe9a.") == ["caf\xe9"]


class Payload:
    """Runs a command when it is unpickled, in any careless unpickler."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.proof}",)


def hostile(proof: Path) -> dict[str, bytes]:
    command = f"touch {proof}".encode()
    short = bytes([len(command)]) + command
    return {
        "REDUCE": pickle.dumps([Payload(proof)], 2),
        "GLOBAL": b"cos\nsystem\n(S'" + command + b"'\ntR.",
        "STACK_GLOBAL": pickle.dumps([Payload(proof)], 4),
        "INST": b"(S'" + command + b"'\nios\nsystem\n.",
        "OBJ": b"(cos\nsystem\nS'" + command + b"'\no.",
        "NEWOBJ": b"\x80\x02cbuiltins\nobject\n)\x81.",
        "NEWOBJ_EX": b"\x80\x04cbuiltins\nobject\n)}\x92.",
        "BUILD": b"\x80\x02cbuiltins\nobject\n)\x81}b.",
        "PERSID": b"Pos.system\n.",
        "BINPERSID": b"\x80\x02X\x01\x00\x00\x00aQ.",
        "EXT1": b"\x80\x02\x82\x01.",
        "EXT4": b"\x80\x02\x84\x01\x00\x00\x00.",
        "BYTEARRAY8": b"\x80\x05\x96" + struct.pack("<Q", 2**36) + b".",
        "BUFFER": b"\x80\x05\x97.",
        "nested module": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c"
        + short
        + b"\x85R.",
    }


@pytest.mark.parametrize("kind", hostile(Path("x")))
def test_hostile_pickles_are_refused_and_nothing_runs(
    kind: str, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    with pytest.raises(FormatError, match="pickle"):
        load(tmp_path, hostile(proof)[kind])
    assert not proof.exists()


def test_the_global_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"numpy\.core\.multiarray\.scalar"):
        load(tmp_path, b"cnumpy.core.multiarray\nscalar\n.")


def test_a_registered_extension_is_refused_too(tmp_path: Path) -> None:
    """Such a code may be resolved from a cache, without the lookup of a global."""
    copyreg.add_extension("os", "system", 77)
    try:
        pickle.loads(b"\x80\x02\x82\x4d.")  # fills the cache
        with pytest.raises(FormatError, match="extension 77"):
            load(tmp_path, b"\x80\x02\x82\x4dU\x04true\x85R.")
    finally:
        copyreg.remove_extension("os", "system", 77)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b"\x80\x09N.",
        b"(((((",
        b"hello world",
        pickle.dumps(REFERENCES)[:-5],
        b"I" + b"9" * 100_000 + b"\n.",
        b"\x80\x02\x8b" + struct.pack("<i", -1) + b".",
        b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"a.",
        b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b".",
        b"]e.",
        b"}u.",
        b"h\x05.",
        b"N(e.",
        b"\x80\x02X\x01\x00\x00\x00a)R.",
        b"\x80\x02])\x81.",
        b"\x80\x02]}K\x01K\x02sb.",
        b"\x80\x02}(]K\x01u.",
    ],
    ids=range(18),
)
def test_damaged_pickles_are_errors(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"refs\.p"):
        load(tmp_path, data)


def test_a_large_memo_number_takes_no_memory(tmp_path: Path) -> None:
    """The C unpickler reserves 32 GB for it."""
    assert load(tmp_path, b"\x80\x02]r\xff\xff\xff\x7f.") == []


def test_lists_within_lists_many_times_are_refused(tmp_path: Path) -> None:
    """Ten references to ten references ...: small in memory, endless to walk through."""
    value: Any = []
    for _ in range(40):
        value = [value] * 10
    with pytest.raises(FormatError, match="repeats lists"):
        load(tmp_path, pickle.dumps(value))
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(FormatError, match="repeats lists"):
        load(tmp_path, pickle.dumps(circle))


def test_deep_nesting_is_read(tmp_path: Path) -> None:
    value = load(tmp_path, b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".")
    assert len(value) == 1


def test_large_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_pickle, "MAX_BYTES", 10)
    with pytest.raises(FormatError, match="at most 10"):
        load(tmp_path, pickle.dumps(REFERENCES))
