"""Facets: the properties of questions and targets by which probes group samples.

Each facet gives every sample one value, so that the same facets serve to compare scores by group
(`output-bias`) and to compare two datasets (`unrepresentative-data`).
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from maskwise.arrays import Int64Array
from maskwise.language.intent import classify_intent
from maskwise.language.lexicons import word_set
from maskwise.language.tokens import split_words
from maskwise.language.word_forms import to_singular
from maskwise.masks import Masks
from maskwise.protocols import GroundTruth
from maskwise.protocols.ground_truth import VISIBLE
from maskwise.protocols.slices import band_codes, most_frequent, slice_truth
from maskwise.store import Codes, Dataset

NONE = "none"
"""The value of a sample without targets, for facets of targets."""

SIZE_EDGES = (0.01, 0.05, 0.2)
SIZE_NAMES = ("under 1 %", "1-5 %", "5-20 %", "over 20 %")
"""The area of the targets as a share of the image. COCO's bands in pixels would differ between
datasets whose images have other sizes."""

CENTER = 1 / 6
"""A target is central if the center of its box is within this distance from that of the image, as
a share of width and height: the central one of nine cells."""

LENGTH_EDGES = (6, 11, 21)
LENGTH_NAMES = ("to 5 words", "6-10 words", "11-20 words", "over 20 words")

QUESTION_WORDS = word_set("what which where who whose whom how why when")
AUXILIARIES = word_set(
    "is are was were do does did can could would will should has have may might"
)
COMMANDS = word_set(
    "segment mark show find outline draw highlight give point select locate identify shade trace "
    "cut mask color paint blur pick circle indicate predict measure return output please tell"
)

RARE_SHARES = (1 / 3, 2 / 3)
FREQUENCY_NAMES = ("rare", "middle", "frequent")
"""A third of the questions with targets each, by how often their category is asked about."""

MAX_TAG_VALUES = 20
"""Tags with more values are no facet: almost all of their groups would be too small to test."""

TITLES = {
    "category": "category",
    "frequency": "frequency of the category",
    "area": "size in the image",
    "position": "position in the image",
    "border": "touches the border",
    "occlusion": "occlusion",
    "mask_type": "mask type asked for",
    "targets": "number of targets",
    "level": "objects or parts",
    "form": "form of the question",
    "length": "length of the question",
    "cue": "wording of the mask type",
}
"""What the facets are called; a tag has its own name."""


def describe_samples(dataset: Dataset, *, threads: int = 1) -> dict[str, Codes]:
    """The facets of every sample, in the order of TITLES, and then the tags of the dataset."""
    truth = GroundTruth.from_dataset(dataset)
    slices = slice_truth(truth, threads=threads)
    category = describe_categories(truth)
    union = union_of_targets(truth)
    facets = {
        "category": category,
        "frequency": _frequencies(category),
        "area": _areas(truth, union),
        "position": _positions(truth, union),
        "border": _borders(truth, union),
        "occlusion": slices["occlusion"],
        "mask_type": slices["mask_type"],
        "targets": slices["targets"],
        "level": slices["level"],
    }
    facets |= describe_questions(dataset.samples.question)
    for name in truth.tags:
        codes = slices.get(name)
        if name in facets or codes is None:
            continue
        if 1 < len(codes.names) <= MAX_TAG_VALUES:
            facets[name] = codes
    return facets


def describe_questions(questions: Sequence[str]) -> dict[str, Codes]:
    """The facets that the words of a question have: form, length, wording of the mask type."""
    lengths = np.array([len(split_words(text)) for text in questions], np.int64)
    return {
        "form": encode_texts([question_form(text) for text in questions]),
        "length": band_codes(lengths, LENGTH_EDGES, LENGTH_NAMES),
        "cue": encode_texts([intent.cue for intent in classify_intent(questions)]),
    }


def question_form(text: str) -> str:
    """`question`, `yes or no`, `command` or `phrase`, by the first words and the end mark."""
    words = split_words(text)
    first = words[0] if words else ""
    if first in QUESTION_WORDS:
        return "question"
    if first in AUXILIARIES:
        return "yes or no"
    if first in COMMANDS:
        return "command"
    return "question" if text.rstrip().endswith("?") else "phrase"


def describe_categories(truth: GroundTruth) -> Codes:
    """The category of the targets, `several` where they differ.

    Names that are made up for one object ("green bowl", "foot of the black bowl") are reduced to
    their noun, where hardly any name occurs twice.
    """
    codes, names = truth.names
    used = Counter(codes.tolist())
    is_repeated = len(used) * 2 <= len(codes)
    short = [str(name) if is_repeated else head_noun(str(name)) for name in names]
    values = []
    for first, stop in zip(truth.offsets[:-1].tolist(), truth.offsets[1:].tolist()):
        kinds = {short[code] for code in codes[first:stop].tolist()}
        values.append(
            NONE if not kinds else "several" if len(kinds) > 1 else min(kinds)
        )
    encoded = encode_texts(values)
    labels = np.array(encoded.names, dtype=object)
    return most_frequent(encoded.codes.astype(np.int64), labels)


def head_noun(name: str) -> str:
    """The noun of a name: "bowl" of "green bowl", "foot" of "foot of the black bowl"."""
    whole = name.partition(" of ")[0].partition(" in ")[0]
    words = whole.split() or [name]
    return to_singular(words[-1].lower())


def union_of_targets(truth: GroundTruth) -> Masks:
    """The requested masks of each sample's targets as one mask; the other kind where it is unknown."""
    wants_visible = (truth.requested_type == VISIBLE)[truth.sample]
    use_visible = np.where(wants_visible, truth.visible.present, ~truth.amodal.present)
    batches = Masks.concat([truth.visible.masks, truth.amodal.masks])
    rows = np.arange(len(use_visible)) + np.where(use_visible, 0, len(use_visible))
    known = truth.visible.present | truth.amodal.present
    kept = np.concatenate([[0], np.cumsum(known)])
    return batches[rows[known]].merge(kept[truth.offsets], truth.image_size)


