"""Build a dataset: a writer's questions about annotated images, filtered, with a summary and a report.

    summary = build_dataset(find_recipe("r2sm"), Dataset.open("cocoa_val"), "r2sm_val")

Without a language model the grammar writes. With one, requests go through a ledger beside the output
(`OUT.ledger.sqlite`), so that a repeated command sends nothing that was answered. Beside its tables the dataset folder
holds

    rejected.jsonl   drafts that a filter rejected, with reason codes
    build.json       the summary: yield per filter, cost, statistics
    build.html       the same for people, with examples
    provenance.jsonl who wrote each sample, and what a verifier found

Samples that a person should look at have the tag `flags`, which `maskwise review` shows first; those about images of a
merged dataset have the tags `source` and `split` of their image.
"""

import hashlib
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path

import msgspec

from maskwise.builder import lineage
from maskwise.builder.build_report import SUMMARY, write_build_report
from maskwise.builder.build_summary import (
    BuildFacts,
    BuildSummary,
    WriterUsage,
    summarize_build,
)
from maskwise.builder.cue_tags import CUES_TAG, encode_cues
from maskwise.builder.draft import Draft, SourceImage, draft_to_sample
from maskwise.builder.filters import (
    ClassifyWording,
    FilterOptions,
    FilterResult,
    apply_filters,
    limit_repeats,
)
from maskwise.builder.grammar_writer import write_with_grammar
from maskwise.builder.language_model import (
    Done,
    LanguageModel,
    ModelSession,
    ledger_path,
)
from maskwise.builder.lineage import PROVENANCE, SampleOrigin, write_provenance
from maskwise.builder.merge import merged_tags
from maskwise.builder.recipe import Recipe
from maskwise.builder.source_images import SourceFolder, SourceImages
from maskwise.builder.verifier import NOT_CHECKED, VERIFIED_TAG, verify_drafts
from maskwise.engines import EngineOptions, map_chunks
from maskwise.errors import StoreError
from maskwise.runs.files import hash_path
from maskwise.schema import Sample
from maskwise.store import Dataset, DatasetWriter
from maskwise.store.folder import MANIFEST, read_manifest, refuse_source_folder
from maskwise.writers.complete import TOGETHER, Sender
from maskwise.writers.ledger import Ledger

log = logging.getLogger(__name__)

NAMED_REASONS = 5
"""Reasons that the error about a build without questions names; more would hide the first."""

REJECTED = "rejected.jsonl"
FLAGS_TAG = "flags"
BUILD_KEY = "build_key"

GRAMMAR_VERSION = "grammar 2"
"""Part of the key of a build; change it when the same seed gives other questions."""

FILTERED_TOGETHER = 32
"""Images of a language model whose drafts are filtered at once: questions about the first are checked while the next
are written. With batches, all that are in memory."""


@dataclass(frozen=True)
class BuildOptions:
    """limit: images to work on, the first ones. seed: of the grammar. leaked: images to
    reject, with reasons. more_filters: filters beside the built-in ones, by name or
    `package.module:attribute`.
    """

    limit: int | None = None
    seed: int = 0
    filters: FilterOptions = field(default_factory=FilterOptions)
    engine: EngineOptions = field(default_factory=EngineOptions)
    leaked: Mapping[str, str] | None = None
    more_filters: tuple[str, ...] = ()


