"""Builds with a language model that misbehaves: bad replies, failing images, retries, verification, lineage."""

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maskwise.builder.build_summary import WriterFailure
from maskwise.builder.draft import Draft, DraftTarget
from maskwise.builder.filters import FilterFinding, apply_filters
from maskwise.builder.language_model import count_reasons, ledger_path
from maskwise.builder.lineage import (
    describe_annotation,
    describe_validation,
    read_provenance,
)
from maskwise.builder.pipeline import BuildOptions, build_dataset
from maskwise.builder.recipes import find_recipe
from maskwise.builder.verifier import verify_drafts
from maskwise.errors import StoreError
from maskwise.store import Dataset
from maskwise.world.dataset import bundled
from maskwise.writers import Completion, Ledger
from tests.builder.simulated_model import REGION, read_request, write_reply
from tests.builder.sources import read_photos, table_scene
from tests.builder.test_pipeline import MODELS, open_model
from tests.cli.commands import fail, run
from tests.writers.providers import Provider, Reply, serve_provider


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with serve_provider() as provider:
        provider.write = answer
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        yield provider


def answer(given: dict[str, Any]) -> Reply:
    """Writes like the simulated model; as a verifier it picks the first two regions for every question."""
    system, text, _, _ = read_request(given)
    if "regions that answer it" not in " ".join(system.split()):
        return write_reply(given)
    listed, _, questions = text.partition("The questions:")
    numbers = [int(number) for number, _, _ in REGION.findall(listed)[:2]]
    answers = [
        {"question": number, "regions": numbers}
        for number in range(1, questions.count("\n") + 1)
    ]
    return {"text": json.dumps({"answers": answers})}


def command(out: Path, *more: object) -> list[object]:
    start = ["build", "mmr", "world", "--out", out, "--limit", 4]
    model = ["--writer", "openai", "--model", MODELS["openai"]]
    return [*start, *model, "--no-blind-check", *more]


# -- bad replies and failing images


