"""Whole builds: offline, with language models behind a local server, killed, sharded, limited by a budget."""

import hashlib
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maskwise.builder.facts import ImageFacts
from maskwise.builder.filters import apply_filters
from maskwise.builder.grammar_writer import write_with_grammar
from maskwise.builder.language_model import LanguageModel, estimate_build, ledger_path
from maskwise.builder.pipeline import BuildOptions, build_dataset, merge_results
from maskwise.builder.prompt import make_request
from maskwise.builder.recipes import find_recipe
from maskwise.engines import EngineOptions
from maskwise.errors import StoreError
from maskwise.language.intent import classify_intent
from maskwise.registry import RECIPES
from maskwise.store import Dataset
from maskwise.world.dataset import bundled
from maskwise.writers import Ledger, SendLimits, load_prices, open_client
from maskwise.writers.complete import BudgetError
from tests.builder.killed_build import run_build
from tests.builder.simulated_model import write_reply
from tests.builder.sources import read_photos, scene, table_scene
from tests.cli.commands import fail, run
from tests.writers.providers import Provider, remove_keys, serve_provider

MODELS = {"anthropic": "claude-sonnet-5", "openai": "gpt-4.1"}


@pytest.fixture
def world() -> Dataset:
    return Dataset.open(bundled())


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with serve_provider() as provider:
        provider.write = write_reply
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        yield provider


def open_model(name: str, **limits: Any) -> LanguageModel:
    model = MODELS[name]
    client = open_client(name, model=model, max_retries=0)
    return LanguageModel(
        client, load_prices().find(model), SendLimits(poll_seconds=0.0, **limits)
    )


