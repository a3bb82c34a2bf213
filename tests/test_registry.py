"""One registry per kind: names, hints, plug-ins that are broken or take a built-in's name."""

import logging
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import maskwise as mw
from maskwise.benchmarks import Benchmark, find_reader
from maskwise.builder.filters import Filter
from maskwise.builder.recipe import Recipe
from maskwise.errors import (
    MaskwiseError,
    MissingDependencyError,
    ModelError,
    ProtocolError,
    UnknownNameError,
)
from maskwise.formats import AnnotationFormat
from maskwise.protocols import Protocol, Scores, ScoringInput, find_protocol, protocol
from maskwise.registry import FILTERS, FORMATS, REGISTRIES, BuiltIn, Registry
from tests.protocols.small_cases import (
    prediction,
    question,
    region,
    scoring_input,
    strip,
    target,
)

SOURCE = Path(__file__).parent.parent / "src"

HEAVY = ["numpy", "pyarrow", "PIL", "onnxruntime", "torch", "scipy"]
"""Modules that a list of names must not import."""


def make_registry(
    monkeypatch: pytest.MonkeyPatch, **points: str
) -> tuple[Registry, list[EntryPoint]]:
    """A registry with the built-in `ours` and these entry points."""
    group = "maskwise.things"
    found = [EntryPoint(name, value, group) for name, value in points.items()]
    monkeypatch.setattr("maskwise.registry.entry_points", lambda group: found)
    ours = BuiltIn("collections:OrderedDict", "a dict with an order")
    return Registry("thing", {"ours": ours}), found


def install(folder: Path, package: str, kind: str, name: str, place: str) -> None:
    """Write what an installed package consists of for `importlib.metadata`."""
    info = folder / f"{package}-2.0.dist-info"
    info.mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.0\n"
    (info / "METADATA").write_text(metadata + "Summary: things of ours\n")
    (info / "entry_points.txt").write_text(f"[maskwise.{kind}]\n{name} = {place}\n")


def run_maskwise(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(site), str(SOURCE)])
    return subprocess.run(
        [sys.executable, "-m", "maskwise", *arguments],
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "300"},
        cwd=site,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("kind", list(REGISTRIES))
def test_every_built_in_can_be_loaded_and_is_described(kind: str) -> None:
    registry = REGISTRIES[kind]
    for name, description in registry.list().items():
        assert description
        assert "\n" not in description
        try:
            assert registry.load(name, object) is not None
        except MissingDependencyError as error:
            assert registry.built_in[name].extra in str(error)  # noqa: PT017


def test_descriptions_are_those_of_the_objects() -> None:
    for name, item in FORMATS.load_all(AnnotationFormat).items():
        assert (item.name, item.title) == (name, FORMATS.list()[name])
    benchmarks = REGISTRIES["benchmarks"]
    for name, benchmark in benchmarks.load_all(Benchmark).items():
        line = f"{benchmark.title}; protocol {benchmark.protocol}"
        assert (benchmark.name, line) == (name, benchmarks.list()[name])
    recipes = REGISTRIES["recipes"]
    for name, recipe in recipes.load_all(Recipe).items():
        assert (recipe.name, recipe.title) == (name, recipes.list()[name])
    for name, check in FILTERS.load_all(Filter).items():
        assert (check.reason, check.description) == (name, FILTERS.list()[name])


def test_an_unknown_name_lists_the_known_ones_and_the_nearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry, _ = make_registry(monkeypatch, theirs="collections:Counter")
    with pytest.raises(UnknownNameError) as caught:
        registry.load("their", object, where="config.toml")
    assert str(caught.value) == (
        "config.toml: unknown thing 'their'; known: ours, package.module:attribute, "
        "theirs. Did you mean 'theirs'?"
    )


