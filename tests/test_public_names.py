"""`import maskwise` is light, and every public name loads on first use."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import maskwise as mw

SOURCE = Path(mw.__file__)


def test_import_loads_neither_numpy_nor_a_package() -> None:
    script = (
        "import sys, maskwise as mw; dir(mw); "
        "loaded = [name for name in sys.modules if name.split('.')[0] in ('numpy', 'PIL', 'pyarrow', 'msgspec')]; "
        "ours = [name for name in sys.modules if name.startswith('maskwise.')]; "
        "print(loaded + ours)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", mw.__all__)
def test_every_name_loads(name: str) -> None:
    assert getattr(mw, name).__doc__


def test_no_name_is_that_of_a_package() -> None:
    """Importing the package `maskwise.NAME` would put it in the place of the name."""
    modules = {path.stem for path in SOURCE.parent.iterdir()}
    assert not modules & set(mw.__all__)


def test_the_three_lists_agree() -> None:
    listed = [name for names in mw._MODULES.values() for name in names]
    assert sorted(listed) == sorted(mw.__all__)
    (typed,) = [
        node
        for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imported = {
        (node.module, alias.name)
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {
        (f"maskwise.{module}", name)
        for module, names in mw._MODULES.items()
        for name in names
    }


def test_dir_lists_the_names() -> None:
    assert set(mw.__all__) <= set(dir(mw))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'load_modle'"):
        mw.load_modle  # noqa: B018


def test_every_error_is_a_maskwise_error() -> None:
    errors = [getattr(mw, name) for name in mw.__all__ if name.endswith("Error")]
    assert len(errors) >= 10
    assert all(issubclass(error, mw.MaskwiseError) for error in errors)
