"""Messages about unknown names suggest the known name that is most like it."""

from collections.abc import Callable

import pytest

import maskwise as mw
from maskwise.benchmarks import find_reader
from maskwise.datasets import find_dataset
from maskwise.downloads.table import find_download
from maskwise.errors import (
    FormatError,
    ModelError,
    StoreError,
    UnknownNameError,
    did_you_mean,
)
from maskwise.formats import find_format
from maskwise.protocols import find_protocol


@pytest.mark.parametrize(
    ("find", "written", "meant"),
    [
        (mw.load_model, "tinny", "tiny"),
        (find_reader, "MMRR", "mmr"),
        (find_format, "cocco", "coco"),
        (find_protocol, "strickt", "strict"),
        (find_download, "yolox_nano", "yolox_nano.onnx"),
        (find_dataset, "wrld", "world"),
        (find_dataset, "reasonseg-val", "reasonseg_val"),
    ],
)
def test_a_name_that_is_almost_right_is_recognized(
    find: Callable[[str], object], written: str, meant: str
) -> None:
    with pytest.raises((UnknownNameError, StoreError)) as error:
        find(written)
    assert str(error.value).endswith(f". Did you mean {meant!r}?")


def test_a_name_like_no_other_gets_the_list_alone() -> None:
    assert str(UnknownNameError("protocol", "zzz", ["lisa", "gres"])) == (
        "unknown protocol 'zzz'; known: gres, lisa"
    )
    assert did_you_mean("anything", []) == ""


def test_options_are_suggested_too() -> None:
    with pytest.raises(ModelError, match=r"Did you mean 'noise'\?"):
        mw.load_model("oracle", nois=2)
    with pytest.raises(FormatError, match=r"Did you mean 'drawing'\?"):
        find_reader("reasonseg").check_options({"drawings": "x"})