def test_plug_ins_are_found_and_loaded_on_use(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, _ = make_registry(monkeypatch, theirs="wsgiref.util:FileWrapper")
    monkeypatch.delitem(sys.modules, "wsgiref.util", raising=False)
    assert registry.list() == {
        "ours": "a dict with an order",
        "theirs": "from wsgiref.util:FileWrapper",
    }
    assert "wsgiref.util" not in sys.modules
    assert registry.load("theirs", type).__name__ == "FileWrapper"


def test_plug_ins_describe_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, _ = make_registry(
        monkeypatch,
        broken="nowhere.at_all:X",
        painter="tests.harness.fakes:Painter",
    )
    assert registry.describe_plug_ins() == {
        "broken": "from nowhere.at_all:X",
        "painter": "Answers at once, by the words and the image: a strip whose width both decide. "
        "(tests.harness.fakes:Painter, an unknown package)",
    }


def test_a_broken_plug_in_disables_only_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registry, _ = make_registry(
        monkeypatch, broken="nowhere.at_all:X", good="collections:Counter"
    )
    with caplog.at_level(logging.WARNING):
        assert list(registry.load_all(type)) == ["ours", "good"]
    assert "thing 'broken'" in caplog.text
    assert "No module named 'nowhere'" in caplog.text
    with pytest.raises(MaskwiseError, match=r"broken = nowhere\.at_all:X"):
        registry.load("broken", object)
    problems = registry.check_plug_ins()
    assert problems["good"] == ""
    assert "No module named 'nowhere'" in problems["broken"]


def test_an_object_of_another_type_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, _ = make_registry(monkeypatch, text="string:digits")
    message = "expected an object of type dict, found one of type str"
    with pytest.raises(MaskwiseError, match=message):
        registry.load("text", dict)
    with pytest.raises(MaskwiseError, match=message):
        registry.load("string:digits", dict)


def test_a_built_in_name_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registry, _ = make_registry(monkeypatch, ours="collections:Counter")
    with caplog.at_level(logging.WARNING):
        assert registry.load("ours", type).__name__ == "OrderedDict"
        assert registry.names() == ["ours"]
    assert caplog.text.count("is ignored") == 1
    assert "belongs to the thing built into maskwise" in caplog.text


def test_of_two_plug_ins_with_one_name_one_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(tmp_path, "zebra", "things", "same", "collections:Counter")
    install(tmp_path, "ape", "things", "same", "collections:deque")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry("thing", {})
    with caplog.at_level(logging.WARNING):
        assert registry.load("same", type).__name__ == "deque"
    assert "from package zebra 2.0 is ignored" in caplog.text
    assert "from package ape 2.0" in caplog.text
    assert registry.list() == {
        "same": "things of ours (collections:deque, package ape 2.0)"
    }


def test_a_module_in_the_working_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_things.py").write_text("class Things:\n    first = {1: 2}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    registry = Registry("thing", {})
    assert registry.load("my_things:Things.first", dict) == {1: 2}
    with pytest.raises(MaskwiseError, match="has no attribute 'second'"):
        registry.load("my_things:Things.second", dict)


def test_a_missing_extra_of_a_built_in_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "needs_more.py").write_text("import a_package_nobody_has\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry(
        "thing", {"big": BuiltIn("needs_more:X", "needs an extra", extra="vlm")}
    )
    with pytest.raises(
        MissingDependencyError, match=r"thing big needs a_package.*maskwise\[vlm\]"
    ):
        registry.load("big", object)