def test_an_image_that_always_fails_is_skipped_counted_and_asked_again(
    provider: Provider, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    texts: list[str] = []

    def write(given: dict[str, Any]) -> Reply:
        _, text, _, _ = read_request(given)
        texts.append(text)
        broken = text.startswith(texts[0]) and not repaired.is_set()
        return {"text": "I would rather not."} if broken else write_reply(given)

    repaired = threading.Event()
    provider.write = write
    said = run(*command(out, "--concurrency", 1)).stdout
    words = " ".join(said.split())
    assert "questions about 3 of 4 images" in words
    assert "1 image without questions (invalid), for example" in words
    assert "I would rather not." in words
    assert "--retry-failed" in words
    summary = json.loads((out / "build.json").read_bytes())
    assert [reason["count"] for reason in summary["build"]["usage"]["reasons"]] == [1]
    assert "I would rather not." in (out / "build.html").read_text()
    repaired.set()
    calls = len(provider.calls)
    assert "3 of 4 images" in " ".join(run(*command(out)).stdout.split())
    assert len(provider.calls) == calls, "a finished build is not repeated"
    again = " ".join(run(*command(out, "--retry-failed")).stdout.split())
    assert "questions about 4 of 4 images" in again
    assert len(provider.calls) == calls + 1


def test_a_build_without_any_answer_says_why(
    provider: Provider,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider.write = lambda given: {"status": 400, "text": "the image is too small"}
    said = fail(capsys, monkeypatch, *command(tmp_path / "out"))
    assert "4 requests brought nothing: " in said
    assert "the image is too small" in said
    assert not (tmp_path / "out").exists()


def test_reasons_that_differ_in_numbers_are_one() -> None:
    reasons = ["cut at byte 17", "cut at byte 4", "refused"]
    failures = [
        WriterFailure(image_id=str(place), status="invalid", reason=reason)
        for place, reason in enumerate(reasons)
    ]
    counted = count_reasons(failures)
    assert [(reason.count, reason.example.image_id) for reason in counted] == [
        (2, "0"),
        (1, "2"),
    ]


def test_an_image_that_cannot_be_opened_is_skipped(
    provider: Provider, tmp_path: Path
) -> None:
    source = read_photos("cocoa", tmp_path / "cocoa")
    assert source.image_root is not None
    path = source.image_root / str(source.image(0).path)
    path.write_bytes(path.read_bytes()[:300])
    summary = build_dataset(
        find_recipe("r2sm"), source, tmp_path / "out", model=open_model("openai")
    )
    [reason] = summary.build.usage.reasons
    assert reason.example.image_id == source.image(0).id
    assert summary.images_kept == summary.images - 1


def test_progress_and_cost_come_with_the_first_image(
    provider: Provider, tmp_path: Path
) -> None:
    """The second image is answered only after the first was reported."""
    reported: list[tuple[int, float]] = []
    first = threading.Event()

    def done(images: int, cost: float) -> None:
        reported.append((images, cost))
        first.set()

    def write(given: dict[str, Any]) -> Reply:
        if len(provider.calls) > 1:
            assert first.wait(20.0)
        return write_reply(given)

    provider.write = write
    build_dataset(
        find_recipe("mmr"),
        Dataset.open(bundled()),
        tmp_path / "out",
        BuildOptions(limit=3),
        model=open_model("openai", concurrency=1),
        done=done,
    )
    assert sum(images for images, _ in reported) == 3
    costs = [cost for _, cost in reported]
    assert 0 < costs[0] < costs[1] < costs[2]


def test_a_ledger_can_be_shared_and_each_build_knows_its_cost(
    provider: Provider, tmp_path: Path
) -> None:
    shared = tmp_path / "shared.sqlite"
    costs = []
    for name in ("a", "b"):
        arguments = command(tmp_path / name, "--ledger", shared, "--json")
        usage = json.loads(run(*arguments).stdout)["build"]["usage"]
        costs.append(usage["cost"])
    assert costs[0] > 0
    assert costs[1] == 0, "the second build asks nothing that the first was answered"
    assert len(provider.calls) == 4
    assert not ledger_path(tmp_path / "a").exists()
    with Ledger(shared) as ledger:
        assert ledger.spending == (pytest.approx(costs[0]), 0.0)


def test_the_source_is_never_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    shutil.copytree(bundled(), source)
    before = (source / "samples.arrow").read_bytes()
    for recipe in ("mmr", "occlude"):
        for out in (source, source / "inner", tmp_path / "other" / ".." / "source"):
            said = fail(
                capsys,
                monkeypatch,
                *("build", recipe, source, "--out", out, "--overwrite", "--limit", 1),
            )
            assert "choose another folder" in said
    assert (source / "samples.arrow").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "tokens", "effort"),
    [
        (["--model", "gpt-4.1"], 0, None),
        (["--model", "gpt-5-mini"], 4000, None),
        (["--model", "gpt-5-mini", "--thinking-tokens", 0], 0, None),
        (["--model", "gpt-5-mini", "--effort", "low"], 4000, "low"),
        (["--model", "gpt-4.1", "--effort", "high"], 4000, "high"),
    ],
)
def test_reasoning_models_have_room_to_think(
    arguments: list[str],
    tokens: int,
    effort: str | None,
    provider: Provider,
    tmp_path: Path,
) -> None:
    base = ["build", "mmr", "world", "--out", tmp_path / "out", "--limit", 1]
    base += ["--writer", "openai", "--no-blind-check", *arguments]
    estimate = json.loads(run(*base, "--dry-run", "--json").stdout)
    assert estimate["thinking_tokens"] == tokens
    run(*base)
    [call] = provider.calls
    assert call["max_completion_tokens"] == 1500 + tokens
    assert call.get("reasoning_effort") == effort


def test_an_unknown_effort_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    said = fail(capsys, monkeypatch, *command(tmp_path / "out", "--effort", "hard"))
    assert "known: high, low, medium, minimal" in said


# -- verification


def draft(question: str, *regions: str) -> Draft:
    return Draft(
        image_id="scene",
        question=question,
        answer="This.",
        targets=(DraftTarget(phrase="This", regions=regions),),
        mask_type="visible",
        kind="reasoning",
    )


def test_agreement_is_tagged_and_disagreement_flagged() -> None:
    image = table_scene()
    ids = [region.id for region in image.regions]
    names = [region.name for region in image.regions]
    drafts = [draft("Which?", ids[0]), draft("What?", ids[1]), draft("Who?", ids[0])]
    drafts.append(draft("Where?", ids[0], ids[1]))
    kept = apply_filters([], {})
    wording = FilterFinding(draft=drafts[0], reason="mask-type-wording", detail="...")
    result = type(kept)(
        kept=tuple(drafts), rejected=(), flags=(wording,), counts=kept.counts
    )
    picks = [
        {"question": 1, "regions": [1]},
        {"question": 2, "regions": [1]},
        {"question": 3, "regions": [999]},
        {"question": 4, "regions": [2, 1, 1]},
        {"question": 9, "regions": [1]},
        "nonsense",
    ]

    def ask(requests: Any) -> list[Completion]:
        [request] = requests
        assert "2. What?" in request.text
        assert "This." not in request.text, "the answer is not shown"
        return [Completion(status="ok", output={"answers": picks})]

    verified, counts = verify_drafts(result, {"scene": image}, find_recipe("mmr"), ask)
    assert counts == {"agree": 2, "disagree": 1, "not checked": 1}
    tags = [kept.tags["verified"] for kept in verified.kept]
    assert tags == ["agree", "disagree", "not checked", "agree"]
    flags = [(flag.draft.question, flag.reason) for flag in verified.flags]
    assert flags == [
        ("Which?", "mask-type-wording"),
        ("What?", "verifier-disagrees"),
    ]
    assert all(
        any(flag.draft is kept for kept in verified.kept) for flag in verified.flags
    )
    assert f"picked {names[0]}; the answer names {names[1]}" in verified.flags[1].detail


