"""A benchmark: a published dataset with its card, its reader and the name of its official protocol."""

from pathlib import Path

import msgspec

from maskwise.formats.annotation_format import AnnotationFormat
from maskwise.yaml_files import read_yaml

CARDS = Path(__file__).parent / "cards"

RISKS = {
    "atlas-data-bias": "Data bias (fairness)",
    "atlas-evasion-attack": "Evasion attack (robustness)",
    "atlas-output-bias": "Output bias (fairness)",
    "atlas-poor-model-accuracy": "Poor model accuracy (accuracy)",
    "atlas-unrepresentative-data": "Unrepresentative data (accuracy)",
}
"""Labels of the AI Risk Atlas ids that cards name."""

RISK_PROBES = {
    "atlas-data-bias": ("data-bias",),
    "atlas-evasion-attack": (
        "image-changes",
        "word-changes",
        "image-text",
        "attacks",
    ),
    "atlas-output-bias": ("output-bias",),
    "atlas-poor-model-accuracy": ("poor-model-accuracy",),
    "atlas-unrepresentative-data": ("unrepresentative-data",),
    "safety": ("unsafe-content", "unsafe-requests"),
}
"""The probes that test each risk, an id of the AI Risk Atlas or a category; a test compares them with
what the probes say."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of a card."""


class CardDetails(_Section, frozen=True, kw_only=True):
    """What the benchmark is."""

    name: str
    overview: str
    data_type: str
    domains: list[str]
    languages: list[str]
    similar_benchmarks: list[str]
    resources: list[str]


class CardPurpose(_Section, frozen=True, kw_only=True):
    """What the benchmark is for."""

    goal: str
    target_audience: list[str]
    tasks: list[str]
    limitations: str


class CardData(_Section, frozen=True, kw_only=True):
    """What the benchmark holds. `statistics`: measured facts, one per line."""

    source: str
    size: str
    format: str
    annotation: str
    statistics: list[str] = []


class CardMethodology(_Section, frozen=True, kw_only=True):
    """How the benchmark is scored."""

    methods: list[str]
    metrics: list[str]
    calculation: str
    interpretation: str
    baseline_results: str
    validation: str


class RiskTest(_Section, frozen=True, kw_only=True):
    """What a probe found about a risk, from the probes.json of its run.

    severity: `unmeasured` where the probe ran but could measure nothing. maskwise: the version.
    """

    risk: str
    probe: str
    severity: str
    finding: str
    dataset: str
    model: str
    questions: int
    date: str
    maskwise: str
    command: str


class CardRisks(_Section, frozen=True, kw_only=True):
    """Risks of using the benchmark; `atlas_risks` are ids of the AI Risk Atlas.

    `tests`: what probes found, always from a run; `untested`: what else is known about a risk
    that the benchmark names and that no run has tested.
    """

    risk_categories: list[str]
    atlas_risks: list[str]
    demographic_analysis: str
    potential_harm: str
    untested: str = ""
    tests: list[RiskTest] = []


NO_RISKS = CardRisks(
    risk_categories=[], atlas_risks=[], demographic_analysis="", potential_harm=""
)
"""Of a dataset without a card."""


class CardConsiderations(_Section, frozen=True, kw_only=True):
    """Privacy, licensing, consent and regulation."""

    privacy_and_anonymity: str
    data_licensing: str
    consent_procedures: str
    compliance_with_regulations: str


class CardCorrection(_Section, frozen=True, kw_only=True):
    """Where this card differs from other sources, and why."""

    field: str
    was: str
    now: str
    source: str


class BenchmarkCard(_Section, frozen=True, kw_only=True):
    """A benchmark card, in the sections of BenchmarkCards."""

    benchmark_details: CardDetails
    purpose_and_intended_users: CardPurpose
    data: CardData
    methodology: CardMethodology
    targeted_risks: CardRisks
    ethical_and_legal_considerations: CardConsiderations
    corrections: list[CardCorrection] = []


class Benchmark(AnnotationFormat, frozen=True, kw_only=True):
    """A published dataset of questions. `protocol` is the scoring rule of its authors."""

    protocol: str
    card_file: Path | None = None

    @property
    def about(self) -> dict[str, str]:
        """What the manifest says, with the official protocol: reports put it first."""
        return super().about | {"protocol": self.protocol}

    @property
    def card(self) -> BenchmarkCard:
        """The benchmark's card."""
        return read_yaml(self.card_file or CARDS / f"{self.name}.yaml", BenchmarkCard)
