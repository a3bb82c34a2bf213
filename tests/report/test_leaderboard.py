"""`maskwise leaderboard`: what stands in one table, what does not, and what is never mixed."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import FormatError, MaskwiseError, StoreError
from maskwise.registry import PROTOCOLS
from maskwise.report.leaderboard import make_leaderboard, report_name, write_site
from maskwise.report.published_results import read_published
from maskwise.runs import Run, load_run
from tests.report.pages import Page
from tests.report.runs import make_dataset, make_predictions, make_run


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def site(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    done = run("leaderboard", toy / "far", toy / "near", "--out", out, "--samples", 1)
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def board(site: Path) -> Any:
    return json.loads((site / "leaderboard.json").read_text(encoding="utf-8"))


def rows_of(table: str) -> list[Page]:
    return [
        Page(row)
        for row in re.findall(r"<tr>.*?</tr>", table.partition("<tbody>")[2], re.S)
    ]


def test_the_best_comes_first_with_its_interval(
    site: Path, board: Any, toy: Path
) -> None:
    source = (site / "index.html").read_text(encoding="utf-8")
    first = re.search(r'<table class="board">.*?</table>', source, re.S)
    assert first is not None
    rows = rows_of(first[0])
    assert [row.find("a")[0].text for row in rows] == ["near.jsonl", "far.jsonl"]
    figure = load_run(toy / "near").scores.protocols["strict"].metrics["giou"]
    assert None not in (figure.value, figure.low, figure.high)
    [shown] = [
        cell
        for cell in rows[0].find("td")
        if cell.attributes["data-value"] == str(figure.value)
    ][:1]
    assert shown.text.startswith(
        f"{100 * figure.value:.1f} {100 * figure.low:.1f} to {100 * figure.high:.1f}"
    )
    assert (
        board["datasets"][0]["tables"][0]["rows"][0]["metrics"]["giou"]["value"]
        == figure.value
    )


def test_every_protocol_has_its_table(board: Any) -> None:
    [dataset] = board["datasets"]
    names = [one["protocol"] for one in dataset["tables"]]
    assert names[0] == "strict"
    assert names == [name for name in PROTOCOLS.built_in if name in names]
    assert all(len(one["rows"]) == 2 for one in dataset["tables"])


def test_runs_have_the_ranks_that_paired_tests_allow(
    board: Any, toy: Path, tmp_path: Path
) -> None:
    ranked = {
        row["run"]: row["ranks"] for row in board["datasets"][0]["tables"][0]["rows"]
    }
    assert ranked == {"near": [1, 1], "far": [2, 2]}
    assert 0 < board["datasets"][0]["tables"][0]["detectable"] < 0.5
    # The same predictions once more: the tests cannot tell which of the two is first.
    twin = make_run(
        tmp_path / "twin", toy / "data", toy / "near.jsonl", protocols=["strict"]
    )
    runs = [load_run(toy / "near"), load_run(toy / "far"), twin]
    (dataset,) = make_leaderboard(runs).datasets
    ranks = {row.run: row.ranks for row in dataset.tables[0].rows}
    assert ranks == {"near": (1, 2), "twin": (1, 2), "far": (3, 3)}


def test_links_lead_to_reports_in_the_site(site: Path) -> None:
    page = Page((site / "index.html").read_text(encoding="utf-8"))
    links = {link.attributes["href"] for link in page.find("a")} - {
        "#content",
        "leaderboard.json",
    }
    assert {link.partition("/")[0] for link in links} == {"reports"}
    assert {
        path.relative_to(site).as_posix() for path in site.rglob("reports/*")
    } == links
    for link in links:
        assert Page((site / link).read_text(encoding="utf-8")).find("article")


def test_the_same_runs_give_the_same_bytes(
    site: Path, toy: Path, tmp_path: Path
) -> None:
    # In another order, one of them twice, over an older site.
    for _ in range(2):
        run(
            "leaderboard",
            toy / "near",
            toy / "far",
            toy / "near",
            "--out",
            tmp_path,
            "--samples",
            1,
        )
    files = sorted(path.relative_to(site) for path in site.rglob("*") if path.is_file())
    assert files == sorted(
        path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()
    )
    for name in files:
        assert (site / name).read_bytes() == (tmp_path / name).read_bytes(), name


def test_other_questions_have_another_table(toy: Path, tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data", images=8)
    other = make_run(
        tmp_path / "other", data, make_predictions(tmp_path / "p.jsonl", data)
    )
    found = make_leaderboard([load_run(toy / "near"), other])
    assert [one.dataset for one in found.datasets] == ["toy", "toy"]
    assert len({one.sha256 for one in found.datasets}) == 2
    assert all(len(board.rows) == 1 for one in found.datasets for board in one.tables)


def test_other_options_have_another_table(toy: Path, tmp_path: Path) -> None:
    changed = copy_run(toy / "near", tmp_path / "changed")
    scores = json.loads((changed / "scores.json").read_text())
    scores["protocols"]["aura"]["options"]["unit"] = "mask"
    (changed / "scores.json").write_text(json.dumps(scores))
    [dataset] = make_leaderboard([load_run(toy / "near"), load_run(changed)]).datasets
    assert [len(one.rows) for one in dataset.tables if one.protocol == "aura"] == [1, 1]
    assert [len(one.rows) for one in dataset.tables if one.protocol == "strict"] == [2]


def copy_run(source: Path, target: Path) -> Path:
    """The same run under another name; its record differs, so it is another run."""
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    record = json.loads((target / "run.json").read_text())
    (target / "run.json").write_text(json.dumps({**record, "kernel": target.name}))
    return target


def test_forced_replies_are_marked(toy: Path, tmp_path: Path) -> None:
    forced = copy_run(toy / "near", tmp_path / "forced")
    record = json.loads((forced / "run.json").read_text())
    record["predictions"]["options"]["teacher_forced"] = True
    (forced / "run.json").write_text(json.dumps(record))
    out = tmp_path / "site"
    write_site(out, [load_run(forced)], lambda run: "")
    assert {
        tag.text
        for tag in Page((out / "index.html").read_text(encoding="utf-8")).find(
            "span", "mistaken"
        )
    } == {"teacher-forced"}


def test_forced_replies_are_not_ranked_among_free_ones(
    toy: Path, tmp_path: Path
) -> None:
    forced = copy_run(toy / "near", tmp_path / "forced")
    record = json.loads((forced / "run.json").read_text())
    record["predictions"]["teacher_forced"] = True
    (forced / "run.json").write_text(json.dumps(record))
    [dataset] = make_leaderboard(
        [load_run(forced), load_run(toy / "far"), load_run(toy / "near")]
    ).datasets
    for one in dataset.tables:
        assert [(row.run, row.tags) for row in one.rows] == [
            ("near", []),
            ("far", []),
            ("forced", ["teacher-forced"]),
        ]


def test_a_rebuild_cut_short_leaves_the_old_site(toy: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"

    def stop(run: Run) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_site(out, [load_run(toy / "near")], stop)
    write_site(out, [load_run(toy / "near")], lambda run: "old")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(KeyboardInterrupt):
        write_site(out, [load_run(toy / "far")], stop)
    assert {
        path: path.read_bytes() for path in out.rglob("*") if path.is_file()
    } == before
    write_site(out, [load_run(toy / "far")], lambda run: "new")
    assert sorted(path.name for path in out.iterdir()) == [
        "index.html",
        "leaderboard.json",
        "reports",
    ]
    assert [path.read_text() for path in (out / "reports").iterdir()] == ["new"]


def test_a_place_that_cannot_be_written_is_said_plainly(
    toy: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        StoreError, match=r"file/site cannot be written: .*Not a directory"
    ):
        write_site(tmp_path / "file" / "site", [load_run(toy / "near")], lambda run: "")


def test_a_model_that_knows_the_truth_is_marked_and_comes_last(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data")
    make_run(
        tmp_path / "far", data, make_predictions(tmp_path / "far.jsonl", data, shift=6)
    )
    done = run("eval", data, "--model", "oracle", "--out", tmp_path / "oracle")
    assert done.exit_code == 0, done.output
    part = run(
        "eval", data, "--model", "oracle", "--limit", 3, "--out", tmp_path / "part"
    )
    assert part.exit_code == 0, part.output
    found = make_leaderboard(
        [load_run(tmp_path / name) for name in ("oracle", "far", "part")]
    )
    whole = next(one for one in found.datasets if not one.subset)
    assert [(row.model, row.tags) for row in whole.tables[0].rows] == [
        ("far.jsonl", []),
        ("oracle", ["given the ground truth"]),
    ]
    [drawn] = [one for one in found.datasets if one.subset]
    assert drawn.subset == "3 images drawn with seed 0"
    assert drawn.sha256 == whole.sha256


def test_published_figures_stand_apart(site: Path, board: Any) -> None:
    page = Page((site / "index.html").read_text(encoding="utf-8"))
    *measured, published = (section.text for section in page.find("section"))
    assert not any("M2SA" in text for text in measured)
    assert "near.jsonl" not in published
    assert "not measured here" in published
    tables = {one["title"]: one for one in board["published"]}
    assert ["M2SA-7B", "27.8/48.6", "41.0/55.6", "13.5/27.0", "30.9/46.8"] in tables[
        "MMR"
    ]["rows"]
    for one in board["published"]:
        assert f"Source: {one['source']}" in published
        assert one["conditions"] in published
        assert one["rule_source"] in published
        assert one["rule"] in published


def test_published_tables_are_whole(tmp_path: Path) -> None:
    tables = read_published()
    assert {table.benchmark for table in tables} >= {
        "mmr",
        "reasonseg",
        "grefcoco",
        "amodalreasonseg",
        "refcocom",
    }
    assert ("CoReS-13B", ["65.5", "-"]) in [
        cells for table in tables for cells in table.cells
    ]
    torn = msgspec.structs.replace(tables[0], rows=[["LISA", "13.8/18.3"]])
    (tmp_path / "torn.yaml").write_bytes(msgspec.yaml.encode([torn]))
    with pytest.raises(
        FormatError, match="MMR, LISA: expected one number per metric and split"
    ):
        read_published(tmp_path / "torn.yaml")


def test_the_tables_of_a_benchmark_on_the_page_are_open(tmp_path: Path) -> None:
    data = make_dataset(
        tmp_path / "data", words=lambda text: "mmr val" if text == "toy" else text
    )
    scored = make_run(
        tmp_path / "run", data, make_predictions(tmp_path / "p.jsonl", data)
    )
    write_site(tmp_path / "site", [scored], lambda run: "")
    page = Page((tmp_path / "site" / "index.html").read_text(encoding="utf-8"))
    opened = [
        found.text for found in page.find("details") if "open" in found.attributes
    ]
    assert [text.split()[0] for text in opened] == ["MMR"]


def test_hostile_names_stay_text(hostile_run: Run, tmp_path: Path) -> None:
    evil = tmp_path / "<img src=x onerror=alert(1)>"
    evil.mkdir()
    for path in hostile_run.folder.iterdir():
        (evil / path.name).write_bytes(path.read_bytes())
    write_site(tmp_path / "site", [load_run(evil)], lambda run: "")
    source = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    page = Page(source)
    assert len(page.find("script")) == 1
    assert not page.find("img")
    assert any("<img src=x onerror=alert(1)>" in head.text for head in page.find("th"))
    [report] = (tmp_path / "site" / "reports").iterdir()
    assert re.fullmatch(r"[A-Za-z0-9_-]+\.html", report.name)
    assert report.name == report_name(load_run(evil))


def test_json_alone_writes_nothing(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("leaderboard", toy / "near", "--json")
    assert json.loads(done.stdout)["format"] == "maskwise leaderboard 4"
    assert not list(tmp_path.iterdir())


def test_what_is_refused(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("my notes")
    done = run("leaderboard", toy / "near", "--out", tmp_path)
    assert isinstance(done.exception, StoreError)
    assert "is not a leaderboard" in str(done.exception)
    assert (tmp_path / "mine").exists()
    assert isinstance(
        run("leaderboard", tmp_path, "--out", tmp_path / "site").exception,
        MaskwiseError,
    )


def test_without_a_folder_a_table_is_printed(toy: Path) -> None:
    done = run("leaderboard", toy / "near", toy / "far")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    first = next(line for line in lines if line.startswith("near.jsonl"))
    assert " 1 " in first
    assert "Two such runs have to differ by about" in done.output


def test_a_run_without_any_mask_comes_last_under_mmr(toy: Path, tmp_path: Path) -> None:
    """`mmr` leaves out all its questions and fixes its gIoU: there is nothing to rank."""
    lines = [
        json.dumps({"sample": json.loads(line)["sample"]})
        for line in (toy / "near.jsonl").read_text().splitlines()
    ]
    silent = tmp_path / "silent.jsonl"
    silent.write_text("\n".join(lines) + "\n")
    folder = tmp_path / "silent"
    made = make_run(folder, toy / "data", silent, protocols=["mmr"])
    (dataset,) = make_leaderboard([made, load_run(toy / "near")]).datasets
    rows = {table.protocol: table.rows for table in dataset.tables}["mmr"]
    assert [row.run for row in rows] == ["near", "silent"]
    assert rows[1].giou.value is None
    done = run("compare", folder, toy / "near", "--protocol", "mmr")
    assert "has no gIoU under mmr" in str(done.exception)
    done = run("leaderboard", folder, toy / "near", "--out", tmp_path / "site")
    assert done.exit_code == 0, done.output
