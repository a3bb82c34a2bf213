"""Cards: blank fields are listed, measured fields are measured, the document has the form of BenchmarkCards."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from maskwise.benchmarks import BenchmarkCard
from maskwise.builder.release.card import (
    ReleaseFacts,
    card_template,
    card_to_markdown,
    card_to_yaml,
    complete_card,
    read_card,
)
from maskwise.builder.release.measured import MeasuredFacts, measure
from maskwise.errors import FormatError, MaskwiseError, ReleaseError
from maskwise.yaml_files import read_yaml
from tests.builder.release.made import make_card, make_dataset
from tests.shared import shared


@pytest.fixture
def facts(tmp_path: Path) -> MeasuredFacts:
    dataset = make_dataset(
        tmp_path / "cups", 10, about={"title": "COCO", "recipe": "occlude"}
    )
    return measure(dataset, ["train"] * 8 + ["test"] * 2)


def test_facts_are_measured(facts: MeasuredFacts) -> None:
    assert facts.size == (
        "10 images and 10 questions (train 8 images and 8 questions, test 2 images and 2 questions)"
    )
    assert facts.counts == {"images": 10, "regions": 20, "questions": 10, "targets": 10}
    assert facts.source == "COCO; recipe occlude"
    lines = dict(line.split(": ", 1) for line in facts.statistics)
    assert lines["regions"] == "20, of which 10 parts; 20 visible and 10 amodal masks"
    assert lines["mask type asked for"] == "amodal (10)"
    assert lines["licenses of images"] == "not stated (5), CC BY 4.0 (5)"
    assert (
        "25 % to 50 % (10)"
        in lines["occlusion of regions (hidden share of the amodal mask)"]
    )


def test_all_blank_fields_are_listed(facts: MeasuredFacts) -> None:
    card = make_card()
    card["benchmark_details"]["name"] = " N/A "
    card["data"]["annotation"] = "TODO"
    card["targeted_risks"]["risk_categories"] = ["", "-"]
    del card["ethical_and_legal_considerations"]["consent_procedures"]
    del card["release"]
    with pytest.raises(ReleaseError) as error:
        complete_card(card, facts)
    listed = str(error.value).split(": ")[1].split(". Fill")[0].split(", ")
    assert listed == [
        "benchmark_details.name",
        "data.annotation",
        "targeted_risks.risk_categories",
        "ethical_and_legal_considerations.consent_procedures",
        "release.license",
        "release.creators",
    ]


def test_the_source_is_taken_from_the_dataset_if_it_is_blank(
    facts: MeasuredFacts,
) -> None:
    card = make_card()
    del card["data"]["source"]
    assert complete_card(card, facts)[0].data.source == "COCO; recipe occlude"


def test_unknown_risks_are_refused(facts: MeasuredFacts) -> None:
    card = make_card()
    card["targeted_risks"]["atlas_risks"] = ["atlas-boredom"]
    with pytest.raises(ReleaseError, match="atlas-boredom; known: atlas-data-bias"):
        complete_card(card, facts)


@pytest.mark.parametrize("license", ["CC BY 4.0", "my own", "cc-by-5.0"])
def test_licenses_that_the_hub_does_not_know_are_refused(
    facts: MeasuredFacts, license: str
) -> None:
    with pytest.raises(ReleaseError, match=f"{license}.*`other`.*cc-by-4.0"):
        complete_card(make_card(license=license), facts)
    assert complete_card(make_card(license="other"), facts)[1].license == "other"


def test_languages_are_codes_or_known_names(facts: MeasuredFacts) -> None:
    card = make_card()
    card["benchmark_details"]["languages"] = ["en", "deu", "French"]
    complete_card(card, facts)
    card["benchmark_details"]["languages"] = ["en", "Klingonish"]
    with pytest.raises(
        ReleaseError, match="'Klingonish' is no code of two or three letters"
    ):
        complete_card(card, facts)


@pytest.mark.parametrize("value", [5, {"a": 1}, [1]])
def test_fields_of_another_type_are_an_error(facts: MeasuredFacts, value: Any) -> None:
    card = make_card()
    card["purpose_and_intended_users"]["goal"] = value
    with pytest.raises(FormatError, match="another type"):
        complete_card(card, facts)


def test_the_template_reads_and_asks_for_what_is_required(
    facts: MeasuredFacts, tmp_path: Path
) -> None:
    (tmp_path / "card.yaml").write_text(card_template(facts))
    given = read_card(tmp_path / "card.yaml")
    with pytest.raises(ReleaseError, match=r"benchmark_details\.name") as error:
        complete_card(given, facts)
    assert "methodology.metrics" not in str(error.value)
    filled = {
        section: given.get(section, {}) | fields
        for section, fields in make_card().items()
    }
    assert complete_card(filled, facts)[0].benchmark_details.name == "Cups"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: {size: many}", "remove data.size: measured"),
        ("data: {sise: many}", "unknown fields data.sise"),
        ("dat: {source: x}", "unknown fields dat.source"),
        ("- a", "does not follow its format"),
        ("a: [", "does not follow its format"),
    ],
)
def test_card_files_with_other_fields_are_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "card.yaml").write_text(text)
    with pytest.raises(MaskwiseError, match=message.replace(".", r"\.")):
        read_card(tmp_path / "card.yaml")


def test_a_missing_card_file_names_the_template() -> None:
    with pytest.raises(ReleaseError, match="--card-template"):
        read_card(Path("nowhere.yaml"))


def test_the_document_has_the_headings_of_benchmark_cards(facts: MeasuredFacts) -> None:
    text = card_to_markdown(complete_card(make_card(), facts)[0])
    seed = (shared("seeds") / "002_1bb91205c9754e8f.txt").read_text(encoding="utf-8")
    headings = [line for line in seed.splitlines() if line.startswith("## ")]
    assert [line for line in text.splitlines() if line.startswith("## ")] == headings
    assert "**Name**: Cups" in text
    assert "- **Fairness**: Data bias" in text
    assert "- [https://example.org/cups](https://example.org/cups)" in text


def test_the_card_is_kept_as_data(facts: MeasuredFacts, tmp_path: Path) -> None:
    card, release = complete_card(make_card(date_published="2026-01-02"), facts)
    (tmp_path / "card.yaml").write_text(card_to_yaml(card, release))
    content = read_yaml(tmp_path / "card.yaml", dict[str, Any])
    assert msgspec.convert(content.pop("release"), ReleaseFacts) == release
    assert msgspec.convert(content, BenchmarkCard) == card


def test_dates_are_texts(facts: MeasuredFacts) -> None:
    date = yaml.safe_load("2026-01-02")
    assert (
        complete_card(make_card(date_published=date), facts)[1].date_published
        == "2026-01-02"
    )
