"""The card of a release: what only its authors know, from a YAML file, completed by what is measured.

A card file has the sections of `BenchmarkCard` and the section `release` (`ReleaseFacts`). Size, format and statistics
are always measured. A release is refused while a required field is blank.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import yaml

from maskwise.benchmarks import RISKS, BenchmarkCard, RiskTest, describe_risk_tests
from maskwise.builder.release.identifiers import check_license, to_language_code
from maskwise.builder.release.measured import MeasuredFacts
from maskwise.errors import FormatError, ReleaseError, did_you_mean
from maskwise.yaml_files import read_yaml

MEASURED = (
    "data.size",
    "data.format",
    "data.statistics",
    "targeted_risks.tests",
)
"""Fields that nobody fills in."""

OPTIONAL = (
    "benchmark_details.similar_benchmarks",
    "benchmark_details.resources",
    "methodology.baseline_results",
    "targeted_risks.atlas_risks",
    "targeted_risks.untested",
    "release.citation",
    "release.homepage",
    "release.date_published",
)
"""Fields that may stay blank."""

BLANK = {"", "-", "?", "n/a", "na", "tbd", "todo"}
"""Texts that say nothing. "Not applicable: the images are synthetic" does."""

HINTS = {
    "benchmark_details.data_type": "for example: images with questions, answers and visible and amodal masks",
    "benchmark_details.languages": "codes or names: [en], [English]",
    "purpose_and_intended_users.limitations": "what results on this data do not show",
    "data.source": "where images and annotations come from",
    "data.annotation": "who or what wrote the questions and drew the masks, and who checked them",
    "targeted_risks.atlas_risks": f"ids of the AI Risk Atlas: {', '.join(RISKS)}",
    "targeted_risks.demographic_analysis": "who is shown, as far as known",
    "targeted_risks.untested": "what is known of risks that no probe has tested",
    "ethical_and_legal_considerations.data_licensing": "of questions, annotations and images",
    "release.license": "as the Hugging Face hub spells it: cc-by-4.0, apache-2.0, other, ...",
    "release.creators": "names of people or groups",
    "release.date_published": "YYYY-MM-DD",
}
"""What a field of the template asks for."""

DEFAULTS: dict[str, Any] = {
    "methodology.methods": ["automated metrics"],
    "methodology.metrics": ["gIoU", "cIoU", "no-target accuracy", "mask type accuracy"],
    "methodology.calculation": "Protocol `strict` of maskwise: predicted and true regions are matched one to one; "
    "unmatched regions on either side count as errors. gIoU is the mean IoU over questions, cIoU cumulative "
    "intersection over union.",
    "methodology.interpretation": "Higher is better. Compare only results of the same protocol and version.",
}
"""What the template proposes."""

CardFields = dict[str, dict[str, Any]]
"""Sections and fields as a card file gives them."""


class ReleaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What publishing needs besides the card. `license` is an identifier of the Hugging Face hub."""

    license: str
    creators: list[str]
    citation: str = ""
    homepage: str = ""
    date_published: str = ""


def card_fields() -> Iterator[tuple[str, str, bool]]:
    """Section, field, and whether it is a list, for everything that a card file may give."""
    sections = get_type_hints(BenchmarkCard) | {"release": ReleaseFacts}
    sections.pop("corrections")
    for section, kind in sections.items():
        for field, hint in get_type_hints(kind).items():
            if f"{section}.{field}" not in MEASURED:
                yield section, field, hint == list[str]


def read_card(path: Path) -> CardFields:
    """The fields of a card file; unknown ones are an error."""
    if not path.is_file():
        raise ReleaseError(
            f"the card file {path} does not exist; --card-template FILE writes one to fill in"
        )
    given: CardFields = {
        section: fields or {}
        for section, fields in read_yaml(path, dict[str, dict[str, Any] | None]).items()
    }
    known = {f"{section}.{field}" for section, field, _ in card_fields()}
    given_names = {
        f"{section}.{field}" for section, fields in given.items() for field in fields
    }
    if measured := given_names.intersection(MEASURED):
        raise ReleaseError(
            f"{path}: remove {', '.join(sorted(measured))}: measured by maskwise"
        )
    if unknown := given_names - known:
        raise ReleaseError(
            f"{path}: unknown fields {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}"
            f"{did_you_mean(min(unknown), known)}"
        )
    return given


def complete_card(
    given: CardFields, measured: MeasuredFacts, risk_tests: Sequence[RiskTest] = ()
) -> tuple[BenchmarkCard, ReleaseFacts]:
    """The card of given and measured fields, and its section `release`. risk_tests: results of probes.

    ReleaseError lists all required fields that are blank, or names a license, language or risk that is not known.
    """
    merged: CardFields = {section: {} for section, _, _ in card_fields()}
    blank = []
    for section, field, is_list in card_fields():
        name = f"{section}.{field}"
        value = given.get(section, {}).get(field)
        if _is_blank(value):
            value = known_fields(measured).get(name, value)
        if _is_blank(value):
            value = [] if is_list else ""
            blank += [] if name in OPTIONAL else [name]
        merged[section][field] = _tidy(value)
    if blank:
        raise ReleaseError(
            "these fields of the card are blank: "
            + ", ".join(blank)
            + ". Fill them in (--card FILE; "
            "--card-template FILE writes a file with all of them). What does not apply says why, for example "
            '"Not applicable: the images are synthetic"'
        )
    merged["data"] |= {
        "size": measured.size,
        "format": measured.format,
        "statistics": list(measured.statistics),
    }
    merged["targeted_risks"]["tests"] = msgspec.to_builtins(list(risk_tests))
    release_fields = merged.pop("release")
    try:
        card = msgspec.convert(merged, BenchmarkCard)
        release = msgspec.convert(release_fields, ReleaseFacts)
    except msgspec.ValidationError as error:
        raise FormatError(f"the card has a field of another type: {error}") from None
    _check_risks(card)
    check_license(release.license)
    for language in card.benchmark_details.languages:
        to_language_code(language)
    return card, release


