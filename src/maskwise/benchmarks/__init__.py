"""Benchmarks: published datasets of questions, one file per benchmark: card, reader, name of the official protocol.

    benchmark = find_benchmark("mmr")
    benchmark.card.data.size
    convert_annotations(benchmark, Path("/data/MMR"), Path("mmr_val"), split="val")

docs/extending.md shows how another package adds one.
"""

from maskwise.benchmarks.benchmark import RISKS, Benchmark, BenchmarkCard, RiskTest
from maskwise.benchmarks.risk_tests import describe_risk_tests, risk_label
from maskwise.errors import UnknownNameError
from maskwise.formats import AnnotationFormat, find_format
from maskwise.registry import BENCHMARKS, FORMATS, SPEC_FORM

__all__ = [
    "RISKS",
    "Benchmark",
    "BenchmarkCard",
    "RiskTest",
    "describe_risk_tests",
    "find_benchmark",
    "find_reader",
    "risk_label",
]


def find_benchmark(name: str) -> Benchmark:
    """The benchmark of a name or of `package.module:attribute`; UnknownNameError lists
    the known ones.
    """
    return BENCHMARKS.load(name, Benchmark)


def find_reader(name: str) -> AnnotationFormat:
    """The benchmark or format of a name, in any case, or of `package.module:attribute`."""
    if ":" in name:
        return find_format(name)
    lower_name = name.lower()
    if lower_name in BENCHMARKS.names():
        return find_benchmark(lower_name)
    if lower_name in FORMATS.names():
        return find_format(lower_name)
    known = [*BENCHMARKS.names(), *FORMATS.names(), SPEC_FORM]
    raise UnknownNameError("benchmark or format", name, known)
