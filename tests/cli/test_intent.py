"""Output of `maskwise intent`."""

import json

from typer.testing import CliRunner, Result

from maskwise.cli.main import app


def run(*arguments: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(
        app, ["intent", *arguments], input=given, catch_exceptions=False
    )


def test_one_line_per_question() -> None:
    result = run("the cup behind the teapot", "the whole cup, hidden part included")
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert [(row[0], row[2]) for row in rows] == [
        ("visible", "the cup behind the teapot"),
        ("amodal", "the whole cup, hidden part included"),
    ]
    assert all(0.5 <= float(row[1]) <= 1 for row in rows)


def test_json_prints_one_object_per_line() -> None:
    (line,) = run("the amodal mask of the dog", "--json").stdout.splitlines()
    answer = json.loads(line)
    assert answer.pop("probability") > 0.5
    (span,) = answer.pop("spans")
    assert answer == {
        "question": "the amodal mask of the dog",
        "mask_type": "amodal",
        "language_supported": True,
        "cue": "completeness",
    }
    assert "amodal" in span["text"]
    assert span["text"] == answer["question"][span["start"] : span["end"]]
    assert (span["kind"], span["polarity"]) == ("completeness", "amodal")


def test_the_words_that_decide_are_the_last_column() -> None:
    hidden, plain = run(
        "Draw the bus as if the van were gone.", "the bus"
    ).stdout.splitlines()
    assert hidden.split("\t")[3].startswith('removal "')
    assert len(plain.split("\t")) == 3


def test_a_question_in_another_language_is_reported() -> None:
    result = run("请分割被遮挡的整只狗", "--json")
    answer = json.loads(result.stdout)
    assert (answer["language_supported"], answer["probability"]) == (False, 0.5)
    assert (
        result.stderr
        == "maskwise: not in English, so the mask type is a guess: 请分割被遮挡的整只狗\n"
    )
    assert run("the dog").stderr == ""


def test_a_dash_reads_standard_input_and_skips_blank_lines() -> None:
    lines = run(
        "first", "-", "last", "--json", given="the dog\n\n  \n the whole dog \r\n"
    ).stdout.splitlines()
    assert [json.loads(line)["question"] for line in lines] == [
        "first",
        "the dog",
        "the whole dog",
        "last",
    ]


def test_invalid_utf8_is_accepted() -> None:
    result = run("-", given=b"the \xff dog\nthe cat\n")
    assert len(result.stdout.splitlines()) == 2


def test_a_missing_question_is_a_usage_error() -> None:
    result = run()
    assert result.exit_code == 2
    assert "QUESTION" in result.output