def build_dataset(
    recipe: Recipe,
    source: Dataset,
    out: str | os.PathLike[str],
    options: BuildOptions | None = None,
    *,
    model: LanguageModel | None = None,
    verifier: LanguageModel | None = None,
    classify: ClassifyWording | None = None,
    overwrite: bool = False,
    done: Done = lambda images, cost: None,
) -> BuildSummary:
    """Write a dataset folder with the questions of a recipe about the images of a source.

    A folder that the same build wrote before is left as it is, unless requests that failed are to be sent again. model:
    None for the grammar. verifier: picks the regions of every question without its answer; None for no such check.
    classify: reads the mask type from questions, for flags. done: called with the number of images just written about,
    and the cost so far.
    """
    chosen = options or BuildOptions()
    path = Path(out)
    refuse_source_folder(path, [source.path])
    count = (
        len(source.images)
        if chosen.limit is None
        else min(chosen.limit, len(source.images))
    )
    images = SourceImages(source, count)
    key = _build_key(recipe, source, chosen, (model, verifier))
    is_built = _is_built(path, key)
    if is_built and not overwrite:
        log.info("%s is the complete result of the same build", path)
        summary = _read_summary(path)
        if not _has_failures(summary, model or verifier):
            return summary
    writer_name = "the grammar" if model is None else model.client.model
    log.info("recipe %s, %d images, written by %s", recipe.name, count, writer_name)
    with ExitStack() as stack:
        writer = stack.enter_context(
            _open_writer(path, source, recipe, key=key, overwrite=overwrite or is_built)
        )
        session, verifying = stack.enter_context(
            _open_sessions(path, model, verifier, done)
        )
        if session is None:
            results = _write_offline(
                recipe, images, chosen, classify=classify, done=done
            )
        else:
            results = _write_with_model(
                recipe, images, chosen, classify=classify, session=session
            )
        verified: Counter[str] = Counter()
        if verifying is not None:
            # A language model's results are of many images already.
            together = FILTERED_TOGETHER if session is None else 1
            results = _verify(
                verifying, recipe, images, results, together=together, counts=verified
            )
        result = limit_repeats(merge_results(results), chosen.filters)
        log.info(
            "%d questions kept, %d rejected", len(result.kept), len(result.rejected)
        )
        usage = _measure_usage(session, verifying)
        if not result.kept:
            raise StoreError(_explain_empty(source, recipe, result, usage=usage))
        facts = BuildFacts(
            recipe=recipe.name,
            source=source.name,
            out=str(path),
            options={"limit": chosen.limit, "seed": chosen.seed},
            usage=usage,
            verifier=None if verifier is None else verifier.name,
            verified=dict(verified),
        )
        writer.about |= describe_build(recipe, chosen, facts, model)
        _write_samples(writer, images, result, classify)
        _write_rejected(writer.folder / REJECTED, result)
        summary = summarize_build(result, images, build=facts)
        write_build_report(writer.folder, summary, result, images=images)
    return summary


def is_finished(
    recipe: Recipe,
    source: Dataset,
    out: Path,
    options: BuildOptions,
    *,
    model: LanguageModel | None = None,
    verifier: LanguageModel | None = None,
) -> bool:
    """Whether a folder holds the complete result of the same build, and nothing is to be asked again."""
    if not _is_built(out, _build_key(recipe, source, options, (model, verifier))):
        return False
    return not _has_failures(_read_summary(out), model or verifier)


def describe_build(
    recipe: Recipe,
    options: BuildOptions,
    facts: BuildFacts,
    model: LanguageModel | None,
) -> dict[str, str]:
    """What the manifest says about how the questions were made."""
    about = {
        lineage.WRITER: facts.usage.writer,
        lineage.OPTIONS: lineage.describe_options(
            {"limit": options.limit, "per_image": recipe.per_image}
        ),
        lineage.FILTERS: lineage.describe_filters(
            options.filters, options.more_filters
        ),
    }
    if model is None:
        about[lineage.SEED] = str(options.seed)
    else:
        about[lineage.WRITER_MODEL] = model.client.model
        about[lineage.PROMPT] = lineage.hash_prompt(recipe)
        about[lineage.PRICES] = model.price_date
        if model.thinking is not None and model.thinking.effort is not None:
            about[lineage.EFFORT] = model.thinking.effort
    if facts.verifier is not None:
        about[lineage.VERIFIER] = facts.verifier
        about[lineage.VERIFIED] = ", ".join(
            f"{count} {verdict}" for verdict, count in sorted(facts.verified.items())
        )
    return about


def _read_summary(path: Path) -> BuildSummary:
    return msgspec.json.decode((path / SUMMARY).read_bytes(), type=BuildSummary)


def _has_failures(summary: BuildSummary, model: LanguageModel | None) -> bool:
    """Whether requests of a finished build brought nothing and are to be sent again."""
    if model is None or not model.limits.retry_failed:
        return False
    not_checked = summary.build.verified.get(NOT_CHECKED, 0)
    return bool(summary.build.usage.reasons or not_checked)


@contextmanager
def _open_sessions(
    out: Path,
    model: LanguageModel | None,
    verifier: LanguageModel | None,
    done: Done,
) -> Iterator[tuple[ModelSession | None, ModelSession | None]]:
    """The sessions of writer and verifier, with one ledger; None for one that is no language model.

    When they end, answers that are still awaited are recorded before the ledger closes.
    """
    first = model or verifier
    if first is None:
        yield None, None
        return
    # In a ledger of its own, every call is of this build.
    build = "" if first.ledger is None else str(out.resolve())
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger(ledger_path(out, first), build=build))

        def open_session(chosen: LanguageModel) -> ModelSession:
            sender = Sender(
                chosen.client, ledger, price=chosen.price, limits=chosen.limits
            )
            return ModelSession(chosen, stack.enter_context(sender), done)

        writing = None if model is None else open_session(model)
        verifying = writing
        if verifier is not model:
            verifying = None if verifier is None else open_session(verifier)
        yield writing, verifying


