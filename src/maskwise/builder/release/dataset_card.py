"""The dataset card of a release for the Hugging Face hub: README.md with its YAML header."""

from pathlib import Path
from typing import Any

import jinja2
import yaml

from maskwise.benchmarks import BenchmarkCard
from maskwise.builder.release.card import ReleaseFacts
from maskwise.builder.release.identifiers import to_language_code
from maskwise.formats.huggingface import DATA, FEATURES
from maskwise.formats.release_folder import ReleaseManifest

TEMPLATE = Path(__file__).with_name("dataset_card.md.jinja")

SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M")
"""The hub's size categories, by powers of ten from a thousand."""


def to_dataset_card(
    manifest: ReleaseManifest, card: BenchmarkCard, release: ReleaseFacts
) -> str:
    """The content of README.md."""
    header = yaml.safe_dump(
        _header(manifest, card, release),
        sort_keys=False,
        allow_unicode=True,
        width=1000,
    )
    environment = jinja2.Environment(
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    body = template.render(
        manifest=manifest,
        card=card,
        release=release,
        split="test" if "test" in manifest.splits else next(iter(manifest.splits)),
        embedded=manifest.images == "embedded",
    )
    return f"---\n{header}---\n\n{body}"


def _header(
    manifest: ReleaseManifest, card: BenchmarkCard, release: ReleaseFacts
) -> dict[str, Any]:
    return {
        "pretty_name": card.benchmark_details.name,
        "license": release.license,
        "language": [
            to_language_code(language) for language in card.benchmark_details.languages
        ],
        "task_categories": ["image-segmentation", "visual-question-answering"],
        "size_categories": [_size_category(manifest.counts["images"])],
        "tags": [
            "reasoning-segmentation",
            "amodal-segmentation",
            "referring-segmentation",
            "maskwise",
        ],
        "configs": [
            {
                "config_name": "default",
                "data_files": [
                    {"split": split, "path": f"{DATA}/{split}-*.parquet"}
                    for split in manifest.splits
                ],
            }
        ],
        "dataset_info": {
            "features": features_to_yaml(FEATURES),
            "splits": [
                {
                    "name": name,
                    "num_bytes": _count_bytes(manifest, name),
                    "num_examples": split.images,
                }
                for name, split in manifest.splits.items()
            ],
        },
    }


def _count_bytes(manifest: ReleaseManifest, split: str) -> int:
    """The size of the files of a split."""
    start = f"{DATA}/{split}-"
    return sum(
        facts.bytes for name, facts in manifest.files.items() if name.startswith(start)
    )


def features_to_yaml(features: dict[str, Any]) -> list[dict[str, Any]]:
    """Features in the form that the header of a dataset card has."""
    return [
        {"name": name} | _feature_to_yaml(feature) for name, feature in features.items()
    ]


def _feature_to_yaml(feature: Any) -> dict[str, Any]:
    if isinstance(feature, list):
        inner = _feature_to_yaml(feature[0])
        return {"list": inner.get("dtype") or inner.get("struct") or inner}
    if feature.get("_type") == "Image":
        return {"dtype": "image"}
    if feature.get("_type") == "Value":
        return {"dtype": feature["dtype"]}
    return {"struct": features_to_yaml(feature)}


def _size_category(images: int) -> str:
    return SIZES[min(max(len(str(images)) - 3, 0), len(SIZES) - 1)]
