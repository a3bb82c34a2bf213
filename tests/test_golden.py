"""Every golden file that lies beside the project passes."""

import json
from pathlib import Path

import pytest

from docs.generate.front_page import AGREEMENT
from tests.golden import check_file, known_protocols
from tests.golden.__main__ import main as check_golden
from tests.golden.agreement import measure
from tests.shared import ROOT, shared

FILES = sorted(path.name for path in (ROOT / "golden").glob("*.json")) or [
    "mask_polygons.json"
]


@pytest.mark.parametrize("name", FILES)
def test_golden(name: str) -> None:
    path = shared("golden", name)
    if json.loads(path.read_bytes())["protocol"] not in known_protocols():
        pytest.skip(f"no check for {name} yet")
    failed = [
        f"{case}: {problem}"
        for case, problems in check_file(path)
        for problem in problems
    ]
    assert not failed, "\n".join(failed)


def write_golden(path: Path, protocol: str, counts: str) -> str:
    given = {"height": 1, "width": 2, "rows": ["01"]}
    expected = {
        "rle": {"size": [1, 2], "counts": counts},
        "area": 1,
        "bbox": [1, 0, 1, 1],
    }
    exact = {"runs": [1, 1], "area": 1, "bbox": [1, 0, 1, 1]}
    case = {
        "name": "one",
        "input": given,
        "expected": expected,
        "expected_exact": exact,
    }
    path.write_text(json.dumps({"protocol": protocol, "cases": [case]}))
    return str(path)


def test_the_command_counts_and_names_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write_golden(tmp_path / "good.json", "mask_dense", "11")
    bad = write_golden(tmp_path / "bad.json", "mask_dense", "2")
    unknown = write_golden(tmp_path / "unknown.json", "no_such", "11")
    assert check_golden([good]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"
    assert check_golden([good, bad, unknown, str(tmp_path / "absent.json")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.startswith("one: expected (C order).rle.counts: got '11', wanted '2'")
        for line in lines
    )
    assert any("unknown golden protocol 'no_such'; known: " in line for line in lines)
    assert lines[-1] == "1 passed, 3 failed"


def test_the_agreement_in_the_readme_is_what_is_measured() -> None:
    stored = json.loads(AGREEMENT.read_text(encoding="utf-8"))
    folder = shared("golden", "lisa.json").parent
    assert sorted(stored) == sorted(path.stem for path in folder.glob("*.json"))
    for name, result in stored.items():
        measured = measure(folder / f"{name}.json")
        assert {**measured, "largest": 0} == {**result, "largest": 0}, name
        # The last digits of rounding errors depend on the machine.
        assert measured["largest"] == pytest.approx(result["largest"], abs=1e-6), name