def digest(folder: Path) -> dict[str, str]:
    """The content of a dataset folder."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.iterdir())
    }


@pytest.mark.parametrize("recipe", sorted(RECIPES.built_in))
def test_the_result_is_a_dataset_like_any_other(recipe: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("build", recipe, "world", "--out", out, "--limit", 12, "--json")
    summary = json.loads(done.stdout)
    data = Dataset.open(out)
    assert len(data) == summary["kept"] > 24
    assert {file.name for file in out.iterdir()} >= {
        "build.html",
        "build.json",
        "rejected.jsonl",
    }
    assert all(sample.answer is not None and sample.answer.phrases for sample in data)
    assert data.manifest.about["recipe"] == recipe
    data[0].image.load()
    run("validate", out)


def test_a_build_can_be_evaluated(tmp_path: Path) -> None:
    run("build", "r2sm", "world", "--out", tmp_path / "out", "--limit", 4)
    run("eval", tmp_path / "out", "--model", "oracle", "--out", tmp_path / "run")


def test_photographs_are_referred_to_not_copied(tmp_path: Path) -> None:
    source = read_photos("cocoa", tmp_path / "cocoa")
    build_dataset(find_recipe("r2sm"), source, tmp_path / "out")
    data = Dataset.open(tmp_path / "out")
    assert data.image(0).path == source.image(0).path
    assert data[0].image.size == source.open_image(0).size


def test_a_source_without_amodal_masks_is_named_with_what_to_do(tmp_path: Path) -> None:
    source = read_photos("coco", tmp_path / "coco")
    with pytest.raises(
        StoreError, match="needs amodal masks; `maskwise build occlude`"
    ):
        build_dataset(find_recipe("amodal-reason-seg"), source, tmp_path / "out")


@pytest.mark.parametrize(
    "engine", [EngineOptions(workers=2), EngineOptions(engine="ray", workers=2)]
)
def test_engines_make_the_same_dataset(
    engine: EngineOptions, world: Dataset, tmp_path: Path
) -> None:
    summaries = {}
    for name, options in {"local": EngineOptions(), "other": engine}.items():
        out = tmp_path / name / "out"
        summaries[name] = build_dataset(
            find_recipe("mmr"),
            world,
            out,
            BuildOptions(limit=40, engine=options),
            classify=classify_intent,
        )
    assert summaries["local"].kept == summaries["other"].kept > 100
    ours, theirs = (digest(tmp_path / name / "out") for name in ("local", "other"))
    assert ours["samples.arrow"] == theirs["samples.arrow"]
    assert ours["rejected.jsonl"] == theirs["rejected.jsonl"]


def test_a_complete_build_is_not_repeated(world: Dataset, tmp_path: Path) -> None:
    recipe = find_recipe("r2sm")
    out = tmp_path / "out"
    first = build_dataset(recipe, world, out, BuildOptions(limit=3))
    before = out.stat().st_mtime_ns
    assert build_dataset(recipe, world, out, BuildOptions(limit=3)) == first
    assert out.stat().st_mtime_ns == before
    with pytest.raises(StoreError, match="--overwrite"):
        build_dataset(recipe, world, out, BuildOptions(limit=4))
    assert (
        build_dataset(recipe, world, out, BuildOptions(limit=4), overwrite=True).images
        == 4
    )


def test_a_complete_build_shows_its_summary_without_a_progress_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the output for a terminal
    arguments = (
        "build",
        "r2sm",
        "world",
        "--out",
        tmp_path / "out",
        "--limit",
        2,
    )
    first = run(*arguments)
    second = run(*arguments)
    assert "2/2" in first.stderr
    assert second.stderr == ""
    assert second.stdout == first.stdout
    assert "2/2" in run(*arguments, "--overwrite").stderr


def test_flagged_samples_have_a_tag(world: Dataset, tmp_path: Path) -> None:
    """The classifier here calls every question amodal."""

    def classify(questions: Any) -> Any:
        return [
            read._replace(mask_type="amodal", probability=0.99)
            for read in classify_intent(questions)
        ]

    summary = build_dataset(
        find_recipe("mmr"),
        world,
        tmp_path / "out",
        BuildOptions(limit=2),
        classify=classify,
    )
    assert summary.flagged == summary.kept
    assert all(
        sample.tags["flags"] == "mask-type-wording"
        for sample in Dataset.open(tmp_path / "out")
    )


def test_a_source_without_amodal_masks_gives_no_amodal_questions(
    tmp_path: Path,
) -> None:
    source = read_photos("coco", tmp_path / "coco")
    with pytest.raises(StoreError, match="the writer proposed none"):
        build_dataset(
            find_recipe("amodal-reason-seg"),
            source,
            tmp_path / "out",
            BuildOptions(limit=5),
        )
    assert not (tmp_path / "out").exists()
    build_dataset(find_recipe("r2sm"), source, tmp_path / "out", BuildOptions(limit=5))
    assert {sample.mask_type for sample in Dataset.open(tmp_path / "out")} == {
        "visible"
    }


def test_results_of_shards_add_up() -> None:
    images = {"scene": table_scene()}
    empty = apply_filters([], images)
    assert merge_results([]) == empty
    one = apply_filters(write_with_grammar(find_recipe("mmr"), images["scene"]), images)
    merged = merge_results([one, empty, one])
    assert merged.kept == one.kept * 2
    assert [count.reached for count in merged.counts] == [
        2 * count.reached for count in one.counts
    ]


def test_images_of_another_dataset_are_rejected(tmp_path: Path) -> None:
    run("build", "mmr", "world", "--out", tmp_path / "a", "--limit", 3)
    done = run(
        "build",
        "mmr",
        "world",
        "--out",
        tmp_path / "b",
        "--limit",
        4,
        "--against",
        tmp_path / "a",
        "--json",
    )
    summary = json.loads(done.stdout)
    assert summary["images_kept"] == 1
    assert {count["reason"]: count["rejected"] for count in summary["filters"]}[
        "leaked-image"
    ] > 0


# -- language models


def test_a_request_lists_the_regions_and_shows_them() -> None:
    request = make_request(ImageFacts(table_scene()), find_recipe("mmr"))
    assert request is not None
    assert request.image is not None
    assert "2: plate; middle center;" in request.text
    assert "occluded: 21 % is hidden by 3" in request.text
    assert "7: blade (part of 4);" in request.text
    assert make_request(ImageFacts(table_scene()), find_recipe("r2sm")) != request
    assert make_request(ImageFacts(scene()), find_recipe("mmr")) is None


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("recipe", sorted(RECIPES.built_in))
def test_a_language_model_writes(
    name: str, recipe: str, provider: Provider, world: Dataset, tmp_path: Path
) -> None:
    model = open_model(name)
    summary = build_dataset(
        find_recipe(recipe), world, tmp_path / "out", BuildOptions(limit=6), model=model
    )
    usage = summary.build.usage
    assert summary.kept > 6
    assert usage.statuses == {"ok": len(provider.calls)}
    assert (usage.writer, usage.model) == (name, MODELS[name])
    assert usage.cost > 0


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("recipe", sorted(RECIPES.built_in))
def test_a_dry_run_is_close_to_the_real_cost(
    name: str, recipe: str, provider: Provider, tmp_path: Path
) -> None:
    """Photographs of usual size; the tokens are counted by the server in another way than the estimate."""
    source = read_photos("cocoa", tmp_path / "cocoa")
    model = open_model(name)
    chosen = find_recipe(recipe)
    expected = estimate_build(chosen, source, range(len(source.images)), model=model)
    assert not provider.calls
    usage = build_dataset(chosen, source, tmp_path / "out", model=model).build.usage
    assert expected.cost == pytest.approx(usage.cost, rel=0.2)
    assert expected.input_tokens == pytest.approx(usage.input_tokens, rel=0.2)
    assert expected.output_tokens == pytest.approx(usage.output_tokens, rel=0.2)


def test_refusals_truncation_and_nonsense_are_counted(
    provider: Provider, world: Dataset, tmp_path: Path
) -> None:
    malformed = {
        "caption": "A table.",
        "samples": [
            {"question": "Why?"},
            {"question": "Why?", "answer": "So.", "targets": []},
        ],
    }
    provider.replies = [
        {"stop": "refusal"},
        {"stop": "max_tokens"},
        {"stop": "max_tokens"},
        {"text": "I cannot"},
        {"text": "I cannot"},
        {"text": json.dumps(malformed)},
    ]
    model = open_model("anthropic", concurrency=1)
    summary = build_dataset(
        find_recipe("mmr"), world, tmp_path / "out", BuildOptions(limit=6), model=model
    )
    usage = summary.build.usage
    assert {key: count for key, count in usage.statuses.items() if key != "ok"} == {
        "invalid": 2,
        "refused": 1,
        "truncated": 2,
    }, "each of these two is asked for once more"
    assert {failure.status for failure in usage.failures} == {
        "invalid",
        "refused",
        "truncated",
    }
    assert usage.malformed == 1
    assert {count.reason: count.rejected for count in summary.filters}[
        "phrase-mismatch"
    ] == 1


def test_the_budget_stops_the_build_and_keeps_what_was_answered(
    provider: Provider, world: Dataset, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    options = BuildOptions(limit=8)
    with pytest.raises(BudgetError, match="--budget"):
        build_dataset(
            find_recipe("mmr"),
            world,
            out,
            options,
            model=open_model("anthropic", budget=0.05, concurrency=1),
        )
    answered = len(provider.calls)
    assert 0 < answered < 8
    with Ledger(ledger_path(out)) as ledger:
        assert ledger.cost <= 0.05
    assert not out.exists()
    build_dataset(
        find_recipe("mmr"),
        world,
        out,
        options,
        model=open_model("anthropic", budget=5.0, concurrency=1),
    )
    distinct = {json.dumps(call, sort_keys=True) for call in provider.calls}
    assert len(distinct) == len(provider.calls)


def command(name: str, out: Path, *more: str) -> list[str]:
    return [
        *(
            "build",
            "mmr",
            "world",
            "--out",
            str(out),
            "--limit",
            "2",
            "--writer",
            name,
        ),
        *("--model", MODELS[name], "--concurrency", "3", *more),
    ]


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("batch", [False, True])
def test_a_killed_build_ends_with_the_same_dataset(
    name: str, batch: bool, provider: Provider, tmp_path: Path
) -> None:
    """Eight kill points for each API and way of sending, spread over the whole build."""
    more = ["--batch"] if batch else []
    log = tmp_path / "log"
    whole = tmp_path / "whole" / "out"
    assert run_build(command(name, whole, *more), log) == 0, log.read_text()
    steps = int(re.findall(r"steps (\d+)", log.read_text())[0])
    needed = len(provider.calls)
    random.seed(f"{name} {batch}")
    for kill_at in random.sample(range(1, steps + 1), 8):
        provider.calls.clear()
        provider.batches.clear()
        out = tmp_path / f"killed{kill_at}" / "out"
        assert run_build(command(name, out, *more), log, kill_at=kill_at) == -9
        assert run_build(command(name, out, *more), log) == 0, log.read_text()
        assert len(provider.calls) <= needed + 3, (
            "at most those in flight are sent again"
        )
        sent = [
            entry["custom_id"]
            for found in provider.batches.values()
            for entry in found["requests"]
        ]
        assert len(sent) == len(set(sent))
        ours = digest(out)
        theirs = digest(whole)
        for file in (
            "images.arrow",
            "regions.arrow",
            "samples.arrow",
            "rejected.jsonl",
        ):
            assert ours[file] == theirs[file], (kill_at, file)


def test_the_command_prints_calls_tokens_and_cost(
    provider: Provider, tmp_path: Path
) -> None:
    arguments = command("openai", tmp_path / "out")
    done = run(*arguments, "--dry-run")
    assert "calls about 2 images" in done.stdout
    assert "Nothing was sent" in done.stdout
    assert not provider.calls
    assert not (tmp_path / "out").exists()
    done = run(*arguments)
    assert "questions about 2 of 2 images" in done.stdout
    assert "tokens, $" in done.stdout


def test_an_endpoint_of_ones_own_needs_no_price(
    provider: Provider,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = [
        "build",
        "mmr",
        "world",
        "--out",
        tmp_path / "out",
        "--limit",
        2,
        "--writer",
        "openai",
    ]
    arguments += ["--model", "qwen3-vl", "--base-url", f"{provider.url}/v1"]
    assert "no price is known" in fail(capsys, monkeypatch, *arguments, "--budget", 1)
    assert "$0.00" in run(*arguments).stdout


@pytest.mark.parametrize("writer", MODELS)
def test_a_missing_key_stops_a_build_before_any_work_and_leaves_no_file(
    writer: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remove_keys(tmp_path, monkeypatch)
    out = tmp_path / "out" / "data"
    arguments = ["build", "r2sm", "world", "--out", out, "--writer", writer]
    arguments += ["--model", MODELS[writer], "--limit", 2]
    message = fail(capsys, monkeypatch, *arguments)
    assert f"{writer.upper()}_API_KEY" in message
    assert "Traceback" not in message
    assert not out.parent.exists()
    assert "Nothing was sent" in run(*arguments, "--dry-run").stdout


def test_a_language_model_needs_a_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("build", "mmr", "world", "--out", tmp_path / "out")
    assert "--model" in fail(capsys, monkeypatch, *arguments, "--writer", "openai")
    assert "anthropic, grammar, openai" in fail(
        capsys, monkeypatch, *arguments, "--writer", "anthropc"
    )
    assert "the grammar costs nothing" in fail(
        capsys, monkeypatch, *arguments, "--dry-run"
    )
