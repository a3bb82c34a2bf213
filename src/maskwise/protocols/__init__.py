"""Scoring rules by name: official ones, quirks included, and `strict`, which we recommend.

    inputs = ScoringInput(GroundTruth.from_dataset(dataset), predictions, threads=2)
    scores = find_protocol("strict").score(inputs)
    scores.headline()["giou"]

Each rule has a file; its text states the rule and what is odd about it. A rule is a
function from a `ScoringInput` (columns over a whole dataset, every overlap measured
once) to `Scores` (per sample, its part in every metric). docs/extending.md shows how to
add one.
"""

from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.metrics import MetricTerms, Scores, concat
from maskwise.protocols.prediction_columns import PredictionColumns
from maskwise.protocols.scoring_input import ScoringInput
from maskwise.protocols.scoring_rule import Protocol, find_protocol, protocol

__all__ = [
    "GroundTruth",
    "MetricTerms",
    "PredictionColumns",
    "Protocol",
    "Scores",
    "ScoringInput",
    "concat",
    "find_protocol",
    "protocol",
]
