"""The tables of docs/benchmarks/which_giou.md, from the published rules themselves."""

from maskwise.protocols.published_rules import (
    BOTH_EMPTY_TEXTS,
    IGNORED_TEXTS,
    published_rules,
)

SHORT_IGNORED = {name: text.split("pixels ")[1] for name, text in IGNORED_TEXTS.items()}
SHORT_EMPTY = {
    name: text.removeprefix("two empty masks ")
    for name, text in BOTH_EMPTY_TEXTS.items()
}


def rule_table() -> str:
    """One row per rule: what it counts."""
    lines = [
        "| rule | code | ignored pixels | averaged | two empty masks | no mask | several masks |",
        "|---|---|---|---|---|---|---|",
    ]
    for rule in published_rules().values():
        options = ", ".join(f"`{key}={value}`" for key, value in rule.options.items())
        name = f"[`{rule.name}`](rules/{rule.protocol}.md)"
        if options and rule.name != rule.protocol:
            name += f" (`{rule.protocol}`, {options})"
        cells = [
            name,
            rule.source,
            SHORT_IGNORED[rule.ignored],
            rule.unit,
            SHORT_EMPTY[rule.both_empty],
            rule.no_mask,
            rule.masks,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def paper_table() -> str:
    """Which papers used which rule, and how sure we are."""
    lines = ["| rule | comparable with | beware |", "|---|---|---|"]
    for rule in published_rules().values():
        papers = "; ".join(rule.comparable_with)
        if papers or rule.caution:
            lines.append(f"| `{rule.name}` | {papers or 'none'} | {rule.caution} |")
    return "\n".join([*lines, ""])
