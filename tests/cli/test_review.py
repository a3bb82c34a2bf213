"""`maskwise review` as a user runs it: start, links, decide over HTTP, status, rebuild, export."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from maskwise.auditing.doubts import FORMAT, Audit, DoubtfulSample
from maskwise.review.database import ReviewDatabase
from maskwise.review.review import Review
from tests.cli.commands import fail, run
from tests.review.datasets import write_samples
from tests.server.review_client import Client

COMMAND = [sys.executable, "-c", "from maskwise.cli.main import main; main()", "review"]


def doubt(sample: str) -> Audit:
    """An audit that doubts one sample."""
    item = DoubtfulSample(sample=sample, image="", question="", strength=1.0, doubts=[])
    return Audit(
        format=FORMAT, dataset="cups", samples=4, runs=[], checks={}, doubtful=[item]
    )


def test_an_audit_of_another_dataset_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_samples(tmp_path / "data", 4)
    audit = tmp_path / "audit.json"
    audit.write_bytes(msgspec.json.encode(doubt("other")))
    command = ("review", "start", tmp_path / "data", "--first", audit)
    assert "has no sample 'other'" in fail(capsys, monkeypatch, *command)
    assert not (tmp_path / "data.review.sqlite").exists()


def test_a_review_from_start_to_export(tmp_path: Path) -> None:
    write_samples(tmp_path / "data", 4)
    controls = tmp_path / "controls.jsonl"
    controls.write_text('{"sample": "s3", "verdict": "reject"}\n')
    audit = tmp_path / "audit.json"
    audit.write_bytes(msgspec.json.encode(doubt("s2")))
    options = [
        "--reviewers",
        "ada,bob",
        "--controls",
        str(controls),
        "--first",
        str(audit),
        "--port",
        "0",
        "--json",
    ]
    with subprocess.Popen(
        [*COMMAND, str(tmp_path / "data"), *options], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        started = json.loads(server.stdout.readline())
        assert set(started["links"]) == {"ada", "bob", "owner"}
        client = Client(started["address"])
        client.sign_in(started["links"]["ada"].partition("#token=")[2])
        seen = []
        while items := client.ask("POST", "/queue", {"count": 1})["items"]:
            seen.append(items[0]["sample"])
            client.ask(
                "POST",
                "/decisions",
                {"id": str(uuid4()), "item": items[0]["item"], "verdict": "accept"},
            )
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
    assert [sample for sample in seen if sample != "s3"] == ["s2", "s0", "s1"]
    assert "s3" in seen
    status = json.loads(run("review", "status", tmp_path / "data", "--json").output)
    assert (
        status["progress"]["accepted"],
        status["reviewers"][0]["controls"]["accuracy"],
    ) == (3, 0.0)
    assert "ada" in run("review", "status", tmp_path / "data").output
    assert "rebuilt" in run("review", "rebuild", tmp_path / "data").output
    written = json.loads(
        run(
            "review", "export", tmp_path / "data", "--out", tmp_path / "out", "--json"
        ).output
    )
    assert written["statuses"] == {"accepted": 3, "rejected": 1}
    assert run("validate", tmp_path / "out").exit_code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_when_the_server_ends_the_file_holds_the_whole_review(
    tmp_path: Path, number: int
) -> None:
    data = write_samples(tmp_path / "data", 4)
    file = tmp_path / "data.review.sqlite"
    command = [
        *COMMAND,
        str(tmp_path / "data"),
        "--reviewers",
        "ada",
        "--port",
        "0",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        started = json.loads(server.stdout.readline())
        client = Client(
            started["address"], started["links"]["ada"].partition("#token=")[2]
        )
        other = Review(
            data, ReviewDatabase(file)
        )  # another process that has the file open, as `review status`
        other.stats()
        for item in client.ask("POST", "/queue", {"count": 4})["items"]:
            decision = {"id": str(uuid4()), "item": item["item"], "verdict": "accept"}
            client.ask("POST", "/decisions", decision)
        server.send_signal(number)
        assert server.wait(60) == 0
    shutil.copy(file, tmp_path / "copy.sqlite")
    other.database.close()
    copied = Review(data, ReviewDatabase(tmp_path / "copy.sqlite"))
    assert copied.stats().progress.accepted == 4
    assert not Path(f"{file}-wal").exists()


def test_a_start_that_fails_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_samples(tmp_path / "data", 2)
    write_samples(tmp_path / "empty", 0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        taken = fail(capsys, monkeypatch, "review", tmp_path / "data", "--port", port)
    assert "cannot listen" in taken
    wrong = fail(
        capsys,
        monkeypatch,
        "review",
        tmp_path / "data",
        "--reviewers",
        "ada,bob smith",
        "--port",
        "0",
    )
    assert "pseudonym" in wrong
    assert "no samples" in fail(
        capsys, monkeypatch, "review", tmp_path / "empty", "--port", "0"
    )
    assert sorted(os.listdir(tmp_path)) == ["data", "empty"]


def test_reviewers_are_added_together_or_not_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    review = Review(
        write_samples(tmp_path / "data", 2),
        ReviewDatabase(tmp_path / "data.review.sqlite"),
    )
    review.create()
    fail(
        capsys,
        monkeypatch,
        "review",
        tmp_path / "data",
        "--reviewers",
        "ada,bob smith",
        "--port",
        "0",
    )
    assert review.reviewers() == {}


def test_commands_need_a_review(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_samples(tmp_path / "data", 2)
    for command in (["status"], ["rebuild"], ["export", "--out", tmp_path / "out"]):
        message = fail(
            capsys, monkeypatch, "review", command[0], tmp_path / "data", *command[1:]
        )
        assert "begin one" in message
    assert os.listdir(tmp_path) == ["data"]


def test_a_wrong_database_is_named_without_its_password(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_samples(tmp_path / "data", 2)
    url = "postgresql://me:secret@127.0.0.1:1/none"
    message = fail(
        capsys, monkeypatch, "review", "status", tmp_path / "data", "--db", url
    )
    assert "secret" not in message
    assert "127.0.0.1" in message
    assert "sqlite" in fail(
        capsys,
        monkeypatch,
        "review",
        "status",
        tmp_path / "data",
        "--db",
        "mysql://x/y",
    )


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A dataset of three samples whose review was begun, with one reviewer."""
    review = Review(
        write_samples(tmp_path / "data", 3),
        ReviewDatabase(tmp_path / "data.review.sqlite"),
    )
    review.create()
    review.add_reviewer("ada")
    review.database.close()
    return tmp_path / "data"


