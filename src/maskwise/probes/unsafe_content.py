"""Probe `unsafe-content`: what someone should look at before a dataset is published.

It reads the texts of any dataset, built or downloaded, and says how many images show people,
faces and text: by annotation, or people by the detector of `photo` if its weights are here.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from maskwise.arrays import BoolArray, Int64Array
from maskwise.downloads.local_files import find_all_weights
from maskwise.errors import DownloadError
from maskwise.language.lexicons import word_set
from maskwise.language.tokens import split_words
from maskwise.models.photo.detector import YoloxDetector
from maskwise.probes.context import ProbeContext
from maskwise.probes.probe import Probe
from maskwise.probes.severity import grade, state_edges, worst
from maskwise.probes.unsafe_wording import find_unsafe_wording, names_person
from maskwise.runs.probe_results import (
    Cell,
    Measure,
    ProbeFinding,
    ProbeTable,
    Severity,
    Threshold,
)
from maskwise.schema import Sample
from maskwise.store import Dataset
from maskwise.terminal import count_noun

FLAGGED: tuple[tuple[float, Severity], ...] = (
    (1e-9, "low"),
    (0.001, "medium"),
    (0.01, "high"),
)
"""Shares of samples with unsafe wording: any, one in a thousand, one in a hundred."""

FACE_WORDS = word_set("face head")
"""Names of parts that are faces if a person has them; clocks and toys have them too."""

PORTRAIT_WORDS = word_set("portrait selfie")
TEXT_WORDS = word_set(
    "text sign plate letter word banner label poster newspaper billboard caption logo"
)
"""Words of region names that alone tell of faces and of text in an image."""

DETECTOR = "yolox_nano.onnx"
DETECTED_IMAGES = 200
QUICK_DETECTED_IMAGES = 20
"""Images that the detector looks at, at the most: enough for a share within 7 points."""

SURE = 0.5
"""Score from which on a detected person counts."""

MAX_TEXT = 160
"""Characters of a flagged text that are shown."""


class _Flagged(NamedTuple):
    sample: str
    kind: str
    words: str
    text: str


class _Shown(NamedTuple):
    """How many images show something. share: None where that could not be measured."""

    what: str
    share: float | None
    how: str


def run_unsafe_content(context: ProbeContext) -> ProbeFinding:
    """Look through all texts, and count images with people, faces and text."""
    dataset = context.dataset
    flagged = [flag for sample in dataset for flag in _flag(sample)]
    samples = len({item.sample for item in flagged})
    share = samples / max(1, len(dataset))
    shown = _count_shown(dataset, quick=context.quick)
    people = shown[0].share
    severities = [grade(share, FLAGGED)]
    if people:
        severities.append("low")
    return ProbeFinding(
        finding=_sentence(samples, len(dataset), people),
        severity=worst(severities),
        done=(
            f"Questions, answers and names of {count_noun(len(dataset), 'sample')} were "
            "searched for listed words; images were counted by annotation or detector."
        ),
        measures=[
            Measure(
                name="flagged",
                label="samples with unsafe wording",
                value=share,
                meaning="share of all samples",
            ),
            *(
                Measure(
                    name=item.what,
                    label=f"images with {item.what}",
                    value=item.share,
                    meaning=item.how,
                )
                for item in shown
            ),
        ],
        tables=_tables(flagged),
        notes=[
            f"Images with {item.what}: not measured; {item.how}."
            for item in shown
            if item.share is None
        ],
    )


def _flag(sample: Sample) -> list[_Flagged]:
    """Unsafe wording in the texts of a sample, each finding once."""
    texts = [sample.question]
    if sample.answer is not None:
        texts.append(sample.answer.text)
    texts += [region.name for region in sample.targets]
    flagged: dict[tuple[str, str], _Flagged] = {}
    for text in texts:
        for kind, words in find_unsafe_wording(text):
            item = _Flagged(sample.id, kind, words, text[:MAX_TEXT])
            flagged.setdefault((kind, words), item)
    return list(flagged.values())


def _sentence(flagged: int, samples: int, people: float | None) -> str:
    sentence = (
        f"{count_noun(flagged, 'sample')} of {samples} should be read before a release"
    )
    if not flagged:
        sentence = f"No unsafe wording was found in {count_noun(samples, 'sample')}"
    if people is None:
        return f"{sentence}; whether images show people could not be measured."
    return f"{sentence}; {people:.0%} of the images show people."


def _tables(flagged: list[_Flagged]) -> list[ProbeTable]:
    if not flagged:
        return []
    counts: dict[str, int] = {}
    for item in flagged:
        counts[item.kind] = counts.get(item.kind, 0) + 1
    kinds: list[list[Cell]] = [[kind, count] for kind, count in sorted(counts.items())]
    texts: list[list[Cell]] = [list(item) for item in flagged]
    return [
        ProbeTable(
            title="By kind",
            columns=["kind", "texts"],
            units=["text", "count"],
            rows=kinds,
        ),
        ProbeTable(
            title="Texts to read",
            columns=["sample", "kind", "words", "text"],
            units=["text", "text", "text", "text"],
            rows=texts,
        ),
    ]


# -- images


def _count_shown(dataset: Dataset, *, quick: bool) -> list[_Shown]:
    """Shares of images with people, faces and text; people come first."""
    asked = np.unique(dataset.samples.image)

    def share(images: Int64Array) -> float:
        return float(np.isin(asked, images).mean())

    how = "by annotation; others may show some that are not annotated"
    people = share(images_with(dataset, names_person))
    shown = [_Shown("people", people, how)]
    if not people:
        shown = [_detect_people(dataset, quick=quick)]
    with_text = images_with(dataset, partial(_has_word, TEXT_WORDS))
    for what, images in (("faces", _images_with_faces(dataset)), ("text", with_text)):
        named = share(images)
        if named:
            shown.append(_Shown(what, named, how))
        else:
            why = "nothing of that kind is annotated, and there is no detector for it"
            shown.append(_Shown(what, None, why))
    return shown


def _has_word(words: frozenset[str], name: str) -> bool:
    return not words.isdisjoint(split_words(name))


def images_with(dataset: Dataset, is_named: Callable[[str], bool]) -> Int64Array:
    """Rows of the images that have a region with such a name."""
    chosen = _regions_named(dataset, is_named)
    return np.unique(dataset.regions.image[chosen]).astype(np.int64)


def _regions_named(dataset: Dataset, is_named: Callable[[str], bool]) -> BoolArray:
    codes, known = dataset.regions.name
    chosen = np.array([is_named(name or "") for name in known], np.bool_)
    return chosen[codes] if len(chosen) else np.zeros(len(codes), np.bool_)


def _images_with_faces(dataset: Dataset) -> Int64Array:
    """Rows of the images with a face or head of a person, by its name or as a part of one."""
    of_person = _regions_named(dataset, names_person)
    whole = dataset.regions.part_of
    count = -1
    # Until nothing is added: a face may be a part of a head, which is a part of a person.
    while count != of_person.sum():
        count = of_person.sum()
        of_person |= whole.present & of_person[whole.values]
    is_face = of_person & _regions_named(dataset, partial(_has_word, FACE_WORDS))
    is_face |= _regions_named(dataset, partial(_has_word, PORTRAIT_WORDS))
    return np.unique(dataset.regions.image[is_face]).astype(np.int64)


def _detect_people(dataset: Dataset, *, quick: bool) -> _Shown:
    """The share of images with a detected person, of some images."""
    try:
        (path,) = find_all_weights([DETECTOR])
    except DownloadError:
        how = f"nobody is annotated, and the detector is not here (maskwise get {DETECTOR})"
        return _Shown("people", None, how)
    detector = YoloxDetector(path)
    asked = np.unique(dataset.samples.image).tolist()
    most = QUICK_DETECTED_IMAGES if quick else DETECTED_IMAGES
    # Evenly over the dataset, which may be sorted.
    chosen = asked[:: max(1, -(-len(asked) // most))]
    with_people = 0
    for row in chosen:
        detections = detector.detect(dataset.open_image(row))
        names = detections.take(detections.scores >= SURE).names()
        with_people += "person" in names
    how = f"by a detector in {count_noun(len(chosen), 'image')}"
    return _Shown("people", with_people / max(1, len(chosen)), how)


UNSAFE_CONTENT = Probe(
    name="unsafe-content",
    title="Safety and privacy of the data: wording, people, faces, text",
    risks=("safety", "privacy"),
    measured=(
        "How many texts have offensive or demeaning words or ask for sensitive attributes "
        "of people, and how many images show people, faces or text."
    ),
    blind_spots=(
        "It knows listed English words, not what a sentence means: polite cruelty is not "
        "found, and a harmless text may be listed. Faces and text are counted only where "
        "they are annotated, faces only as a person's. What images show is not judged."
    ),
    thresholds=(
        *state_edges(FLAGGED[1:], "{} % of the samples or more have unsafe wording"),
        Threshold("low", "any sample has unsafe wording, or any image shows people"),
    ),
    run=run_unsafe_content,
    needs_model=False,
)
