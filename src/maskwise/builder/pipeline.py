"""Build a dataset: a writer's questions about annotated images, filtered, with a summary and a report.

    summary = build_dataset(find_recipe("r2sm"), Dataset.open("cocoa_val"), "r2sm_val")

Without a language model the grammar writes. With one, requests go through a ledger beside the output
(`OUT.ledger.sqlite`), so that a repeated command sends nothing that was answered. Beside its tables the dataset folder
holds

    rejected.jsonl   drafts that a filter rejected, with reason codes
    build.json       the summary: yield per filter, cost, statistics
    build.html       the same for people, with examples

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

from maskwise.builder.build_report import SUMMARY, write_build_report
from maskwise.builder.build_summary import (
    BuildFacts,
    BuildSummary,
    WriterUsage,
    summarize_build,
)
from maskwise.builder.draft import SourceImage, draft_to_sample
from maskwise.builder.filters import (
    ClassifyWording,
    FilterOptions,
    FilterResult,
    apply_filters,
)
from maskwise.builder.grammar_writer import write_with_grammar
from maskwise.builder.language_model import (
    Done,
    LanguageModel,
    ModelSession,
    ledger_path,
)
from maskwise.builder.merge import merged_tags
from maskwise.builder.recipe import Recipe
from maskwise.builder.source_images import SourceFolder, SourceImages
from maskwise.engines import EngineOptions, map_chunks
from maskwise.errors import StoreError
from maskwise.runs.files import hash_path
from maskwise.store import Dataset, DatasetWriter
from maskwise.store.folder import MANIFEST, read_manifest
from maskwise.writers.complete import TOGETHER, Sender
from maskwise.writers.ledger import Ledger

log = logging.getLogger(__name__)

REJECTED = "rejected.jsonl"
FLAGS_TAG = "flags"
BUILD_KEY = "build_key"

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
    classify: ClassifyWording | None = None,
    overwrite: bool = False,
    done: Done = lambda images, cost: None,
) -> BuildSummary:
    """Write a dataset folder with the questions of a recipe about the images of a source.

    A folder that the same build wrote before is left as it is, unless requests that failed are to be sent again. model:
    None for the grammar. classify: reads the mask type from questions, for flags. done: called with the number of
    images just written about, and the cost so far.
    """
    chosen = options or BuildOptions()
    path = Path(out)
    refuse_same_folder(source, path)
    count = (
        len(source.images)
        if chosen.limit is None
        else min(chosen.limit, len(source.images))
    )
    images = SourceImages(source, count)
    key = _build_key(recipe, source, chosen, model)
    is_built = _is_built(path, key)
    if is_built and not overwrite:
        log.info("%s is the complete result of the same build", path)
        summary = _read_summary(path)
        if model is None or not _has_failures(summary, model):
            return summary
    writer_name = "the grammar" if model is None else model.client.model
    log.info("recipe %s, %d images, written by %s", recipe.name, count, writer_name)
    with ExitStack() as stack:
        writer = stack.enter_context(
            _open_writer(path, source, recipe, key=key, overwrite=overwrite or is_built)
        )
        session = (
            None
            if model is None
            else stack.enter_context(_open_session(model, path, done))
        )
        if session is None:
            results = _write_offline(
                recipe, images, chosen, classify=classify, done=done
            )
        else:
            results = _write_with_model(
                recipe, images, chosen, classify=classify, session=session
            )
        result = merge_results(results)
        log.info(
            "%d questions kept, %d rejected", len(result.kept), len(result.rejected)
        )
        if not result.kept:
            usage = None if session is None else session.usage
            raise StoreError(_explain_empty(source, result, usage))
        _write_samples(writer, images, result)
        _write_rejected(writer.folder / REJECTED, result)
        facts = BuildFacts(
            recipe=recipe.name,
            source=source.name,
            out=str(path),
            options={"limit": chosen.limit, "seed": chosen.seed},
            usage=WriterUsage() if session is None else session.usage,
        )
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
) -> bool:
    """Whether a folder holds the complete result of the same build, and nothing is to be asked again."""
    if not _is_built(out, _build_key(recipe, source, options, model)):
        return False
    return model is None or not _has_failures(_read_summary(out), model)


def refuse_same_folder(source: Dataset, out: Path) -> None:
    """StoreError if a result would replace the dataset it is made from, or lie inside it."""
    folder = source.path.resolve()
    target = out.resolve()
    if target == folder or folder in target.parents or target in folder.parents:
        raise StoreError(
            f"--out {out}: the result would replace or enclose the dataset it is made from, {source.path}; "
            "choose another folder"
        )


def _read_summary(path: Path) -> BuildSummary:
    return msgspec.json.decode((path / SUMMARY).read_bytes(), type=BuildSummary)


def _has_failures(summary: BuildSummary, model: LanguageModel) -> bool:
    """Whether requests of a finished build brought nothing and are to be sent again."""
    return model.limits.retry_failed and bool(summary.build.usage.reasons)


@contextmanager
def _open_session(
    model: LanguageModel, out: Path, done: Done
) -> Iterator[ModelSession]:
    """A session with its ledger. When it ends, answers that are still awaited are recorded before the ledger closes."""
    # In a ledger of its own, every call is of this build.
    build = "" if model.ledger is None else str(out.resolve())
    with (
        Ledger(ledger_path(out, model), build=build) as ledger,
        Sender(model.client, ledger, price=model.price, limits=model.limits) as sender,
    ):
        yield ModelSession(model, sender, done)


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
    writer: DatasetWriter, images: SourceImages, result: FilterResult
) -> None:
    """The images that have samples, with all their regions, and the samples, numbered per image."""
    reasons: dict[int, list[str]] = {}
    for flag in result.flags:
        reasons.setdefault(id(flag.draft), []).append(flag.reason)
    embedded = images.dataset.images.table["data"]
    source_tags = merged_tags(images.dataset)
    for image_id, drafts in groupby(result.kept, lambda draft: draft.image_id):
        image = images[image_id]
        row = images.dataset.images.row[image_id]
        writer.add_image(image.info, image.regions, embedded[row].as_py())
        for number, draft in enumerate(drafts, 1):
            tags = source_tags(row) | draft.tags
            if id(draft) in reasons:
                tags[FLAGS_TAG] = ",".join(reasons[id(draft)])
            tagged = msgspec.structs.replace(draft, tags=tags)
            writer.add_sample(draft_to_sample(tagged, image, f"{image_id}#{number}"))


def _write_rejected(path: Path, result: FilterResult) -> None:
    with open(path, "wb") as file:
        for rejection in result.rejected:
            file.write(msgspec.json.encode(rejection) + b"\n")


def _explain_empty(
    source: Dataset, result: FilterResult, usage: WriterUsage | None
) -> str:
    if usage is not None and usage.reasons:
        failed = usage.reasons[0]
        return (
            f"{source.path}: no question was kept: {failed.count} of the requests brought nothing, for example about "
            f"image {failed.example.image_id} ({failed.example.status}): {failed.example.reason}; "
            "--retry-failed asks again"
        )
    reasons = Counter(rejection.reason for rejection in result.rejected).most_common(3)
    why = (
        ", ".join(f"{count} {reason}" for reason, count in reasons)
        or "the writer proposed none"
    )
    hint = ""
    if reasons and reasons[0][0] == "missing-mask":
        hint = ". This recipe needs amodal masks; `maskwise build occlude` makes such a dataset from visible masks"
    return f"{source.path}: no question was kept: {why}{hint}"


def _build_key(
    recipe: Recipe, source: Dataset, options: BuildOptions, model: LanguageModel | None
) -> str:
    """What a build depends on, hashed; the number of workers is no part of it."""
    writer = (
        ("grammar", options.seed)
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
    # Only a build with further filters names them: the keys of others stay the same.
    more_filters = [options.more_filters] if options.more_filters else []
    content = msgspec.json.encode((*parts, options.leaked, *more_filters))
    return hashlib.sha256(content).hexdigest()


def _is_built(path: Path, key: str) -> bool:
    complete = (path / MANIFEST).is_file() and (path / SUMMARY).is_file()
    return complete and read_manifest(path).about.get(BUILD_KEY) == key
