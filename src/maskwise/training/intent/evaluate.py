"""Measure the bundled intent classifier on hand-written sentences.

    python -m maskwise.training.intent.evaluate FILE...

FILE has one object per line: `text`, `type`, `cue` (the words that decide, or "") and `kind`, like `hand_written/`.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from maskwise.language.intent import CueSpan, classify_intent
from maskwise.training.intent.sentences import HandWrittenSentence

SURE = 0.9
"""Probability from which on an answer counts as sure."""


class IntentAccuracy(NamedTuple):
    """Counts. sure: answers with a probability of SURE or more. overlapping: cues with a span that shares characters.

    cues: annotated ones that decide, mentions left out. by_kind: right answers and sentences per kind of cue.
    """

    sentences: int
    right: int
    sure: int
    sure_and_right: int
    cues: int
    overlapping: int
    by_kind: dict[str, tuple[int, int]]


def evaluate(sentences: Sequence[HandWrittenSentence]) -> IntentAccuracy:
    """The accuracy on sentences."""
    predictions = classify_intent([sentence.text for sentence in sentences])
    counts: Counter[str] = Counter()
    right_by_kind: Counter[str] = Counter()
    total_by_kind: Counter[str] = Counter()
    for sentence, prediction in zip(sentences, predictions):
        right = prediction.mask_type == sentence.type
        sure = prediction.probability >= SURE
        kind: str = sentence.kind or "not marked"
        total_by_kind[kind] += 1
        right_by_kind[kind] += right
        counts["right"] += right
        counts["sure"] += sure
        counts["sure and right"] += sure and right
        if sentence.cue and sentence.kind != "mention":
            counts["cues"] += 1
            counts["overlapping"] += _overlaps(sentence, prediction.spans)
    by_kind: dict[str, tuple[int, int]] = {}
    for name, total in total_by_kind.items():
        by_kind[name] = (right_by_kind[name], total)
    return IntentAccuracy(
        sentences=len(sentences),
        right=counts["right"],
        sure=counts["sure"],
        sure_and_right=counts["sure and right"],
        cues=counts["cues"],
        overlapping=counts["overlapping"],
        by_kind=by_kind,
    )


def _overlaps(sentence: HandWrittenSentence, spans: Sequence[CueSpan]) -> bool:
    """Whether a span shares characters with the annotated cue."""
    cue = sentence.cue or ""
    start = sentence.text.find(cue)
    end = start + len(cue)
    return any(span.start < end and span.end > start for span in spans)


def main() -> None:
    """Print one line per file, and one per kind of cue."""
    parser = argparse.ArgumentParser(description="Measure the intent classifier.")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    for path in parser.parse_args().files:
        lines = path.read_bytes().splitlines()
        sentences = [
            msgspec.json.decode(line, type=HandWrittenSentence) for line in lines
        ]
        accuracy = evaluate(sentences)
        print(
            f"{path.name}: {accuracy.right} of {accuracy.sentences} right; "
            f"{accuracy.sure_and_right} of {accuracy.sure} with {SURE} or more; "
            f"{accuracy.overlapping} of {accuracy.cues} cues overlap"
        )
        for kind, (right, total) in sorted(accuracy.by_kind.items()):
            print(f"  {kind}: {right} of {total}")


if __name__ == "__main__":
    main()
