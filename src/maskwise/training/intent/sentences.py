"""Sentences that the intent classifier is trained on, beside those of the template corpus.

`hand_written/*.jsonl` were written one by one, not expanded from templates: most of them by a language model, as R2SM
wrote its queries, each set without sight of the others. `train_*` are trained on (`train_dev`, two older sets, without
marked cues), `choose_*` choose settings and calibrate; `choose_h` are 143 sentences taken out of `train_h` by a hash
before any training. Published questions and captions, visible, are read from a folder where there is one; they are not
part of the project.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple
from zlib import crc32

import msgspec

from maskwise.language.intent.cues import KINDS, CueKind
from maskwise.language.intent.tokenizer import RequestedMask
from maskwise.language.intent.words import QuestionWord, locate_words

TRAINING_SETS = ("train_a", "train_b", "train_e", "train_dev", "train_h")
CHOOSING_SETS = ("choose_c", "choose_h")

HELD_OUT_IN = 5
"""One in so many captions of GSEval is kept aside, to count false amodal answers."""


class HandWrittenSentence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence with its mask type.

    cue: the words that decide, as they stand in the text, "" where there are none. kind: of the cue, "none" for no cue.
    None where nobody has marked them.
    """

    text: str
    type: RequestedMask
    cue: str | None = None
    kind: CueKind | Literal["none"] | None = None


class LabeledSentence(NamedTuple):
    """Words with labels. kind: 0 for no cue, 1 + its place in KINDS; None where it is not known.

    word_kinds: the same for each word, 0 outside the cue; None where they are not known.
    """

    words: list[QuestionWord]
    amodal: bool
    kind: int | None = None
    word_kinds: list[int] | None = None


def read_hand_written(name: str) -> list[HandWrittenSentence]:
    """The sentences of one set."""
    file = (
        resources.files("maskwise.training.intent") / "hand_written" / f"{name}.jsonl"
    )
    lines = file.read_text("utf-8").splitlines()
    return [msgspec.json.decode(line, type=HandWrittenSentence) for line in lines]


def read_training_sentences() -> list[HandWrittenSentence]:
    """The sentences of all training sets."""
    return _read_sets(TRAINING_SETS)


def read_choosing_sentences() -> list[HandWrittenSentence]:
    """The sentences of both choosing sets."""
    return _read_sets(CHOOSING_SETS)


def label_sentence(sentence: HandWrittenSentence) -> LabeledSentence:
    """The words of a sentence, those of its cue labeled with its kind."""
    if sentence.cue is None:
        return label_type(sentence.text, sentence.type)
    words = locate_words(sentence.text)
    kind = 0
    if sentence.kind in KINDS:
        kind = 1 + KINDS.index(sentence.kind)
    start = sentence.text.find(sentence.cue)
    end = start + len(sentence.cue)
    word_kinds = []
    for word in words:
        inside = word.start < end and word.end > start
        word_kinds.append(kind if inside else 0)
    return LabeledSentence(words, sentence.type == "amodal", kind, word_kinds)


def label_visible(text: str) -> LabeledSentence:
    """A question or caption without any cue."""
    words = locate_words(text)
    return LabeledSentence(words, amodal=False, kind=0, word_kinds=[0] * len(words))


def label_type(text: str, mask_type: RequestedMask) -> LabeledSentence:
    """A sentence of which only the mask type is known."""
    return LabeledSentence(locate_words(text), mask_type == "amodal")


def read_visible_texts(folder: Path) -> list[str]:
    """Questions and captions that nobody wrote for this purpose, without duplicates; files that are absent give none.

    ReasonSeg's training questions, GSEval's captions without those kept aside, COCO's captions.
    """
    texts = list(_read_reasonseg_questions(folder))
    for caption in read_gseval_captions(folder):
        if not is_held_out(caption):
            texts.append(caption)
    texts += _read_coco_captions(folder)
    return list(dict.fromkeys(texts))


def read_gseval_captions(folder: Path) -> list[str]:
    """All captions of GSEval, without duplicates."""
    captions = []
    for file in sorted(folder.glob("gseval/*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            captions.append(json.loads(line)["caption"])
    return list(dict.fromkeys(captions))


def is_held_out(caption: str) -> bool:
    """Whether a caption is kept aside for measuring."""
    return crc32(caption.encode()) % HELD_OUT_IN == 0


def vocabulary_of(texts: Iterable[str]) -> set[str]:
    """The words of texts, in lower case."""
    words: set[str] = set()
    for text in texts:
        words.update(re.findall("[a-z]+", text.lower()))
    return words


def _read_sets(names: Sequence[str]) -> list[HandWrittenSentence]:
    sentences = []
    for name in names:
        sentences += read_hand_written(name)
    return sentences


def _read_reasonseg_questions(folder: Path) -> Iterator[str]:
    file = folder / "reasonseg_train_questions.txt"
    if file.exists():
        lines = file.read_text("utf-8").splitlines()
        yield from filter(None, map(str.strip, lines))


def _read_coco_captions(folder: Path) -> list[str]:
    captions = []
    for file in sorted(folder.rglob("captions_*.json")):
        for annotation in json.loads(file.read_text("utf-8"))["annotations"]:
            captions.append(annotation["caption"].strip())
    return captions
