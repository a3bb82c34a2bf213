"""The table of published rules says what the code does, and the sentence to quote says which rule it was."""

import pytest

from maskwise import __version__
from maskwise.protocols import (
    find_protocol,
    gseval,
    lens,
    sa2va,
    sam3i,
    segzero,
    star,
    unipixel,
    visionreasoner,
    xsam,
)
from maskwise.protocols.published_rules import (
    cite_rule,
    find_rule,
    published_rules,
)
from maskwise.protocols.question_rule import QuestionRule
from maskwise.registry import PROTOCOLS

PRESETS: dict[str, QuestionRule] = {
    "segzero": segzero.RULES["single"],
    "segzero_multi": segzero.RULES["multi"],
    "visionreasoner": visionreasoner.RULE,
    "visionreasoner_nonobj": visionreasoner.RULE,
    "star": star.RULE,
    "lens": lens.RULE,
    "unipixel": unipixel.RULE,
    "xsam": xsam.RULE,
    "xsam_evaluator": xsam.EVALUATOR_RULE,
    "sa2va": sa2va.RULES["2025-10"],
    "sa2va_2025_09": sa2va.RULES["2025-09"],
    "sa2va_st": sa2va.RULES["reasonseg"],
    "sam3i": sam3i.RULE,
    "gseval": gseval.RULE,
}


@pytest.mark.parametrize("name", PRESETS)
def test_table_agrees_with_the_preset(name: str) -> None:
    rule = published_rules()[name]
    preset = PRESETS[name]
    assert rule.ignored == preset.ignored
    assert rule.both_empty == preset.both_empty
    assert (rule.masks == "the first") == (preset.masks == "first")
    leaves_out_missing = "missing record is" in rule.no_mask
    assert leaves_out_missing == (preset.missing == "left out")


def test_every_built_in_protocol_is_in_the_table_and_every_option_exists() -> None:
    rules = published_rules().values()
    assert {rule.protocol for rule in rules} == set(PROTOCOLS.built_in)
    for rule in rules:
        assert rule.options.keys() <= find_protocol(rule.protocol).options.keys()


def test_commits_and_sources_are_those_of_the_modules() -> None:
    """The text at the top of a module names the commit, except where it names a version."""
    for rule in published_rules().values():
        function = find_protocol(rule.protocol).function
        text = __import__(function.__module__, fromlist=["score"]).__doc__
        assert rule.commit in text or rule.name == "saco_lmms"


def test_defaults_and_given_options_find_their_variant() -> None:
    assert find_rule("segzero", {}).name == "segzero"
    assert find_rule("segzero", {"form": "multi"}).name == "segzero_multi"
    assert find_rule("xsam", {"pipeline": False}).name == "xsam_evaluator"
    assert find_rule("mine", {}) is None


def test_sentence_names_rule_commit_version_and_changed_options() -> None:
    sentence = cite_rule("lisa", {"mask_type": "predicted"})
    start = "gIoU/cIoU under the rule of LISA (commit 3cb2d43"
    assert sentence.startswith(start)
    assert f"maskwise {__version__}" in sentence
    assert "options" not in sentence
    assert "options epsilon=False" in cite_rule("lisa", {"epsilon": False})
    assert "segzero" not in cite_rule("mine", {}, description="the best mask")
    assert "the best mask" in cite_rule("mine", {}, description="the best mask")


def test_sentences_of_variants_differ() -> None:
    rules = published_rules().values()
    sentences = {cite_rule(rule.protocol, rule.options) for rule in rules}
    assert len(sentences) == len(rules)
