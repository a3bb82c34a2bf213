"""A page for each scoring rule: facts from published_rules.yaml, the text of its module, and a worked example."""

import importlib
import inspect
import re

from docs.generate.rules import SHORT_EMPTY, SHORT_IGNORED
from docs.generate.worked_example import DRAWING, example_table
from maskwise.protocols.published_rules import (
    PublishedRule,
    cite_rule,
    published_rules,
)
from maskwise.protocols.scoring_rule import find_protocol

PLAIN_MEAN = """\
IoU  = I / U                      of the joined masks of a question
gIoU = sum of IoU / n             n: {unit}
cIoU = sum of I / sum of U"""

LISA_SUMS = """\
IoU  = I / (U + 1e-5), plus 1 where U = 0
gIoU = sum of IoU / (n + 1e-5)    n: {unit}
cIoU = sum of I / (sum of U + 1e-10)"""

FORMULAS = {
    "lisa": LISA_SUMS.format(unit="target masks"),
    "mmr": LISA_SUMS.format(unit="target masks of images with any predicted mask"),
    "muse": """\
IoU  = I / (U + 1e-5), plus 1 where U = 0, of matched pairs and of what remains
gIoU = sum of IoU / (sum over images of max(predictions, targets) + 1e-5)
cIoU = sum of I / (sum of U + 1e-10)""",
    "gres": """\
IoU  = I / U of the joined masks; without targets 1 if flagged as empty, else 0
gIoU = sum of IoU / n             n: questions
cIoU = sum of I / sum of U        I = 0 where the answer is flagged as empty""",
    "gsva": """\
IoU  = I / (U + 1e-8) of the joined masks; empty target: 1 if rejected, else 0
gIoU = sum of IoU / (n + 1e-5)    n: questions
cIoU = sum of I / (sum of U + 1e-10)""",
    "aura": """\
IoU  = I / U of matched pairs, 0 for what is not matched; visible and amodal apart
gIoU = mean over images of the mean over the image's terms
cIoU = sum of I / sum of U""",
    "r2sm": PLAIN_MEAN.format(unit="questions that request one mask type"),
    "union": PLAIN_MEAN.format(unit="questions"),
    "strict": """\
S    = sum of IoU of matched pairs / max(regions, targets)
       without targets 1 if there is no region, else 0
gIoU = sum of S / n               n: questions
cIoU = sum of I of the pairs / (areas of all regions and targets - that sum)""",
    "xsam": PLAIN_MEAN.format(unit="questions with target pixels"),
    "segzero": PLAIN_MEAN.format(unit="records, without those where U = 0"),
    "visionreasoner": PLAIN_MEAN.format(unit="records; IoU = 0 where U = 0"),
    "star": PLAIN_MEAN.format(unit="records; IoU = 1 where U = 0"),
    "lens": """\
IoU  = I / (U + 1e-5), plus 1 where U = 0
gIoU = sum of IoU / (n + 1e-5)    n: questions
cIoU = sum of I / (sum of U + 1e-8)""",
    "unipixel": PLAIN_MEAN.format(unit="questions; IoU = 1 where U = 0"),
    "sa2va": """\
IoU  = I / (U + 1e-5), plus 1 where U = 0
gIoU = sum of IoU / n             n: questions
cIoU = sum of I / (sum of U + 1e-10)""",
    "sam3i": PLAIN_MEAN.format(unit="records; IoU = 0 where U = 0"),
    "gseval": PLAIN_MEAN.format(unit="rows; IoU = 0 where U = 0"),
    "saco": """\
cgF1 = mean over ten IoU thresholds of (positive micro F1 x MCC)""",
}
"""By protocol. I and U are the pixels of intersection and union."""

INDENTED = re.compile(r":\n((?:    \S.*\n(?:     +.*\n|    \S.*\n)*))")
"""A table of a docstring: lines indented by four, below a line that ends with a colon."""


