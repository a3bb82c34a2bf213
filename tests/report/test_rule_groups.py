"""Results of different rules are never side by side without a note; every output says which rule it was."""

import json
from pathlib import Path

import msgspec
import pytest

from maskwise.errors import FormatError, MaskwiseError
from maskwise.report.leaderboard import leaderboard_to_html, make_leaderboard
from maskwise.report.published_results import RowRule, read_published
from maskwise.report.rule_groups import (
    UNKNOWN_RULE,
    group_by_rule,
    measured_rule,
    mixed_rules_note,
    published_rule,
)
from tests.cli.commands import run as command
from tests.report.pages import Page
from tests.report.runs import make_dataset, make_predictions, make_run


def star_table():
    return next(table for table in read_published() if "newer" in table.title)


def test_rows_of_a_mixed_table_are_grouped_by_rule_with_a_note() -> None:
    table = star_table()
    rows = [(published_rule(table, name), name) for name, _ in table.cells]
    groups = {rule.name: systems for rule, systems in group_by_rule(rows)}
    assert groups["star"] == ["StAR-7B", "StAR-8B", "StAR-32B, voting"]
    assert groups["visionreasoner"] == ["VisionReasoner-7B"]
    assert list(groups)[-1] == UNKNOWN_RULE
    note = mixed_rules_note([rule for rule, _ in rows])
    assert "different rules" in note
    page = Page(leaderboard_to_html(make_leaderboard([])))
    bodies = [body.text for body in page.find("tbody")]
    [star] = [text for text in bodies if "StAR-7B" in text]
    assert "code read" in star
    assert "VisionReasoner" not in star
    [other] = [text for text in bodies if "VisionReasoner-7B" in text]
    assert "unverified" in other


def test_measured_and_published_values_of_one_rule_share_a_group() -> None:
    table = star_table()
    rows = [
        (published_rule(table, "StAR-7B"), "published"),
        (measured_rule("star", {}), "measured"),
        (measured_rule("lisa", {}), "other"),
    ]
    groups = [(rule.name, names) for rule, names in group_by_rule(rows)]
    assert groups == [("lisa", ["other"]), ("star", ["published", "measured"])]


def test_values_of_one_rule_need_no_note() -> None:
    assert mixed_rules_note([measured_rule("lisa", {})] * 2) == ""
    unknown = published_rule(star_table(), "READ-13B")
    assert "not known" in mixed_rules_note([unknown])


@pytest.mark.parametrize(
    ("row_rules", "message"),
    [
        ({"Nobody": RowRule("lisa", "code")}, "no row is called 'Nobody'"),
        ({"READ-13B": RowRule("lissa", "code")}, "lissa"),
    ],
)
def test_wrong_rules_of_published_tables_are_refused(
    row_rules: dict[str, RowRule], message: str, tmp_path: Path
) -> None:
    table = msgspec.structs.replace(star_table(), row_rules=row_rules)
    (tmp_path / "wrong.yaml").write_bytes(msgspec.yaml.encode([table]))
    with pytest.raises((FormatError, MaskwiseError), match=message):
        read_published(tmp_path / "wrong.yaml")


def test_every_output_has_the_sentence_to_quote(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path / "data")
    predictions = make_predictions(tmp_path / "predictions.jsonl", dataset)
    run = make_run(tmp_path / "run", dataset, predictions, protocols=["lisa", "star"])
    sentence = run["lisa"].cite
    assert "LISA (commit 3cb2d43" in sentence
    outputs = [
        run.report(tmp_path / "report.html", samples=0).read_text(),
        run.report(tmp_path / "report.md").read_text(),
        json.dumps(json.loads(run.report(tmp_path / "report.json").read_text())),
        (tmp_path / "run" / "scores.json").read_text(),
        command("leaderboard", run.folder, "--json").output,
        command(
            "compare", run.folder, run.folder, "--protocol", "lisa", "--json"
        ).output,
        leaderboard_to_html(make_leaderboard([run])),
        command("card", "reasonseg").output,
        command("score", predictions, dataset, "--protocol", "lisa").output,
    ]
    for text in outputs:
        # Terminals break lines.
        flat = " ".join(text.split())
        assert "3cb2d43" in flat
