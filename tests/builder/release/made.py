"""Small datasets and complete cards for tests of releases."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from maskwise.masks import Mask
from maskwise.schema import Answer, ImageInfo, Phrase, Region, Sample
from maskwise.store import Dataset, DatasetWriter

SIZE = (12, 16)


def rectangle(x: int, y: int, width: int, height: int) -> Mask:
    dense = np.zeros(SIZE, np.bool_)
    dense[y : y + height, x : x + width] = True
    return Mask.from_dense(dense)


def encode(number: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (SIZE[1], SIZE[0]), (number % 256, 90, number // 256)).save(
        buffer, "PNG"
    )
    return buffer.getvalue()


def make_dataset(
    path: Path,
    images: int = 30,
    *,
    tags: Callable[[int], dict[str, str]] = lambda number: {},
    region: Callable[[int], Region] | None = None,
    question: Callable[[int], str] = lambda number: f"the cup {number}",
    data: Callable[[int], bytes] = encode,
    id: Callable[[int], str] = lambda number: f"image{number}",
    first: int = 0,
    embed: bool = True,
    **manifest: Any,
) -> Dataset:
    """Images of one color each, with one occluded cup, its handle and one question."""
    with DatasetWriter(path, name="cups", **manifest) as writer:
        for number in range(first, first + images):
            cup = make_cup(number) if region is None else region(number)
            handle = Region(
                id="handle", name="handle", visible=rectangle(2, 2, 1, 1), part_of="cup"
            )
            info = ImageInfo(
                id=id(number),
                width=SIZE[1],
                height=SIZE[0],
                path=None if embed else f"{number}.png",
                license="CC BY 4.0" if number % 2 else None,
                attribution=f"author {number}",
            )
            writer.add_image(info, (cup, handle), data(number) if embed else None)
            answer = Answer(
                text="the cup", phrases=(Phrase(start=0, stop=7, regions=(0,)),)
            )
            writer.add_sample(
                Sample(
                    id=f"sample{number}",
                    image_id=info.id,
                    question=question(number),
                    mask_type="amodal",
                    targets=(cup,),
                    answer=answer,
                    tags=tags(number),
                )
            )
    return Dataset.open(path)


def make_cup(number: int) -> Region:
    return Region(
        id="cup",
        name="cup",
        visible=rectangle(1, 1, 5, 4),
        amodal=rectangle(1, 1, 5, 6 + number % 3),
        order=2,
    )


def make_card(**release: Any) -> dict[str, dict[str, Any]]:
    """A card with every required field."""
    return {
        "benchmark_details": {
            "name": "Cups",
            "overview": "Questions about cups.",
            "data_type": "images with questions and masks",
            "domains": ["computer vision"],
            "languages": ["English"],
            "resources": ["https://example.org/cups"],
        },
        "purpose_and_intended_users": {
            "goal": "Measure cups.",
            "target_audience": ["researchers"],
            "tasks": ["amodal segmentation"],
            "limitations": "Only cups.",
        },
        "data": {"source": "drawn by a program", "annotation": "by the same program"},
        "methodology": {
            "methods": ["automated metrics"],
            "metrics": ["gIoU"],
            "calculation": "strict",
            "interpretation": "higher is better",
            "validation": "none",
        },
        "targeted_risks": {
            "risk_categories": ["accuracy"],
            "atlas_risks": ["atlas-unrepresentative-data", "atlas-data-bias"],
            "demographic_analysis": "Not applicable: no people are shown",
            "potential_harm": "none known",
        },
        "ethical_and_legal_considerations": {
            "privacy_and_anonymity": "no people are shown",
            "data_licensing": "CC BY 4.0",
            "consent_procedures": "Not applicable: drawn by a program",
            "compliance_with_regulations": "none needed",
        },
        "release": {"license": "cc-by-4.0", "creators": ["The cup group"], **release},
    }