def _measure_usage(
    session: ModelSession | None, verifying: ModelSession | None
) -> WriterUsage:
    """What was used; a verifier's calls are counted with the grammar, which makes none."""
    if session is not None:
        return session.usage
    if verifying is None:
        return WriterUsage()
    return msgspec.structs.replace(verifying.usage, writer="grammar", model=None)


def _verify(
    session: ModelSession,
    recipe: Recipe,
    images: SourceImages,
    results: Iterator[FilterResult],
    *,
    together: int,
    counts: Counter[str],
) -> Iterator[FilterResult]:
    """The results with the verdicts of a verifier, which are counted."""
    while group := [*islice(results, together)]:
        verified, verdicts = verify_drafts(
            merge_results(group), images, recipe, session.ask
        )
        counts.update(verdicts)
        yield verified


def merge_results(results: Iterable[FilterResult]) -> FilterResult:
    """What the filters decided about several groups of images, as one result."""
    all_results = [*results] or [apply_filters([], {})]
    return FilterResult(
        kept=tuple(draft for result in all_results for draft in result.kept),
        rejected=tuple(
            rejection for result in all_results for rejection in result.rejected
        ),
        flags=tuple(flag for result in all_results for flag in result.flags),
        counts=tuple(
            msgspec.structs.replace(
                same[0],
                reached=sum(count.reached for count in same),
                rejected=sum(count.rejected for count in same),
                not_checked=sum(count.not_checked for count in same),
            )
            for same in zip(*(result.counts for result in all_results))
        ),
    )


def _write_offline(
    recipe: Recipe,
    images: SourceImages,
    options: BuildOptions,
    *,
    classify: ClassifyWording | None,
    done: Done,
) -> Iterator[FilterResult]:
    """The grammar's questions about each image, filtered; both is done by the engine."""
    work = partial(
        _write_images, SourceFolder.of(images.dataset), recipe, options, classify
    )
    for result in map_chunks(work, range(len(images)), options.engine):
        yield result
        done(1, 0.0)


def _write_images(
    source: SourceFolder,
    recipe: Recipe,
    options: BuildOptions,
    classify: ClassifyWording | None,
    rows: Sequence[int],
) -> list[FilterResult]:
    dataset = source.open()
    results = []
    for row in rows:
        image = SourceImage.of(dataset, row)
        drafts = write_with_grammar(recipe, image, options.seed)
        results.append(
            apply_filters(
                drafts,
                {image.info.id: image},
                options.filters,
                classify=classify,
                leaked=options.leaked,
                more_filters=options.more_filters,
            )
        )
    return results


def _write_with_model(
    recipe: Recipe,
    images: SourceImages,
    options: BuildOptions,
    *,
    classify: ClassifyWording | None,
    session: ModelSession,
) -> Iterator[FilterResult]:
    """The questions of a language model about each image. The filter that asks the model sees many images at once."""
    written = session.write_drafts(
        recipe, images.dataset, range(len(images)), engine=options.engine
    )
    uses_batches = bool(session.model.limits.batch_size)
    together = TOGETHER if uses_batches else FILTERED_TOGETHER
    while group := [*islice(written, together)]:
        yield apply_filters(
            list(chain.from_iterable(group)),
            images,
            options.filters,
            classify=classify,
            ask=session.ask if session.model.check_blind else None,
            leaked=options.leaked,
            more_filters=options.more_filters,
        )


def _open_writer(
    path: Path, source: Dataset, recipe: Recipe, *, key: str, overwrite: bool
) -> DatasetWriter:
    about = {
        **source.manifest.about,
        "recipe": recipe.name,
        "recipe_source": source.name,
        "recipe_version": recipe.prompt_version,
        BUILD_KEY: key,
    }
    root = None if source.image_root is None else source.image_root.resolve()
    return DatasetWriter(
        path,
        name=f"{source.name}-{recipe.name}",
        image_root=root,
        about=about,
        overwrite=overwrite,
    )


