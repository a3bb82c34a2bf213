"""A small image with regions, and drafts about it, for the tests of filters."""

from typing import Any

import numpy as np

from maskwise.builder.draft import Draft, DraftTarget, SourceImage
from maskwise.schema import ImageInfo, Region

HEIGHT = 100
WIDTH = 200


def box(left: int, top: int, right: int, bottom: int) -> np.ndarray:
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[top:bottom, left:right] = True
    return mask


IMAGE = SourceImage(
    ImageInfo(id="im", width=WIDTH, height=HEIGHT),
    (
        # Half of the cup is hidden, nothing of the table, 95 % of the cat; the bus is cut off by the image border.
        Region(
            id="cup",
            name="cup",
            visible=box(20, 20, 40, 40),
            amodal=box(20, 20, 60, 40),
        ),
        Region(id="handle", name="handle", visible=box(20, 25, 25, 35), part_of="cup"),
        Region(
            id="table",
            name="dining table",
            visible=box(50, 50, 150, 90),
            amodal=box(50, 50, 150, 90),
        ),
        Region(
            id="cat",
            name="cat",
            visible=box(100, 10, 101, 30),
            amodal=box(100, 10, 120, 30),
        ),
        Region(
            id="bus",
            name="bus",
            visible=box(160, 0, 200, 40),
            amodal=box(150, 0, 200, 40),
        ),
        Region(id="pin", name="pin", visible=box(5, 5, 8, 8), amodal=box(5, 5, 8, 8)),
    ),
)
IMAGES = {"im": IMAGE}


def make_draft(
    question: str = "What would I drink tea from?",
    answer: str = "You could use the cup.",
    targets: dict[str, tuple[str, ...]] | None = None,
    **fields: Any,
) -> Draft:
    """A draft that all filters accept, unless changed. targets: regions by phrase."""
    found = {"the cup": ("cup",)} if targets is None else targets
    given = {"image_id": "im", "mask_type": "visible", "kind": "reasoning"} | fields
    return Draft(
        question=question,
        answer=answer,
        targets=tuple(
            DraftTarget(phrase=phrase, regions=regions)
            for phrase, regions in found.items()
        ),
        **given,
    )
