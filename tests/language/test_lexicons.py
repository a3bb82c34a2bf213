"""The word lists are well-formed: read once, without duplicates, in lower case."""

from importlib import resources

import pytest

from maskwise.language.lexicons import (
    read_lines,
    read_pairs,
    read_sections,
    read_words,
    word_set,
)

FILES = sorted(
    file.name.removesuffix(".txt")
    for file in resources.files("maskwise.language.lexicons").iterdir()
    if file.name.endswith(".txt")
)


@pytest.mark.parametrize("name", FILES)
def test_every_list_says_what_it_is_for_and_has_lines(name: str) -> None:
    lines = read_lines(name)
    assert lines
    assert not any(line.startswith("#") for line in lines)


@pytest.mark.parametrize("name", ["relations", "orders", "colors"])
def test_no_phrase_is_in_two_sections(name: str) -> None:
    sections = read_sections(name)
    phrases = [phrase for phrases in sections.values() for phrase in phrases]
    assert len(phrases) == len(set(phrases))
    assert all(phrases)
    assert phrases == [phrase.lower() for phrase in phrases]


def test_the_lines_of_a_section_are_joined() -> None:
    sections = read_sections("name_words")
    assert {"of", "and"} <= set(sections["prepositions"])


def test_words_keep_their_order() -> None:
    assert read_words("numbers")[:3] == ("no", "one", "two")


def test_pairs_and_sets() -> None:
    assert read_pairs("irregular_plurals")["knife"] == "knives"
    assert word_set(" a b\n a ") == {"a", "b"}


def test_a_missing_list_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        read_lines("no such list")
