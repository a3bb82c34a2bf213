"""Cards are complete, their risks known, their facts the readers' own; the document of layouts is up to date."""

from pathlib import Path

import msgspec
import pytest
import yaml

from maskwise import registry
from maskwise.benchmarks import RISKS, Benchmark, find_reader
from maskwise.benchmarks.benchmark import CARDS
from maskwise.errors import FormatError
from maskwise.formats import AnnotationFormat

BENCHMARKS = registry.BENCHMARKS.load_all(Benchmark)
SECTIONS = [
    "benchmark_details",
    "purpose_and_intended_users",
    "data",
    "methodology",
    "targeted_risks",
    "ethical_and_legal_considerations",
]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_has_a_whole_card(name: str) -> None:
    card = msgspec.to_builtins(BENCHMARKS[name].card)
    assert list(card)[:6] == SECTIONS
    card["data"].pop(
        "statistics"
    )  # measured for a release; a published benchmark may have none
    # A published benchmark has no tests of ours, and may have nothing to say about others.
    assert card["targeted_risks"].pop("tests") == []
    card["targeted_risks"].pop("untested")
    for section in SECTIONS:
        assert all(card[section].values()), f"{name}: {section} has an empty field"
    assert set(card["targeted_risks"]["atlas_risks"]) <= set(RISKS)
    assert all(all(correction.values()) for correction in card["corrections"])


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_has_a_protocol_that_exists(name: str) -> None:
    assert BENCHMARKS[name].protocol in registry.PROTOCOLS.built_in
    assert (
        f"`{BENCHMARKS[name].protocol}`"
        in BENCHMARKS[name].card.methodology.calculation
    )


@pytest.mark.parametrize("name", BENCHMARKS)
def test_sizes_in_cards_are_the_ones_compared(name: str) -> None:
    """Whole sizes, all splits together, that a reader compares with stand in its card too."""
    benchmark = BENCHMARKS[name]
    for size in benchmark.published:
        if size.split is None and name != "muse":
            assert f"{size.count:,}" in benchmark.card.data.size


def test_every_card_belongs_to_a_benchmark() -> None:
    used = {
        (item.card_file or CARDS / f"{name}.yaml").stem
        for name, item in BENCHMARKS.items()
    }
    assert {path.stem for path in CARDS.glob("*.yaml")} == used


def test_a_card_with_another_field_is_refused(tmp_path: Path) -> None:
    content = yaml.safe_load((CARDS / "mmr.yaml").read_text())
    path = tmp_path / "card.yaml"
    path.write_text(yaml.safe_dump(content | {"surprise": 1}))
    mmr = BENCHMARKS["mmr"]
    other = Benchmark(
        name="x",
        title="x",
        protocol="mmr",
        layout=mmr.layout,
        read=mmr.read,
        card_file=path,
    )
    with pytest.raises(FormatError, match="surprise"):
        _ = other.card


def test_readers_say_license_and_download() -> None:
    formats = registry.FORMATS.load_all(AnnotationFormat)
    published = [format for format in formats.values() if format.published]
    for reader in [*BENCHMARKS.values(), *published]:
        assert {"license", "download"} <= set(reader.facts), reader.name


def test_names_in_capitals_are_known() -> None:
    assert find_reader("MMR") is find_reader("mmr")
