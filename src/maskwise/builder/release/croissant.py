"""Croissant metadata (mlcommons.org/croissant, version 1.0): files with checksums, and one record set per split.

It is written without a library, so that a release needs none; the tests validate it with mlcroissant and read the
records through it.
"""

from pathlib import Path
from typing import Any

import msgspec

from maskwise.benchmarks import BenchmarkCard
from maskwise.builder.release.card import ReleaseFacts
from maskwise.formats.huggingface import DATA, FEATURES
from maskwise.formats.release_folder import ReleaseManifest

Json = dict[str, Any]

CONTEXT = Path(__file__).with_name("croissant_context.json")
CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
PARQUET = "application/x-parquet"
TYPES = {"string": "sc:Text", "int32": "sc:Integer", "bool": "sc:Boolean"}

ABOUT = {
    "image": "The image.",
    "file_name": "The image's file name, or its path where images are not embedded.",
    "id": "The image's id.",
    "license": "The license of this image, where its source states one.",
    "attribution": "The author or page to name, where the source states it.",
    "regions": "Objects and parts with masks as COCO RLE: size (height, width) and counts.",
    "samples": "Questions with mask type, target regions and answer.",
}
"""Descriptions of columns."""


def to_croissant(
    manifest: ReleaseManifest, card: BenchmarkCard, release: ReleaseFacts
) -> Json:
    """The content of `croissant.json`."""
    content: Json = {
        "@context": msgspec.json.decode(CONTEXT.read_bytes()),
        "@type": "sc:Dataset",
        "name": manifest.name,
        "description": card.benchmark_details.overview,
        "conformsTo": CONFORMS_TO,
        "license": release.license,
        "creator": [
            {"@type": "sc:Organization", "name": name} for name in release.creators
        ],
        "version": manifest.version,
        "keywords": card.purpose_and_intended_users.tasks,
        "inLanguage": card.benchmark_details.languages,
        "distribution": _distribution(manifest),
        "recordSet": [_record_set(split, manifest) for split in manifest.splits],
    }
    optional = {
        "url": release.homepage,
        "citeAs": release.citation,
        "datePublished": release.date_published,
    }
    return content | {name: value for name, value in optional.items() if value}


def _distribution(manifest: ReleaseManifest) -> list[Json]:
    """Every data file with its checksum, and the files of each split as a set."""
    files: list[Json] = [
        {
            "@type": "cr:FileObject",
            "@id": name,
            "name": name,
            "contentUrl": name,
            "contentSize": f"{facts.bytes} B",
            "encodingFormat": PARQUET,
            "sha256": facts.sha256,
        }
        for name, facts in manifest.files.items()
        if name.startswith(f"{DATA}/")
    ]
    sets: list[Json] = [
        {
            "@type": "cr:FileSet",
            "@id": f"{split}-files",
            "name": f"{split}-files",
            "encodingFormat": PARQUET,
            "includes": f"{DATA}/{split}-*.parquet",
        }
        for split in manifest.splits
    ]
    return files + sets


def _record_set(split: str, manifest: ReleaseManifest) -> Json:
    columns = {name: feature for name, feature in FEATURES.items() if name != "image"}
    fields = [_field(split, name, feature) for name, feature in columns.items()]
    if manifest.images == "embedded":
        fields.insert(
            0, _leaf(split, "image", "sc:ImageObject", column="image", path="bytes")
        )
    return {
        "@type": "cr:RecordSet",
        "@id": split,
        "name": split,
        "description": f"{manifest.splits[split].images} images with {manifest.splits[split].questions} questions.",
        "field": fields,
    }


def _field(split: str, name: str, feature: Any) -> Json:
    """A column: a value, or a list of structs whose leaves become fields of their own."""
    if not isinstance(feature, list):
        return _leaf(split, name, TYPES[feature["dtype"]], column=name)
    leaves = [
        _leaf(split, f"{name}/{path.replace('.', '_')}", kind, column=name, path=path)
        for path, kind in _leaves(feature[0])
    ]
    return {
        "@type": "cr:Field",
        "@id": f"{split}/{name}",
        "name": name,
        "description": ABOUT[name],
        "repeated": True,
        "subField": leaves,
    }


def _leaves(feature: Any, before: str = "") -> list[tuple[str, str]]:
    """Paths and types of the values in a struct; of lists of structs (phrases, tags) there are none."""
    leaves: list[tuple[str, str]] = []
    for name, inner in feature.items():
        value = inner[0] if isinstance(inner, list) else inner
        if "dtype" in value:
            leaves.append((before + name, TYPES[value["dtype"]]))
        elif not isinstance(inner, list):
            leaves += _leaves(inner, f"{before}{name}.")
    return leaves


def _leaf(
    split: str, name: str, kind: str, *, column: str, path: str | None = None
) -> Json:
    source: Json = {"fileSet": {"@id": f"{split}-files"}, "extract": {"column": column}}
    if path is not None:
        source["transform"] = {"jsonPath": path}
    field: Json = {
        "@type": "cr:Field",
        "@id": f"{split}/{name}",
        "name": name.rpartition("/")[2],
    }
    if name in ABOUT:
        field["description"] = ABOUT[name]
    return field | {"dataType": kind, "source": source}
