"""Benchmarks: published datasets of questions, one file per benchmark: card, reader, name of the official protocol.

    benchmark = find_benchmark("mmr")
    benchmark.card.data.size
    convert_annotations(benchmark, Path("/data/MMR"), Path("mmr_val"), split="val")

Another package adds a benchmark by an entry point of the group `maskwise.benchmarks` that names a `Benchmark`.
"""

from importlib.metadata import entry_points

from maskwise.benchmarks.amodalreasonseg import AMODALREASONSEG
from maskwise.benchmarks.benchmark import RISKS, Benchmark, BenchmarkCard
from maskwise.benchmarks.grefcoco import GREFCOCO
from maskwise.benchmarks.mmr import MMR
from maskwise.benchmarks.muse import MUSE
from maskwise.benchmarks.r2sm import R2SM
from maskwise.benchmarks.reasonseg import REASONSEG
from maskwise.benchmarks.refcocom import REFCOCOM
from maskwise.errors import UnknownNameError
from maskwise.formats import AnnotationFormat, list_formats

__all__ = [
    "RISKS",
    "Benchmark",
    "BenchmarkCard",
    "find_benchmark",
    "find_reader",
    "list_benchmarks",
]

_BUILT_IN = (AMODALREASONSEG, R2SM, MMR, REASONSEG, MUSE, GREFCOCO, REFCOCOM)


def list_benchmarks() -> dict[str, Benchmark]:
    """All benchmarks by name: built-in ones and those of installed packages."""
    return {benchmark.name: benchmark for benchmark in _BUILT_IN} | {
        point.name: point.load() for point in entry_points(group="maskwise.benchmarks")
    }


def find_benchmark(name: str) -> Benchmark:
    """The benchmark of this name; UnknownNameError lists the known ones."""
    known = list_benchmarks()
    if name not in known:
        raise UnknownNameError("benchmark", name, known)
    return known[name]


def find_reader(name: str) -> AnnotationFormat:
    """The benchmark or format of this name."""
    known: dict[str, AnnotationFormat] = {**list_formats(), **list_benchmarks()}
    if name.lower() not in known:
        raise UnknownNameError("benchmark or format", name, known)
    return known[name.lower()]
