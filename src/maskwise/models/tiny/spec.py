"""What inference and training share: categories, attributes, sizes and thresholds.

The categories are those of the world's scenes; a test compares both. They are repeated here so that inference does
not import the scene generator. The order is the order of the networks' outputs: changing it needs new weights.
"""

from typing import NamedTuple


class CategorySpec(NamedTuple):
    """parts: names of its parts, numbered from 1. name_format: how an object is named by color and category."""

    parts: tuple[str, ...]
    name_format: str = "{color} {noun}"


_HANDLED = "{color}-handled {noun}"

CATEGORIES: dict[str, CategorySpec] = {
    "mug": CategorySpec(("body", "handle")),
    "bowl": CategorySpec(("body", "foot")),
    "bottle": CategorySpec(("body", "neck", "cap")),
    "wine glass": CategorySpec(("bowl", "stem", "base")),
    "teapot": CategorySpec(("body", "handle", "spout", "lid")),
    "pan": CategorySpec(("body", "handle")),
    "knife": CategorySpec(("blade", "handle"), _HANDLED),
    "fork": CategorySpec(("tines", "handle"), _HANDLED),
    "spoon": CategorySpec(("bowl", "handle"), _HANDLED),
    "candle": CategorySpec(("wax", "flame", "holder")),
    "apple": CategorySpec(("flesh", "stem", "leaf")),
    "cupcake": CategorySpec(("icing", "wrapper")),
    "scissors": CategorySpec(("blades", "handles"), _HANDLED),
    "hammer": CategorySpec(("head", "handle"), _HANDLED),
    "book": CategorySpec(("cover", "pages", "spine")),
    "laptop": CategorySpec(("screen", "keyboard")),
    "clock": CategorySpec(("face", "hands", "frame", "feet")),
    "camera": CategorySpec(("body", "lens", "flash", "button")),
    "lamp": CategorySpec(("shade", "stem", "base")),
    "plant": CategorySpec(("pot", "leaves"), "{noun} in the {color} pot"),
    "box": CategorySpec(("body", "lid")),
    "teddy bear": CategorySpec(("head", "ears", "body", "arms", "legs")),
    "hat": CategorySpec(("crown", "brim", "band")),
    "toy car": CategorySpec(("body", "windows", "wheels")),
    "chair": CategorySpec(("seat", "back", "legs")),
    "table": CategorySpec(("top", "legs")),
    "sofa": CategorySpec(("seat", "back", "arms", "feet")),
    "bucket": CategorySpec(("body", "handle")),
    "broom": CategorySpec(("bristles", "handle")),
    "umbrella": CategorySpec(("canopy", "pole", "handle")),
    "guitar": CategorySpec(("body", "neck", "head")),
    "suitcase": CategorySpec(("body", "handle", "wheels")),
    "television": CategorySpec(("screen", "frame", "stand")),
}
CATEGORY_NAMES = tuple(CATEGORIES)
COLOR_NAMES = (
    "red",
    "orange",
    "yellow",
    "green",
    "blue",
    "purple",
    "pink",
    "brown",
    "white",
    "black",
    "grey",
)
MATERIAL_NAMES = ("ceramic", "plastic", "glass", "metal", "wooden", "fabric")

ATTRIBUTE_SIZES = (len(CATEGORY_NAMES), len(COLOR_NAMES), len(MATERIAL_NAMES))
"""Number of categories, colors and materials: the three classifications of an object."""

MAX_PARTS = max(len(category.parts) for category in CATEGORIES.values())

IMAGE_SIZE = 160
"""Images are resized to a square of this side."""

STRIDE = 4
"""Pixels per cell of the heatmap."""

FINE_CHANNELS = 48
COARSE_CHANNELS = 48
"""Channels of the feature maps at strides 2 and 4."""

ROI_SIZE = 14
"""Cells along each side of a region of interest."""

ROI_MASK_SIZE = 2 * ROI_SIZE
"""Cells along each side of the first masks of a box, by the RoI head."""

MASK_SIZE = 2 * ROI_MASK_SIZE
"""Cells along each side of the final masks, by the mask head. Drawn through a grid of 28 cells, ground-truth masks of
objects have an IoU of .91 with themselves and those of parts .83; through one of 56 cells .98 and .96.
"""

BOX_MARGIN = 0.06
"""How much a box is expanded on each side before the RoI head sees it, as a fraction of the box."""

MAX_OBJECTS = 14
"""Detections of one image, best first."""

MIN_HEATMAP_SCORE = 0.25
"""Lowest peak of the heatmap that is an object."""

NMS_THRESHOLD = 0.5
"""Of two detections, the one with the lower score is dropped if more than this fraction of the smaller visible mask
is shared.
"""

AMODAL_THRESHOLD = 1.0
"""Logit from which a pixel outside the visible mask belongs to the amodal mask. Training weights occluded pixels three
times, which raises their logits.
"""

TARGET_THRESHOLD = 0.4
"""An object or part is a target of a question if the grounder gives it at least this probability."""

UNARY_MEASURES = 11
PAIRWISE_FEATURES = 6
UNARY_FEATURES = sum(ATTRIBUTE_SIZES) + UNARY_MEASURES + 2 * MAX_PARTS
"""Length of the feature vectors of an object and of a pair of objects."""

WORD_BUCKETS = 4096
TRIGRAM_BUCKETS = 4096
"""Rows of the two embedding tables, bucket 0 for padding included."""

MAX_TOKENS = 40
"""Words and marks of a question that are read."""

MAX_TRIGRAMS = 8
"""Trigrams of a word that are read: those of its first eight letters."""


def part_count(category: int) -> int:
    """Number of parts of a category, by its index."""
    return len(CATEGORIES[CATEGORY_NAMES[category]].parts)
