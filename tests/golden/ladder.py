"""The same questions under every rule: the golden file `ladder`."""

from collections.abc import Mapping
from typing import Any

from maskwise.masks import Masks
from maskwise.protocols import (
    lens,
    lisa,
    segzero,
    star,
    unipixel,
    visionreasoner,
    xsam,
)
from tests.golden import saco, sam3i
from tests.golden.questions import compare_blocks, percent, read, summary
from tests.golden.records import rle
from tests.golden.sa2va import block as sa2va_block

FLOAT32 = ("lisa", "lens", "sa2va", "sa2va_2025_09", "sa2va_st")
"""Rules whose official code sums in float32."""
SA2VA = {"sa2va": "2025-10", "sa2va_2025_09": "2025-09", "sa2va_st": "reasonseg"}


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    blocks = all_blocks(case["input"])
    float32 = [name for name in blocks if name in FLOAT32]
    exact = [name for name in blocks if name not in FLOAT32]
    return [
        *compare_blocks(blocks, case, float32=True, names=float32),
        *compare_blocks(blocks, case, names=exact),
    ]


def all_blocks(case_input: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    inputs = read(case_input)
    # LISA's code always has a mask: an absent record and a failed answer were given to it as no mask.
    answered = [without_failures(question) for question in case_input["questions"]]
    lisa_inputs = read({"questions": answered}, missing_as_no_mask=True)
    blocks = {
        "lisa": summary(
            lisa.score(lisa_inputs), lisa.score(lisa_inputs, epsilon=False)
        ),
        "segzero": summary(segzero.score(inputs)),
        "segzero_multi": summary(segzero.score(inputs, form="multi")),
        "visionreasoner": summary(visionreasoner.score(inputs)),
        "visionreasoner_nonobj": summary(visionreasoner.score(inputs, no_object=True)),
        "star": summary(star.score(inputs)),
        "lens": summary(lens.score(inputs), lens.score(inputs, epsilon=False)),
        "unipixel": summary(unipixel.score(inputs)),
        "xsam": percent(summary(xsam.score(inputs))),
        "xsam_evaluator": percent(summary(xsam.score(inputs, pipeline=False))),
        "sam3i_1to1": sam3i.block(inputs, "one_to_one"),
        "sam3i_multi_inst": sam3i.block(inputs, "multi_instance"),
    }
    for name, version in SA2VA.items():
        blocks[name] = sa2va_block(inputs, version)
    phrases = saco.all_blocks(saco.read(case_input))
    blocks["saco"] = phrases["sam3"]
    blocks["saco_lmms"] = phrases["lmms_eval_score05"]
    return blocks


def without_failures(question: Mapping[str, Any]) -> dict[str, Any]:
    """A question whose masks are joined to one, and without them for a failed answer."""
    answered = dict(question, failed=False)
    if question["preds"] and len(question["preds"]) > 1:
        masks = [rle(pred["rle"]) for pred in question["preds"]]
        joined = Masks.from_masks(masks).merge([0, len(masks)])[0]
        counts = {"size": list(joined.size), "counts": joined.counts}
        answered["preds"] = [{"rle": counts, "score": 1.0}]
    if len(question["targets"]) > 1:
        masks = [rle(target) for target in question["targets"]]
        joined = Masks.from_masks(masks).merge([0, len(masks)])[0]
        answered["targets"] = [{"size": list(joined.size), "counts": joined.counts}]
    return answered
