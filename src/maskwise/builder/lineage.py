"""Where questions come from: the facts of a build for its manifest, and `provenance.jsonl` with a line per sample.

The manifest says who wrote with which prompt, seed, options, filters and prices; reviews add what people decided. A
release carries both, and fills the fields `data.annotation` and `methodology.validation` of its card with them.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from maskwise.builder.filters import FilterOptions
from maskwise.builder.prompt import SYSTEM
from maskwise.builder.recipe import Recipe, output_schema
from maskwise.errors import StoreError

PROVENANCE = "provenance.jsonl"

WRITER = "writer"
WRITER_MODEL = "writer_model"
PROMPT = "prompt_sha256"
SEED = "seed"
PRICES = "prices_as_of"
EFFORT = "effort"
OPTIONS = "recipe_options"
FILTERS = "filters"
VERIFIER = "verifier"
VERIFIED = "verified"
REVIEWED = "reviewed"
AGREEMENT = "review_agreement"
"""Keys of `about` in a manifest."""


class SampleOrigin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who wrote a sample. prompt_sha256: of a language model; seed: of the grammar; flags: why people should look."""

    sample: str
    writer: str
    model: str | None = None
    prompt_sha256: str | None = None
    seed: int | None = None
    verified: str | None = None
    flags: list[str] = []


def hash_prompt(recipe: Recipe) -> str:
    """SHA-256 of everything that a recipe tells a language model beside the image and its regions."""
    content = (
        recipe.prompt_version,
        SYSTEM,
        recipe.instructions,
        output_schema(recipe),
    )
    encoded = msgspec.json.encode(content, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()


def describe_options(options: Mapping[str, object]) -> str:
    """Options as text, those that are set: `limit=10, seed=3`."""
    return ", ".join(
        f"{name}={value}" for name, value in options.items() if value is not None
    )


def describe_filters(options: FilterOptions, more: Iterable[str] = ()) -> str:
    """The thresholds of the filters, and further filters by name."""
    described = describe_options(msgspec.structs.asdict(options))
    return "; ".join([described, *more])


def write_provenance(path: Path, origins: Iterable[SampleOrigin]) -> None:
    """Write one line per sample."""
    with open(path, "wb") as file:
        for origin in origins:
            file.write(msgspec.json.encode(origin) + b"\n")


def read_provenance(folder: Path) -> dict[str, dict[str, Any]]:
    """The lines of `provenance.jsonl` in a dataset folder by sample; empty where there is no such file."""
    path = folder / PROVENANCE
    if not path.is_file():
        return {}
    lines = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            record = msgspec.json.decode(line, type=dict[str, Any])
            lines[str(record["sample"])] = record
        except (msgspec.DecodeError, KeyError, UnicodeError) as error:
            raise StoreError(f"{path}, line {number}: {error}") from None
    return lines


def describe_annotation(about: Mapping[str, str]) -> str:
    """Who or what wrote the questions, for a card; empty if the manifest does not say."""
    if WRITER not in about:
        return ""
    sentences = [_describe_writer(about)]
    if OPTIONS in about:
        sentences.append(f"Options: {about[OPTIONS]}.")
    if FILTERS in about:
        sentences.append(f"Filters: {about[FILTERS]}.")
    return " ".join(sentences)


def _describe_writer(about: Mapping[str, str]) -> str:
    recipe = about.get("recipe", "unknown")
    if about[WRITER] == "grammar":
        return f"Questions and answers were written by a grammar (recipe {recipe}, seed {about.get(SEED, '0')})."
    prompt = about.get(PROMPT, "")[:16]
    return (
        f"Questions and answers were written by {about.get(WRITER_MODEL)} ({about[WRITER]}; recipe {recipe}, prompt "
        f"{prompt}; prices of {about.get(PRICES, 'an unknown date')})."
    )


def describe_validation(about: Mapping[str, str]) -> str:
    """How questions were checked, for a card; empty if nobody did."""
    return " ".join(_list_checks(about))


def _list_checks(about: Mapping[str, str]) -> Iterator[str]:
    if VERIFIED in about:
        yield (
            f"A language model ({about.get(VERIFIER, 'unknown')}) picked the regions without seeing the answers: "
            f"{about[VERIFIED]}."
        )
    if REVIEWED in about:
        yield f"People reviewed the samples: {about[REVIEWED]}."
    if AGREEMENT in about:
        yield f"Agreement of reviewers: {about[AGREEMENT]}."
