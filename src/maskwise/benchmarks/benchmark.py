"""A benchmark: a published dataset with its card, its reader and the name of its official protocol."""

from pathlib import Path

import msgspec

from maskwise.formats.records import read_yaml
from maskwise.formats.source import Source

CARDS = Path(__file__).parent / "cards"

RISKS = {
    "atlas-data-bias": "Data bias (fairness)",
    "atlas-evasion-attack": "Evasion attack (robustness)",
    "atlas-output-bias": "Output bias (fairness)",
    "atlas-poor-model-accuracy": "Poor model accuracy (accuracy)",
    "atlas-unrepresentative-data": "Unrepresentative data (accuracy)",
}
"""Labels of the AI Risk Atlas ids that cards name."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of a card."""


class Details(_Section, frozen=True, kw_only=True):
    """What it is."""

    name: str
    overview: str
    data_type: str
    domains: list[str]
    languages: list[str]
    similar_benchmarks: list[str]
    resources: list[str]


class Purpose(_Section, frozen=True, kw_only=True):
    """What it is for."""

    goal: str
    target_audience: list[str]
    tasks: list[str]
    limitations: str


class Data(_Section, frozen=True, kw_only=True):
    """What it holds."""

    source: str
    size: str
    format: str
    annotation: str


class Methodology(_Section, frozen=True, kw_only=True):
    """How it is scored."""

    methods: list[str]
    metrics: list[str]
    calculation: str
    interpretation: str
    baseline_results: str
    validation: str


class Risks(_Section, frozen=True, kw_only=True):
    """What may go wrong; `atlas_risks` are ids of the AI Risk Atlas."""

    risk_categories: list[str]
    atlas_risks: list[str]
    demographic_analysis: str
    potential_harm: str


class Considerations(_Section, frozen=True, kw_only=True):
    """What to respect."""

    privacy_and_anonymity: str
    data_licensing: str
    consent_procedures: str
    compliance_with_regulations: str


class Correction(_Section, frozen=True, kw_only=True):
    """Where this card differs from what is told elsewhere, and why."""

    field: str
    was: str
    now: str
    source: str


class Card(_Section, frozen=True, kw_only=True):
    """A benchmark card, in the sections of BenchmarkCards."""

    benchmark_details: Details
    purpose_and_intended_users: Purpose
    data: Data
    methodology: Methodology
    targeted_risks: Risks
    ethical_and_legal_considerations: Considerations
    corrections: list[Correction] = []


class Benchmark(Source, frozen=True, kw_only=True):
    """A source that also asks questions. `protocol` is the rule its authors score by."""

    protocol: str
    card_file: Path | None = None

    @property
    def card(self) -> Card:
        """The benchmark's card."""
        return read_yaml(self.card_file or CARDS / f"{self.name}.yaml", Card)