def test_open_samples_go_to_label_studio_and_back(begun: Path, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    arguments = ("review", "export", begun, "--out", tasks, "--format", "labelstudio")
    assert json.loads(run(*arguments, "--json").stdout) == {
        "out": str(tasks),
        "samples": 3,
    }
    exported = tmp_path / "export.json"
    exported.write_text((tasks / "tasks.json").read_text(encoding="utf-8"))
    arguments = ("review", "import", begun, exported, "--reviewer", "ada")
    counts = json.loads(run(*arguments, "--json").stdout)
    assert sum(counts.values()) == 3
    assert run(*arguments).stdout.startswith(f"{exported}: ")


def test_the_same_as_text(begun: Path, tmp_path: Path) -> None:
    arguments = ("review", "export", begun, "--out", tmp_path / "tasks")
    said = run(*arguments, "--format", "labelstudio").stdout
    assert said == f"{tmp_path / 'tasks'}: 3 open samples as tasks\n"
    rebuilt = json.loads(run("review", "rebuild", begun, "--json").stdout)
    assert rebuilt["events"] >= 1


def test_status_of_a_review_without_decisions(begun: Path) -> None:
    status = json.loads(run("review", "status", begun, "--json").stdout)
    assert status["agreement"]["items"] == 0
    said = run("review", "status", begun).stdout
    assert "ada" in said
    assert "agreement" not in said


def test_swapped_arguments_of_import_get_a_hint(
    begun: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("review", "import", "export.json", begun, "--reviewer", "ada")
    said = fail(capsys, monkeypatch, *arguments)
    assert f"Did you mean `maskwise review import {begun} export.json`?" in said


def test_what_was_chosen_at_the_beginning_stays(
    begun: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("review", begun, "--double-share", "0.5", "--port", "0")
    said = fail(capsys, monkeypatch, *arguments)
    assert "begun with --double-share 0" in said


def test_the_name_of_the_owner_is_taken(
    begun: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("review", begun, "--reviewers", "owner", "--port", "0")
    said = fail(capsys, monkeypatch, *arguments)
    assert "'owner' is taken" in said


def test_a_dataset_in_place_of_a_subcommand_means_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = fail(capsys, monkeypatch, "review", tmp_path / "nothing")
    assert "neither a dataset folder" in said
    assert "Usage" in run("review", "--help").stdout


def test_predictions_are_judged_from_start_to_results(
    tmp_path: Path, oracle_run: Path, whole_image_run: Path
) -> None:
    """Names of runs are in the results for the owner; no reviewer gets them."""
    runs = [tmp_path / "oracle", tmp_path / "whole"]
    shutil.copytree(oracle_run, runs[0])
    shutil.copytree(whole_image_run, runs[1])
    options = ["--reviewers", "ada", "--port", "0", "--json", "--questions", "3"]
    command = [*COMMAND, "--runs", *map(str, runs), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        started = json.loads(server.stdout.readline())
        client = Client(started["address"])
        session = client.sign_in(started["links"]["ada"].partition("#token=")[2])
        assert session["mode"] == "compare"
        assert session["criteria"][0]["code"] == "target"
        replies = [session]
        while (reply := client.ask("POST", "/queue", {"count": 1}))["items"]:
            item = reply["items"][0]["item"]
            decision = {"id": str(uuid4()), "item": item, "verdict": "left"}
            replies += [reply, client.ask("POST", "/decisions", decision)]
        assert client.call("GET", "/results")[0] == 403
        owner = Client(started["address"])
        owner.sign_in(started["links"]["owner"].partition("#token=")[2])
        named = owner.ask("GET", "/results")
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
    shown = json.dumps(replies)
    assert "oracle" not in shown
    assert str(tmp_path) not in shown
    assert [line["name"] for line in named["runs"]] == ["oracle", "whole"]
    assert (tmp_path / "oracle_whole.judgments.sqlite").exists()
    results = json.loads(run("review", "results", *runs, "--json").output)
    assert results["judgments"] == 3
    turned = run("review", "results", *reversed(runs), "--json").output
    assert json.loads(turned) == results, "runs may be named in any order"
    printed = run("review", "results", *runs).output
    assert "oracle over whole" in printed
    assert "3 judged" in run("review", "status", "--runs", *runs).output
    out = tmp_path / "verdicts.jsonl"
    written = run("review", "export", "--runs", *runs, "--out", out, "--json")
    assert json.loads(written.output)["verdicts"] == 6
    assert "rebuilt" in run("review", "rebuild", "--runs", *runs).output


def test_options_of_datasets_and_of_runs_are_told_apart(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    oracle_run: Path,
    whole_image_run: Path,
) -> None:
    def refused(*arguments: object) -> str:
        return fail(capsys, monkeypatch, "review", *arguments)

    runs = (oracle_run, whole_image_run)
    assert "add --runs" in refused("start", *runs)
    assert "add --runs" in refused("start", "world", "--mode", "rate")
    adjudicated = refused("start", "--runs", *runs, "--adjudicators", "eve")
    assert "all of them count" in adjudicated
    dataset = ("--format", "dataset", "--out", "out")
    assert "--format verdicts" in refused("export", "--runs", *runs, *dataset)
    assert "has no review" in refused("results", *runs)
