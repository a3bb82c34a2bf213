"""Why a reviewer rejects a sample: codes for statistics, titles for people; the builder's codes follow."""

import msgspec

from maskwise.registry import FILTERS


class ReasonTitle(msgspec.Struct, frozen=True, kw_only=True):
    """A reject reason: its code and what people read."""

    code: str
    title: str


REJECT_REASONS = {
    "wrong-target": "The masks show another object than the question asks for",
    "missing-target": "The masks leave out an object that the question asks for",
    "extra-target": "The masks include an object that the question does not ask for",
    "bad-mask": "A mask is too inaccurate to repair",
    "unclear-amodal": "The hidden part cannot be judged from the image",
    "wrong-mask-type": "The question asks for the other mask type",
    "wrong-answer": "The answer is wrong",
    "ambiguous": "The question can be understood in several ways",
    "unanswerable": "The image does not answer the question",
    "bad-wording": "The wording is unnatural or ungrammatical",
    "bad-image": "The image is damaged or unsuitable",
    "private": "The sample shows or names a private person",
    "other": "Another reason; see the note",
} | {
    reason: filter.description.removesuffix(".")
    for reason, filter in FILTERS.built_in.items()
}
