"""Write a release: data, cards, metadata and checksums, in one pass and with the same bytes every time."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from maskwise import __version__
from maskwise.benchmarks import RiskTest
from maskwise.builder.lineage import PROVENANCE, read_provenance
from maskwise.builder.release.card import (
    CardFields,
    card_to_markdown,
    card_to_yaml,
    complete_card,
)
from maskwise.builder.release.croissant import to_croissant
from maskwise.builder.release.dataset_card import to_dataset_card
from maskwise.builder.release.measured import MeasuredFacts, measure
from maskwise.builder.release.splits import RATIOS, assign_splits
from maskwise.errors import ReleaseError
from maskwise.formats.exported_dataset import export_images, to_dataset_fields
from maskwise.formats.huggingface import DATA, SHARD_BYTES, ParquetSplits
from maskwise.formats.release_folder import (
    CARD,
    CHECKSUMS,
    RELEASE,
    VERSION,
    ReleaseManifest,
)
from maskwise.schema import Sample
from maskwise.store import Dataset
from maskwise.store.folder import FileFacts, file_facts, staged

VERSION_PATTERN = r"[0-9][0-9A-Za-z.+-]{0,30}"


class SplitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How images are assigned to splits. `keep_tags`: an image stays where the tag `split` of its samples puts it."""

    ratios: Mapping[str, float] = msgspec.field(default_factory=lambda: dict(RATIOS))
    seed: int = 0
    keep_tags: bool = True

    @property
    def rule(self) -> str:
        """The rule in words."""
        shares = ", ".join(f"{name} {ratio:g}" for name, ratio in self.ratios.items())
        tags = (
            "the tag `split` of their samples and otherwise " if self.keep_tags else ""
        )
        return f"{tags}the hash of the image file ({shares}; seed {self.seed})"


class PlannedRelease(NamedTuple):
    """A dataset with the split of each image and the measured facts; nothing is written yet."""

    dataset: Dataset
    splits: list[str]
    facts: MeasuredFacts
    options: SplitOptions
    with_images: bool


def plan_release(
    dataset: Dataset,
    options: SplitOptions = SplitOptions(),
    *,
    with_images: bool = True,
    threads: int = 1,
) -> PlannedRelease:
    """Assign the images to splits and measure the dataset. with_images: the release will hold the image files."""
    if not len(dataset):
        raise ReleaseError(
            f"{dataset.path} has no questions; there is nothing to release"
        )
    splits = assign_splits(
        dataset, options.ratios, seed=options.seed, keep_tags=options.keep_tags
    )
    facts = measure(
        dataset, splits, order=options.ratios, with_images=with_images, threads=threads
    )
    return PlannedRelease(dataset, splits, facts, options, with_images)


def write_release(
    plan: PlannedRelease,
    out: str | os.PathLike[str],
    card: CardFields,
    *,
    version: str,
    risk_tests: Sequence[RiskTest] = (),
    shard_bytes: int = SHARD_BYTES,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> ReleaseManifest:
    """Write the release folder `out`, which must not exist. The same input gives the same bytes.

    risk_tests: what probes of the dataset found, for its card.

    ReleaseError if a required field of the card is blank. progress(done, total) is called after every image.
    """
    if re.fullmatch(VERSION_PATTERN, version) is None:
        raise ReleaseError(f"a version looks like 1.0.0, not like {version!r}")
    complete, release = complete_card(card, plan.facts, risk_tests)
    with staged(Path(out), overwrite=False) as folder:
        _write_data(
            plan,
            folder,
            {"release": version, "license": release.license},
            shard_bytes=shard_bytes,
            progress=progress,
        )
        _write_provenance(plan.dataset, folder / PROVENANCE)
        manifest = ReleaseManifest(
            schema_version=VERSION,
            name=complete.benchmark_details.name,
            version=version,
            license=release.license,
            created_by=f"maskwise {__version__}",
            images="embedded" if plan.with_images else "referenced",
            counts=plan.facts.counts,
            splits=plan.facts.splits,
            split_rule=plan.options.rule,
            files=_data_files(folder),
            about=dict(plan.dataset.manifest.about),
        )
        documents = {
            "README.md": to_dataset_card(manifest, complete, release),
            "BENCHMARK_CARD.md": card_to_markdown(complete),
            CARD: card_to_yaml(complete, release),
            "croissant.json": _to_json(to_croissant(manifest, complete, release)),
            RELEASE: _to_json(manifest),
        }
        for name, text in documents.items():
            (folder / name).write_text(text, encoding="utf-8")
        _write_checksums(folder)
    return manifest


def _write_data(
    plan: PlannedRelease,
    folder: Path,
    about: dict[str, str],
    *,
    shard_bytes: int,
    progress: Callable[[int, int], object],
) -> None:
    """Write the Parquet files. about: added to what the dataset says about itself."""
    fields = to_dataset_fields(plan.dataset)
    fields = msgspec.structs.replace(fields, about=fields.about | about)
    split_of = dict(zip(plan.dataset.images.id, plan.splits))
    with ParquetSplits(folder / DATA, fields, shard_bytes=shard_bytes) as files:
        images = export_images(plan.dataset, with_images=plan.with_images)
        for done, (file_name, exported) in enumerate(images, 1):
            split = split_of[exported.image.id]
            samples = tuple(_tagged(exported.samples, split))
            files.add(split, file_name, exported._replace(samples=samples))
            progress(done, len(split_of))


def _tagged(samples: tuple[Sample, ...], split: str) -> Iterator[Sample]:
    """The samples with the tag of their split."""
    for sample in samples:
        yield msgspec.structs.replace(sample, tags=sample.tags | {"split": split})


def _write_provenance(dataset: Dataset, path: Path) -> None:
    """Write who wrote, verified and reviewed each sample, as far as the dataset knows."""
    known = read_provenance(dataset.path)
    with open(path, "wb") as file:
        for id in dataset.samples.id:
            line = known.get(id, {"sample": id})
            file.write(msgspec.json.encode(line) + b"\n")


def _data_files(folder: Path) -> dict[str, FileFacts]:
    """Size and checksum of the Parquet files, by path."""
    paths = sorted((folder / DATA).iterdir())
    return {f"{DATA}/{path.name}": file_facts(path) for path in paths}


def _to_json(content: object) -> str:
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _write_checksums(folder: Path) -> None:
    """Write the checksums of all files, last."""
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file()
    )
    lines = [f"{file_facts(folder / name).sha256}  {name}\n" for name in names]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
