"""Four questions about two images of ten pixels, scored under every published rule: the example of the rule pages."""

from functools import cache

import numpy as np

from maskwise.masks import Mask
from maskwise.protocols import (
    GroundTruth,
    MetricTerms,
    PredictionColumns,
    Scores,
    ScoringInput,
    find_protocol,
)
from maskwise.protocols.published_rules import PublishedRule
from maskwise.schema import PredictedRegion, Prediction, Region, Sample

WIDTH = 10

DRAWING = """\
question  image  asks for   pixels 0 to 9
both      first  visible    AAAA??BBB.   targets A and B; ? is ignored
                            aaaaaa....   answer: one mask
none      first  visible    ..........   no target
                            ..........   answer: "none", no mask
whole     second amodal     CCCCCccc..   target C; c is its hidden part
                            ccccccc...   answer: one amodal mask
twice     second visible    ........DD   target D
                            .....ee.dd   answer: two masks, d first
"""
"""The example as text; `samples` and `predictions` are the same."""


def strip(first: int, last: int) -> Mask:
    """The pixels first to last, both included, of a row."""
    plane = np.zeros((1, WIDTH), bool)
    plane[0, first : last + 1] = True
    return Mask.from_dense(plane)


def target(name: str, first: int, last: int, *, amodal_last: int) -> Region:
    """A region whose hidden part, if any, follows its visible one."""
    visible = strip(first, last)
    return Region(id=name, name=name, visible=visible, amodal=strip(first, amodal_last))


def samples() -> list[Sample]:
    """The four questions."""
    a = target("a", 0, 3, amodal_last=3)
    b = target("b", 6, 8, amodal_last=8)
    c = target("c", 0, 4, amodal_last=7)
    d = target("d", 8, 9, amodal_last=9)
    ignored = strip(4, 5)
    return [
        Sample(
            id="both", image_id="first", question="?", targets=(a, b), ignore=ignored
        ),
        Sample(id="none", image_id="first", question="?"),
        Sample(
            id="whole",
            image_id="second",
            question="?",
            mask_type="amodal",
            targets=(c,),
        ),
        Sample(id="twice", image_id="second", question="?", targets=(d,)),
    ]


def predictions() -> list[Prediction]:
    """The answers, in the order of the questions."""
    whole = PredictedRegion(amodal=strip(0, 6))
    extra = PredictedRegion(visible=strip(5, 6))
    right = PredictedRegion(visible=strip(8, 9))
    wide = PredictedRegion(visible=strip(0, 5))
    return [
        Prediction(sample="both", mask_type="visible", regions=(wide,)),
        Prediction(sample="none", no_target=True),
        Prediction(sample="whole", mask_type="amodal", regions=(whole,)),
        Prediction(sample="twice", mask_type="visible", regions=(right, extra)),
    ]


@cache
def scoring_input() -> ScoringInput:
    """Questions and answers as the rules take them."""
    sizes = [(1, WIDTH)] * len(samples())
    truth = GroundTruth.from_samples(samples(), sizes)
    answers = PredictionColumns.from_predictions(truth, predictions())
    return ScoringInput(truth, answers)


def score_example(rule: PublishedRule) -> Scores:
    """The example under a rule."""
    return find_protocol(rule.protocol).score(scoring_input(), **rule.options)


def example_table(rule: PublishedRule) -> str:
    """What each question adds to gIoU and cIoU under a rule, and the values."""
    metrics = score_example(rule).metrics
    giou = metrics["giou"]
    ciou = metrics["ciou"]
    if not isinstance(giou, MetricTerms) or not giou.defined:
        return value_table(rule)
    assert isinstance(ciou, MetricTerms)
    lines = [
        "| question | gIoU: sum of IoU | of | cIoU: intersection | union |",
        "|---|--:|--:|--:|--:|",
    ]
    for row, sample in enumerate(samples()):
        cells = [number(giou.numerator[row]), number(giou.denominator[row])]
        if ciou.defined:
            cells += [number(ciou.numerator[row]), number(ciou.denominator[row])]
        else:
            cells += ["n.d.", "n.d."]
        lines.append(f"| `{sample.id}` | " + " | ".join(cells) + " |")
    total = f"| **value** | **{percent(giou)}** | | **{percent(ciou)}** | |"
    return "\n".join([*lines, total])


def value_table(rule: PublishedRule) -> str:
    """The values of a rule that has neither gIoU nor cIoU."""
    lines = ["| metric | value |", "|---|--:|"]
    for name, metric in score_example(rule).composites.items():
        value = metric.value()
        shown = "n.d." if value is None else f"{value:.4f}"
        lines.append(f"| `{name}` | {shown} |")
    return "\n".join(lines)


def number(value: float) -> str:
    """Up to three decimals, without zeros at the end."""
    return f"{float(value):.3f}".rstrip("0").rstrip(".")


def percent(metric: MetricTerms) -> str:
    """The value of a metric in percent."""
    value = metric.value()
    return "n.d." if value is None or not metric.defined else f"{100 * value:.2f} %"
