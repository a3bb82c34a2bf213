"""Questions whose target is replaced by something that is not in the image."""

import re
from collections.abc import Sequence

import numpy as np

from maskwise.language.category_names import find_category_name
from maskwise.language.word_forms import is_plural
from maskwise.schema import Region, Sample
from maskwise.store import Dataset
from maskwise.world.catalogue import CATEGORIES

TRIES = 12
"""Names that are tried for one question."""

MAX_NAMES = 2000
"""Names of a dataset that are drawn from; a larger vocabulary adds nothing."""


def list_names(dataset: Dataset, *, is_world: bool) -> list[str]:
    """Names to ask for: the categories of the world, or the names of a dataset's objects."""
    if is_world:
        names = list(CATEGORIES)
    else:
        is_object = ~dataset.regions.part_of.present
        codes, known = dataset.regions.name
        names = sorted({known[code] or "" for code in set(codes[is_object].tolist())})
    singular = [name for name in names if name and not is_plural(name)]
    return singular[:MAX_NAMES]


def ask_for_absent(
    sample: Sample,
    regions: Sequence[Region],
    names: Sequence[str],
    rng: np.random.Generator,
) -> str | None:
    """The question with the name of its only target replaced; None if it does not name it once.

    What follows "what" or "which" is not what is asked for: "What stands before the mug?"
    """
    if len(sample.targets) != 1 or not names:
        return None
    if sample.question.lower().startswith(("what", "which")):
        return None
    place = _find_name(sample.question, sample.targets[0].name)
    if place is None:
        return None
    start, stop = place
    texts = [sample.question, *(region.name for region in regions)]
    for _ in range(TRIES):
        name = names[int(rng.integers(len(names)))]
        if any(
            name in text.lower() or find_category_name(text, name) for text in texts
        ):
            continue
        before = _fix_article(sample.question[:start], name)
        return f"{before}{name}{sample.question[stop:]}"
    return None


def _find_name(question: str, name: str) -> tuple[int, int] | None:
    """Where a question has a name, or the end of a longer name, exactly once."""
    words = name.split()
    for first in range(len(words)):
        phrase = re.escape(" ".join(words[first:]))
        places = list(re.finditer(rf"\b{phrase}\b", question, re.IGNORECASE))
        if len(places) == 1:
            return places[0].span()
        if places:
            return None
    return None


def _fix_article(before: str, name: str) -> str:
    """The article "a" or "an" at the end of a text, as the name after it needs."""
    article = "an " if name[0].lower() in "aeiou" else "a "
    return re.sub(r"\b(a|an) $", article, before, flags=re.IGNORECASE)