def rule_pages() -> dict[str, str]:
    """One page per protocol, with all its variants, by the name of the file."""
    variants: dict[str, list[PublishedRule]] = {}
    for rule in published_rules().values():
        variants.setdefault(rule.protocol, []).append(rule)
    return {f"{name}.md": page(name, rules) for name, rules in variants.items()}


def rule_index() -> str:
    """One row per protocol: its page, its origin and who used it."""
    lines = ["| rule | project | tables made by it |", "|---|---|---|"]
    for rule in published_rules().values():
        papers = "; ".join(use.paper for use in rule.used_by) or "none that we know"
        name = f"[`{rule.name}`](rules/{rule.protocol}.md)"
        lines.append(f"| {name} | {rule.project} | {papers} |")
    return "\n".join([*lines, ""])


def page(name: str, rules: list[PublishedRule]) -> str:
    """Facts, formula, rule with quirks, options, worked example and citation of one protocol."""
    parts = [
        f"# The rule `{name}`",
        f"```\nmaskwise score predictions.jsonl DATASET --protocol {name}\n```",
        facts_table(rules),
        "## Formula",
        f"```\n{FORMULAS[name]}\n```",
        "I and U are numbers of pixels: intersection and union of a predicted and a true mask.",
        "## The rule and its quirks",
        module_text(name),
        "## Options",
        options_table(name),
        "## Worked example",
        f"```\n{DRAWING}```",
    ]
    for rule in rules:
        if len(rules) > 1:
            parts.append(f"`{rule.name}`{set_by(rule)}:")
        parts.append(example_table(rule))
    parts += ["## How to cite", *(f"> {cite_rule(name, r.options)}" for r in rules)]
    return "\n\n".join(parts) + "\n"


def set_by(rule: PublishedRule) -> str:
    """The options that make a variant."""
    options = [
        f"`--protocol-option {rule.protocol}.{key}={str(value).lower()}`"
        for key, value in rule.options.items()
    ]
    return f" ({', '.join(options)})" if options else ""


def facts_table(rules: list[PublishedRule]) -> str:
    """What each variant counts: one column per variant."""
    names = [f"`{rule.name}`" for rule in rules]
    rows = {
        "code": [rule.source for rule in rules],
        "ignored pixels": [SHORT_IGNORED[rule.ignored] for rule in rules],
        "averaged": [rule.unit for rule in rules],
        "two empty masks": [SHORT_EMPTY[rule.both_empty] for rule in rules],
        "no mask": [rule.no_mask for rule in rules],
        "several masks": [rule.masks for rule in rules],
        "tables made by it": [
            "; ".join(rule.comparable_with) or "none that we know" for rule in rules
        ],
        "beware": [rule.caution for rule in rules],
    }
    lines = [f"| | {' | '.join(names)} |", "|---" * (len(rules) + 1) + "|"]
    for title, cells in rows.items():
        if any(cells):
            lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def module_text(name: str) -> str:
    """The docstring of the module, with its tables as code and other rules as links."""
    module = importlib.import_module(find_protocol(name).function.__module__)
    text = (inspect.getdoc(module) or "") + "\n"
    text = INDENTED.sub(
        lambda found: f":\n\n```\n{inspect.cleandoc(found[1])}\n```\n", text
    )
    for other in FORMULAS.keys() - {name}:
        text = re.sub(rf"(?<!`)`{other}`(?!`)", f"[`{other}`]({other}.md)", text)
    return text.strip()


def options_table(name: str) -> str:
    """The options of the rule with their defaults, as `maskwise score` takes them."""
    lines = ["| option | default |", "|---|---|"]
    for option, default in find_protocol(name).options.items():
        if default is None:
            continue  # given in Python only
        shown = str(default).lower() if isinstance(default, bool) else default
        lines.append(f"| `--protocol-option {name}.{option}=` | `{shown}` |")
    return "\n".join(lines)
