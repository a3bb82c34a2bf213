"""Word lists as text files. An empty line and a line that begins with # say nothing in all of them.

words     lines of words separated by spaces, or one phrase per line
sections  "name: words" or "name: a phrase, another phrase"; a name may occur several times
"""

from importlib import resources


def read_lines(name: str) -> list[str]:
    """The lines of the list `name`.txt that say something."""
    text = read_text(name)
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def read_words(name: str) -> tuple[str, ...]:
    """The words of a list, in the order of the file."""
    return tuple(" ".join(read_lines(name)).split())


def word_set(text: str) -> frozenset[str]:
    """The set of words separated by spaces: how a short list is written in code."""
    return frozenset(text.split())


def read_pairs(name: str) -> dict[str, str]:
    """The second word of each line by the first."""
    pairs = {}
    for line in read_lines(name):
        first, second = line.split()
        pairs[first] = second
    return pairs


def read_sections(name: str) -> dict[str, list[str]]:
    """The phrases of every section of a list, which commas separate, in the order of the file."""
    sections: dict[str, list[str]] = {}
    for line in read_lines(name):
        section, _, phrases = line.partition(":")
        stripped = [phrase.strip() for phrase in phrases.split(",")]
        sections.setdefault(section.strip(), []).extend(stripped)
    return sections


def read_text(name: str) -> str:
    """The whole file `name`.txt."""
    file = resources.files("maskwise.language.lexicons").joinpath(f"{name}.txt")
    return file.read_text("utf-8")