@pytest.mark.parametrize("kind", list(REGISTRIES))
def test_the_command_line_survives_a_broken_plug_in_of_any_kind(
    kind: str, tmp_path: Path
) -> None:
    install(tmp_path, "bad-lab", kind, "lab-thing", "bad_lab:THING")
    (tmp_path / "bad_lab.py").write_text("raise RuntimeError('no GPU')\n")
    listed = run_maskwise(tmp_path, "ls", kind)
    assert listed.returncode == 0, listed.stderr
    assert "lab-thing" in listed.stdout
    checked = run_maskwise(tmp_path, "ls", "plugins")
    assert "from package bad-lab 2.0" in checked.stdout
    assert "`lab-thing = bad_lab:THING`" in checked.stdout
    assert "RuntimeError: no GPU" in checked.stdout
    assert "Traceback" not in checked.stderr


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("models", ("eval", "world", "--model", "lab-thing", "--out", "run")),
        ("formats", ("read", "lab-thing", ".", "--out", "data")),
        ("benchmarks", ("read", "lab-thing", ".", "--out", "data")),
        ("protocols", ("score", "x.jsonl", "world", "--protocol", "lab-thing")),
        ("recipes", ("build", "lab-thing", "world", "--out", "data")),
        ("trainers", ("train", "lab.toml", "--dry-run")),
    ],
)
def test_using_a_broken_plug_in_names_its_package(
    kind: str, arguments: tuple[str, ...], tmp_path: Path
) -> None:
    install(tmp_path, "bad-lab", kind, "lab-thing", "bad_lab:THING")
    (tmp_path / "bad_lab.py").write_text("import a_package_nobody_has\n")
    (tmp_path / "lab.toml").write_text('model = "lab-thing"\n')
    (tmp_path / "x.jsonl").write_text("")
    result = run_maskwise(tmp_path, *arguments)
    assert result.returncode == 2
    assert "from package bad-lab 2.0" in result.stderr
    assert "No module named 'a_package_nobody_has'" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_plug_in_with_a_built_in_name_is_reported_by_the_command_line(
    tmp_path: Path,
) -> None:
    install(tmp_path, "copycat", "formats", "coco", "json:loads")
    result = run_maskwise(tmp_path, "card", "coco")
    assert "COCO and LVIS" in result.stdout
    assert "format 'coco' from package copycat 2.0 is ignored" in result.stderr


def test_listing_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from maskwise.registry import REGISTRIES\n"
        "names = [registry.list() for registry in REGISTRIES.values()]\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == "[]"


def test_readers_of_a_module_are_found_by_place() -> None:
    assert find_reader("maskwise.formats.coco:COCO") is find_reader("coco")
    with pytest.raises(MaskwiseError, match="expected an object of type Annotation"):
        find_reader("maskwise.formats.coco:read")


def rule(inputs: ScoringInput, *, floor: float = 0.5, mode: str = "a") -> Scores:
    """The scores of `union`, if the options arrive."""
    assert (floor, mode) == (0.25, "b")
    return find_protocol("union").score(inputs)


def test_options_of_a_protocol_of_ones_own_may_be_text() -> None:
    samples = [question("a", target(strip(0, 4)))]
    inputs = scoring_input(samples, [prediction("a", region(strip(0, 2)))])
    mine = protocol(rule)
    assert mine.name == "rule"
    assert mine.description == "The scores of `union`, if the options arrive."
    assert mine.score(inputs, floor="0.25", mode="b").headline()["giou"] == 0.5
    with pytest.raises(ProtocolError, match="floor is 'x'; it takes a value of type"):
        mine.score(inputs, floor="x")
    with pytest.raises(UnknownNameError, match="Did you mean 'floor'"):
        mine.score(inputs, flor=1)


@pytest.mark.parametrize("name", ["strict", "lisa"])
def test_a_protocol_cannot_take_a_built_in_name(name: str) -> None:
    with pytest.raises(ProtocolError, match=f"{name!r} belongs to a built-in"):
        find_protocol(Protocol(name, "mine", rule))
    assert find_protocol(find_protocol(name)).name == name


def test_a_protocol_must_return_scores() -> None:
    broken = Protocol("broken", "returns text", lambda inputs: "good")  # type: ignore[arg-type,return-value]
    with pytest.raises(ProtocolError, match="returned a value of type str"):
        broken.score(None)  # type: ignore[arg-type]


def test_a_protocol_that_is_no_function_is_refused() -> None:
    with pytest.raises(ProtocolError, match="expected a scoring function"):
        find_protocol("string:digits")


def test_a_model_spec_that_fails_is_a_model_error() -> None:
    with pytest.raises(ModelError, match="cannot load nowhere:x"):
        mw.load_model("nowhere:x")