def test_a_verifier_without_a_usable_reply_keeps_the_questions() -> None:
    image = table_scene()
    result = apply_filters([], {})
    result = type(result)(
        kept=(draft("Which?", image.regions[0].id),),
        rejected=(),
        flags=(),
        counts=result.counts,
    )
    for output in (None, {"answers": None}, {}):
        completions = [Completion(status="ok", output=output)]
        verified, counts = verify_drafts(
            result,
            {"scene": image},
            find_recipe("mmr"),
            lambda requests, completions=completions: completions,
        )
        assert counts == {"not checked": 1}
        assert len(verified.kept) == 1
        assert verified.flags == ()


def test_verify_flags_for_review_is_cached_and_budgeted(
    provider: Provider, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    said = " ".join(run(*command(out, "--verify")).stdout.split())
    assert "verified by openai/gpt-4.1:" in said
    assert len(provider.calls) == 8, "one request to write and one to verify per image"
    data = Dataset.open(out)
    assert {sample.tags["verified"] for sample in data} == {"agree", "disagree"}
    for sample in data:
        flags = sample.tags.get("flags", "")
        disagrees = sample.tags["verified"] == "disagree"
        assert ("verifier-disagrees" in flags) == disagrees
    assert "agree" in data.manifest.about["verified"]
    assert "picked the regions" in describe_validation(data.manifest.about)
    run(*command(out, "--verify", "--overwrite"))
    assert len(provider.calls) == 8, "the verifier's answers are in the ledger"
    plain = json.loads(run(*command(out, "--dry-run", "--json")).stdout)
    both = json.loads(run(*command(out, "--verify", "--dry-run", "--json")).stdout)
    assert both["calls"] == 2 * plain["calls"]
    assert both["cost"] > plain["cost"]


def test_a_language_model_can_verify_the_grammar(
    provider: Provider,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = ["build", "mmr", "world", "--out", tmp_path / "out", "--limit", 2]
    assert "--verifier" in fail(capsys, monkeypatch, *arguments, "--verify")
    for wrong in ("openai", "grammar/x"):
        said = fail(capsys, monkeypatch, *arguments, "--verifier", wrong)
        assert "PROVIDER/MODEL" in said
    arguments += ["--verifier", "openai/gpt-4.1"]
    summary = json.loads(run(*arguments, "--json").stdout)
    assert summary["build"]["usage"]["writer"] == "grammar"
    assert summary["build"]["usage"]["statuses"] == {"ok": 2}
    assert summary["build"]["usage"]["cost"] > 0
    assert sum(summary["build"]["verified"].values()) == summary["kept"]


# -- lineage


def test_the_manifest_and_provenance_say_who_wrote(
    provider: Provider, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run(*command(out, "--effort", "low"))
    about = Dataset.open(out).manifest.about
    assert about["writer"] == "openai"
    assert about["writer_model"] == "gpt-4.1"
    assert about["effort"] == "low"
    assert len(about["prompt_sha256"]) == 64
    assert about["prices_as_of"].startswith("2026")
    assert "min_area=0.0005" in about["filters"]
    assert (
        "limit" not in about["recipe_options"] or "limit=4" in about["recipe_options"]
    )
    lines = read_provenance(out)
    assert set(lines) == {sample.id for sample in Dataset.open(out)}
    assert {line["model"] for line in lines.values()} == {"gpt-4.1"}
    assert "written by gpt-4.1 (openai; recipe mmr" in describe_annotation(about)


def test_the_grammar_names_its_seed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("build", "r2sm", "world", "--out", out, "--limit", 2, "--seed", 5)
    about = Dataset.open(out).manifest.about
    assert (about["writer"], about["seed"]) == ("grammar", "5")
    assert {line["seed"] for line in read_provenance(out).values()} == {5}
    assert "a grammar (recipe r2sm, seed 5)" in describe_annotation(about)


def test_a_damaged_line_of_provenance_is_named(tmp_path: Path) -> None:
    assert read_provenance(tmp_path) == {}
    (tmp_path / "provenance.jsonl").write_text('{"sample": "a"}\n{"sam')
    with pytest.raises(StoreError, match=r"provenance\.jsonl, line 2"):
        read_provenance(tmp_path)


def test_the_caption_of_mmr_is_kept(provider: Provider, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(*command(out))
    captions = {sample.tags["caption"] for sample in Dataset.open(out)}
    assert captions == {
        "A view of several things that somebody has arranged, seen from a short distance."
    }
