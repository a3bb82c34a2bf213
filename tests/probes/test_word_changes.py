"""Changes of words, by hand: what each makes of a question, and where it does not apply."""

import numpy as np
import pytest

from maskwise.language.lexicons import read_sections
from maskwise.masks import Mask
from maskwise.probes.word_changes import (
    LANGUAGE_CHANGES,
    LANGUAGES,
    WORD_CHANGES,
    AskedQuestion,
    ChangedQuestion,
)
from maskwise.schema import MaskType, Region, Sample
from maskwise.world.catalogue import CATEGORIES

MASK = Mask.from_dense(np.eye(4, dtype=np.bool_))


def region(id: str, name: str, part_of: str | None = None) -> Region:
    return Region(id=id, name=name, visible=MASK, amodal=MASK, part_of=part_of)


def ask(
    question: str, names: list[str], mask_type: MaskType = "visible"
) -> AskedQuestion:
    """A question about the first of the named objects."""
    regions = tuple(region(str(number), name) for number, name in enumerate(names))
    sample = Sample(
        id="s",
        image_id="i",
        question=question,
        mask_type=mask_type,
        targets=regions[:1],
    )
    return AskedQuestion(sample, regions)


def change(name: str, question: AskedQuestion, seed: int = 0) -> ChangedQuestion | None:
    changes = WORD_CHANGES | LANGUAGE_CHANGES
    return changes[name].write(question, np.random.default_rng(seed))


MUG = ask("Segment the red mug.", ["red mug", "blue book"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no punctuation", "segment the red mug"),
        ("capitals", "SEGMENT THE RED MUG."),
        ("other object negated", "Segment the red mug. I do not mean the blue book."),
        (
            "other object mentioned",
            "By the way, I like the blue book. Segment the red mug.",
        ),
        ("German", "Segmentiere den Becher."),
        ("Chinese", "请分割图中的马克杯。"),
    ],
)
def test_changed_texts(name: str, text: str) -> None:
    changed = change(name, MUG)
    assert changed is not None
    assert changed.text == text
    assert changed.mask_type == "visible"


@pytest.mark.parametrize("name", ["politeness", "rudeness", "distractor sentence"])
def test_sentences_around_a_question_leave_it_as_it_is(name: str) -> None:
    changed = change(name, MUG)
    assert changed is not None
    assert "Segment the red mug." in changed.text
    assert changed.text != "Segment the red mug."


@pytest.mark.parametrize("seed", range(20))
def test_a_typo_changes_one_letter_or_two_of_a_long_word(seed: int) -> None:
    changed = change("typos", MUG, seed)
    assert changed is not None
    before, *rest = ["Segment", "the", "red", "mug."]
    first, *others = changed.text.split()
    assert others == rest
    assert first != before
    assert first[0] == before[0]
    assert abs(len(first) - len(before)) <= 1


@pytest.mark.parametrize("seed", range(20))
def test_paraphrases_keep_noun_phrase_and_mask_type(seed: int) -> None:
    asked = ask("Give the complete shape of the mug.", ["mug"], "amodal")
    paraphrase = change("paraphrase", asked, seed)
    assert paraphrase is not None
    assert "the mug" in paraphrase.text.lower()
    assert paraphrase.text != asked.sample.question
    assert paraphrase.mask_type == "amodal"
    swapped = change("negated mask type", asked, seed)
    assert swapped is not None
    assert swapped.mask_type == "visible"


def test_what_cannot_be_changed_is_left_out() -> None:
    implicit = ask("What could I drink from?", ["red mug"])
    assert change("paraphrase", implicit) is None
    assert change("negated mask type", implicit) is None
    # There is no other object, and "it" is too short for a typing error.
    assert change("other object negated", implicit) is None
    assert change("typos", ask("it", ["mug"])) is None
    # A mug among several mugs has to be described, which a plain request does not.
    assert change("German", ask("The left mug", ["red mug", "blue mug"])) is None


def test_other_languages_are_compared_with_a_plain_request() -> None:
    changed = change("French", ask("What could I drink from?", ["red mug", "book"]))
    assert changed is not None
    assert changed.text == "Segmente la tasse."
    assert changed.control == "Segment the mug."


def test_every_category_of_the_world_has_all_translations() -> None:
    translations = read_sections("category_translations")
    assert set(CATEGORIES) <= set(translations)
    assert {len(names) for names in translations.values()} == {len(LANGUAGES)}
