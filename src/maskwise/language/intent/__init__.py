"""Mask type classifier: does a question request the visible mask or the amodal one, hidden part included?

    classify_intent(["the cup behind the teapot"])   [IntentPrediction("visible", 0.99, ...)]

A question requests the amodal mask only when its words ask for what is hidden, as R2SM defines it (arXiv 2506.01795).
Words of hiding that only say where an object is do not. `docs/results/intent.md` describes method, training and
accuracy.
"""

from maskwise.language.intent.classifier import (
    IntentPrediction,
    classify_intent,
    hash_classifier,
)
from maskwise.language.intent.cues import CueKind, CueSpan, Polarity, split_at_cues
from maskwise.language.intent.tokenizer import RequestedMask

__all__ = [
    "CueKind",
    "CueSpan",
    "IntentPrediction",
    "Polarity",
    "RequestedMask",
    "classify_intent",
    "hash_classifier",
    "split_at_cues",
]