def encode_texts(values: Sequence[str]) -> Codes:
    """Texts as codes, names in alphabetical order."""
    names = sorted(set(values))
    place = {name: code for code, name in enumerate(names)}
    return Codes(np.array([place[value] for value in values], np.int32), tuple(names))


def _frequencies(category: Codes) -> Codes:
    """Thirds of the questions with one category, by how often that category is asked about."""
    counts = np.bincount(category.codes, minlength=len(category.names))
    is_named = np.array([name not in (NONE, "several") for name in category.names])
    named_rows = is_named[category.codes]
    frequency: Int64Array = counts[category.codes]
    ordered = np.sort(frequency[named_rows])
    edges = []
    for share in RARE_SHARES:
        place = min(int(share * len(ordered)), len(ordered) - 1)
        edges.append(float(ordered[place]) if len(ordered) else 0.0)
    band = np.searchsorted(edges, frequency, side="right").astype(np.int32)
    codes = np.where(named_rows, band, len(FREQUENCY_NAMES))
    return Codes(codes.astype(np.int32), (*FREQUENCY_NAMES, NONE))


def _areas(truth: GroundTruth, union: Masks) -> Codes:
    pixels = truth.image_size.astype(np.int64).prod(1)
    share = union.area() / np.maximum(pixels, 1)
    bands = band_codes(share, SIZE_EDGES, SIZE_NAMES)
    return _only_with_targets(truth, bands)


def _positions(truth: GroundTruth, union: Masks) -> Codes:
    """Center, or the side to which the center of the box is displaced most."""
    box = union.box()
    height = np.maximum(truth.image_size[:, 0], 1)
    width = np.maximum(truth.image_size[:, 1], 1)
    right = (box[:, 0] + box[:, 2] / 2) / width - 0.5
    down = (box[:, 1] + box[:, 3] / 2) / height - 0.5
    is_central = np.maximum(np.abs(right), np.abs(down)) < CENTER
    is_sideways = np.abs(right) >= np.abs(down)
    choices = [is_central, is_sideways & (right < 0), is_sideways, down < 0]
    codes = np.select(choices, [0, 1, 2, 3], 4).astype(np.int32)
    names = ("center", "left", "right", "top", "bottom")
    return _only_with_targets(truth, Codes(codes, names))


def _borders(truth: GroundTruth, union: Masks) -> Codes:
    box = union.box()
    touches = (box[:, 0] <= 0) | (box[:, 1] <= 0)
    touches |= box[:, 0] + box[:, 2] >= truth.image_size[:, 1]
    touches |= box[:, 1] + box[:, 3] >= truth.image_size[:, 0]
    return _only_with_targets(truth, Codes(touches.astype(np.int32), ("no", "yes")))


def _only_with_targets(truth: GroundTruth, values: Codes) -> Codes:
    """The values, and NONE for samples without targets."""
    codes = np.where(truth.counts > 0, values.codes, len(values.names))
    return Codes(codes.astype(np.int32), (*values.names, NONE))


def facet_title(name: str) -> str:
    """What a facet is called."""
    return TITLES.get(name, name.replace("_", " "))