def _write_samples(
    writer: DatasetWriter,
    images: SourceImages,
    result: FilterResult,
    classify: ClassifyWording | None,
) -> None:
    """The images that have samples, with all their regions, and the samples, numbered per image."""
    reasons: dict[int, list[str]] = {}
    for flag in result.flags:
        reasons.setdefault(id(flag.draft), []).append(flag.reason)
    embedded = images.dataset.images.table["data"]
    source_tags = merged_tags(images.dataset)
    origins: list[SampleOrigin] = []
    for image_id, group in groupby(result.kept, lambda draft: draft.image_id):
        drafts = [*group]
        cues = _read_cues(drafts, classify)
        image = images[image_id]
        row = images.dataset.images.row[image_id]
        writer.add_image(image.info, image.regions, embedded[row].as_py())
        for number, draft in enumerate(drafts, 1):
            tags = source_tags(row) | cues.get(id(draft), {}) | draft.tags
            flags = reasons.get(id(draft), [])
            if flags:
                tags[FLAGS_TAG] = ",".join(flags)
            tagged = msgspec.structs.replace(draft, tags=tags)
            sample = draft_to_sample(tagged, image, f"{image_id}#{number}")
            writer.add_sample(sample)
            origins.append(_to_origin(sample, flags, writer.about))
    write_provenance(writer.folder / PROVENANCE, origins)


def _read_cues(
    drafts: Sequence[Draft], classify: ClassifyWording | None
) -> dict[int, dict[str, str]]:
    """The words that decide the mask type, as a tag for every draft whose writer did not state them."""
    unread = [
        draft
        for draft in drafts
        if draft.mask_type != "both" and CUES_TAG not in draft.tags
    ]
    if classify is None or not unread:
        return {}
    predictions = classify([draft.question for draft in unread])
    return {
        id(draft): {CUES_TAG: encode_cues(prediction.spans)}
        for draft, prediction in zip(unread, predictions, strict=True)
    }


def _to_origin(
    sample: Sample, flags: list[str], about: Mapping[str, str]
) -> SampleOrigin:
    """Who wrote a sample, as the manifest says."""
    seed = about.get(lineage.SEED)
    return SampleOrigin(
        sample=sample.id,
        writer=about[lineage.WRITER],
        model=about.get(lineage.WRITER_MODEL),
        prompt_sha256=about.get(lineage.PROMPT),
        seed=None if seed is None else int(seed),
        verified=sample.tags.get(VERIFIED_TAG),
        flags=flags,
    )


def _write_rejected(path: Path, result: FilterResult) -> None:
    with open(path, "wb") as file:
        for rejection in result.rejected:
            file.write(msgspec.json.encode(rejection) + b"\n")


def _explain_empty(
    source: Dataset, recipe: Recipe, result: FilterResult, *, usage: WriterUsage | None
) -> str:
    if usage is not None and usage.reasons:
        total = sum(reason.count for reason in usage.reasons)
        named = [
            f"{reason.count} {reason.example.status}, for example about image {reason.example.image_id}: "
            f"{reason.example.reason}"
            for reason in usage.reasons[:NAMED_REASONS]
        ]
        more = len(usage.reasons) - len(named)
        others = f"; {more} more reasons" if more > 0 else ""
        return (
            f"{source.path}: no question was kept; {total} requests brought nothing: {'; '.join(named)}{others}. "
            "--retry-failed asks again"
        )
    reasons = Counter(rejection.reason for rejection in result.rejected).most_common(3)
    why = (
        ", ".join(f"{count} {reason}" for reason, count in reasons)
        or "the writer proposed none"
    )
    hint = ""
    # The grammar does not even propose a question about a region without the masks.
    unproposed = not reasons and recipe.mask_type == "both"
    if unproposed or (reasons and reasons[0][0] == "missing-mask"):
        hint = ". This recipe needs amodal masks; `maskwise build occlude` makes such a dataset from visible masks"
    return f"{source.path}: no question was kept: {why}{hint}"


def _build_key(
    recipe: Recipe,
    source: Dataset,
    options: BuildOptions,
    models: tuple[LanguageModel | None, LanguageModel | None],
) -> str:
    """What a build depends on, hashed; the number of workers is no part of it. models: writer and verifier."""
    model, verifier = models
    writer = (
        (GRAMMAR_VERSION, options.seed)
        if model is None
        else (model.client.provider, model.client.model)
    )
    parts = (
        recipe.prompt_version,
        hash_path(source.path / MANIFEST),
        options.limit,
        writer,
        options.filters,
    )
    # Only a build with further filters, thinking or a verifier names them: the keys of others stay the same.
    further: list[object] = [options.more_filters] if options.more_filters else []
    if model is not None and model.thinking is not None:
        further.append(model.thinking)
    if verifier is not None:
        further.append(verifier.name)
    content = msgspec.json.encode((*parts, options.leaked, *further))
    return hashlib.sha256(content).hexdigest()


def _is_built(path: Path, key: str) -> bool:
    complete = (path / MANIFEST).is_file() and (path / SUMMARY).is_file()
    return complete and read_manifest(path).about.get(BUILD_KEY) == key
