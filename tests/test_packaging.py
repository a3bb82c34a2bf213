"""Extras, pins and the citation file agree with pyproject.toml and with what the code imports."""

import re
import tomllib
from pathlib import Path

import maskwise
from tests.test_layers import EXTRAS, IMPORTS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
TOOLS = {"dev", "bench", "docs", "webtest"}
INDIRECT = {"bitsandbytes", "mlflow_skinny", "onnx", "psycopg", "tensorboard"}
"""Needed by transformers for weights in 4 bits, imported under another name (mlflow), needed by torch when it exports a
model, by SQLAlchemy for PostgreSQL, and by training, which writes curves by the name of a tracker.
"""


def distribution(requirement: str) -> str:
    return re.split(r"[\[<>=! ]", requirement)[0].lower()


def test_every_extra_brings_only_what_is_imported() -> None:
    imported = {found.name.split(".")[0] for found in IMPORTS}
    for extra, requirements in PROJECT["optional-dependencies"].items():
        if extra not in TOOLS:
            unused = (
                {distribution(text).replace("-", "_") for text in requirements}
                - imported
                - INDIRECT
            )
            assert not unused, f"extra {extra}: nothing imports {sorted(unused)}"


def test_every_import_of_an_extra_is_declared() -> None:
    declared = {
        distribution(text).replace("-", "_")
        for requirements in PROJECT["optional-dependencies"].values()
        for text in requirements
    }
    assert set(EXTRAS) <= declared


def test_requirements_are_pinned_for_continuous_integration() -> None:
    pinned = set(
        re.findall(
            r"^([\w.-]+)==",
            (ROOT / "constraints.txt").read_text(encoding="utf-8"),
            re.M,
        )
    )
    wanted = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    assert {distribution(text) for texts in wanted for text in texts} <= pinned


def test_versions_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert PROJECT["version"] == maskwise.__version__
    assert f"version: {maskwise.__version__}\n" in citation