def known_fields(measured: MeasuredFacts) -> dict[str, str]:
    """Fields that the dataset itself fills, unless the card file says something else."""
    return {
        "data.source": measured.source,
        "data.annotation": measured.annotation,
        "methodology.validation": measured.validation,
    }


def _check_risks(card: BenchmarkCard) -> None:
    unknown = sorted(set(card.targeted_risks.atlas_risks) - set(RISKS))
    if unknown:
        raise ReleaseError(
            f"targeted_risks.atlas_risks: unknown ids {', '.join(unknown)}; known: {', '.join(RISKS)}"
        )


def _is_blank(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_blank(item) for item in value)
    return value is None or (isinstance(value, str) and value.strip().lower() in BLANK)


def _tidy(value: Any) -> Any:
    """Texts without surrounding spaces. YAML reads a date as a date, which is written back."""
    if isinstance(value, list):
        return [_tidy(item) for item in value if not _is_blank(item)]
    return value if isinstance(value, bool | int | float | dict) else str(value).strip()


def card_template(measured: MeasuredFacts) -> str:
    """A card file to fill in: required fields, hints, and what is measured as comments."""
    lines = [
        "# Fill in every field that is not marked optional, then: maskwise release DATASET --card THIS_FILE ...",
        "# Measured, so not to be filled in:",
        f"#   size: {measured.size}",
        f"#   format: {measured.format}",
    ]
    section = ""
    for current, field, is_list in card_fields():
        if current != section:
            section = current
            lines += ["", f"{section}:"]
        name = f"{section}.{field}"
        hint = HINTS.get(name, "")
        marks = "; ".join(filter(None, ["optional" if name in OPTIONAL else "", hint]))
        lines += [f"  # {marks}"] if marks else []
        default = DEFAULTS.get(name, known_fields(measured).get(name, ""))
        lines.append(f"  {field}: {_to_yaml(default or ([] if is_list else ''))}")
    return "\n".join(lines) + "\n"


def _to_yaml(value: Any) -> str:
    """A value on one line."""
    text = yaml.safe_dump(
        value, default_flow_style=True, width=10**6, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...")


def card_to_yaml(card: BenchmarkCard, release: ReleaseFacts) -> str:
    """The card as YAML: the sections of `BenchmarkCard`, and the section `release`."""
    content = msgspec.to_builtins(card)
    content["release"] = msgspec.to_builtins(release)
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)
    return text


def card_to_markdown(card: BenchmarkCard) -> str:
    """The card as a BenchmarkCard document."""
    lines = [f"# {card.benchmark_details.name}", ""]
    for section, title in TITLES.items():
        lines += [f"## {title}", ""]
        for field, value in msgspec.to_builtins(getattr(card, section)).items():
            if section == "targeted_risks" and field == "atlas_risks":
                lines += ["**Atlas Risks**:", *_risk_lines(value), ""]
            elif section == "targeted_risks" and field == "tests":
                described = [*describe_risk_tests(card.targeted_risks)]
                if described:
                    items = (f"- {line}" for line in described)
                    lines += ["**Risk Tests**:", *items, ""]
            elif isinstance(value, list):
                lines += (
                    [
                        f"**{_title(field)}**:",
                        *(f"- {_link(item)}" for item in value),
                        "",
                    ]
                    if value
                    else []
                )
            else:
                lines += [f"**{_title(field)}**: {value}", ""] if value else []
    return "\n".join(lines)


TITLES = {
    "benchmark_details": "📊 Benchmark Details",
    "purpose_and_intended_users": "🎯 Purpose and Intended Users",
    "data": "💾 Data",
    "methodology": "🔬 Methodology",
    "targeted_risks": "⚠️ Targeted Risks",
    "ethical_and_legal_considerations": "🔒 Ethical and Legal Considerations",
}
"""Headings of the sections, as BenchmarkCards have them."""


def _title(field: str) -> str:
    return field.replace("_", " ").title()


def _link(text: str) -> str:
    return (
        f"[{text}]({text})"
        if text.startswith(("http://", "https://")) and " " not in text
        else text
    )


def _risk_lines(ids: list[str]) -> Iterator[str]:
    """One line per category with the labels of its risks."""
    categories: dict[str, list[str]] = {}
    for id in ids:
        label, _, category = RISKS[id].partition(" (")
        categories.setdefault(category.rstrip(")").title(), []).append(label)
    for category, labels in categories.items():
        yield f"- **{category}**: {', '.join(labels)}"
    if not ids:
        yield "No specific atlas risks defined"
