"""The categories of COCO and the words for them: vocabulary.yaml."""

from importlib.resources import files

import msgspec


class CategoryWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """category: its name in COCO. names: words that mean it. kinds: words for groups it belongs to. uses: words of
    questions about what it is for or does.
    """

    category: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    uses: tuple[str, ...]


def _read() -> tuple[CategoryWords, ...]:
    text = (files("maskwise.models.photo") / "vocabulary.yaml").read_bytes()
    return msgspec.yaml.decode(text, type=tuple[CategoryWords, ...])


VOCABULARY = _read()
COCO_CATEGORIES = tuple(words.category for words in VOCABULARY)
"""The 80 categories in the order of detectors trained on COCO."""
