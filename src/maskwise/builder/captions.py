"""Captions of the grammar: what an image shows, counted."""

from collections import Counter

from maskwise.builder.facts import ImageFacts
from maskwise.builder.knowledge import load_knowledge
from maskwise.builder.wording import count_noun
from maskwise.language.word_forms import join_words, to_plural, with_article

MAX_COUNTED = 6
"""Objects of one name that a caption counts; nobody counts more at a glance."""


def write_caption(facts: ImageFacts) -> str:
    """A sentence with the commonest objects of an image."""
    counts = Counter(region.noun.text for region in facts.objects)
    named = [_counted(noun, count) for noun, count in counts.most_common(MAX_COUNTED)]
    if not named:
        return "The image shows nothing that is annotated."
    return f"The image shows {join_words(named)}."


def _counted(noun: str, count: int) -> str:
    """A noun with its number: "a cup", "two cups", "several cups", "some bread"."""
    if count > MAX_COUNTED:
        return f"several {to_plural(noun)}"
    if count > 1:
        return count_noun(noun, count)
    if noun in load_knowledge().table.uncountable:
        return f"some {noun}"
    return with_article(noun)
