"""Files of plain facts about objects and parts, as people would state them.

    == animal ; nature                     kind and place of the entries below; "-" for no kind
    dog (puppy, hound) < mammal ~ wolf     name, other names, a broader category, categories that are easily confused
    - bark at the mailman                  what it usually does or is; verbs in base form, further ones before "*"
    + descend from wolves                  what every one of them does or is
    ? take for a walk {= cat ~ horse}      what people do with it, without the object of the verb
    ! A burglar comes. | wake everybody    what happens, and what would help

Braces list the categories that fulfil the fact as well ("=") and those about which people would disagree ("~");
"<dog" stands for all narrower categories of dog. In the file of parts an entry is `name (other names): wholes`, and
"@" in a fact is the whole.
"""

import re
from collections.abc import Iterator
from importlib import resources
from typing import Literal, NamedTuple

FactKind = Literal["does", "use", "event", "need", "ask"]

MARKS: dict[str, FactKind] = {"-": "does", "+": "does", "?": "use", "!": "event"}

ENTRY = re.compile(
    r"(?P<name>[^(<~:]+)(\((?P<other>[^)]*)\))?\s*"
    r"(<(?P<broader>[^~:]+))?(~(?P<alike>[^:]+))?(:(?P<wholes>.+))?$"
)
BRACES = re.compile(r"\s*\{(?:=(?P<also>[^~}]*))?(?:~(?P<maybe>[^}]*))?\}$")


class StatedFact(NamedTuple):
    """A fact of an entry. opening: the sentence before an event's question. also, maybe: from the braces.

    always: whether it is true of every one, not only usually.
    """

    kind: FactKind
    text: str
    opening: str
    also: tuple[str, ...]
    maybe: tuple[str, ...]
    always: bool


class Entry(NamedTuple):
    """An object or a part with what is stated about it. wholes: of a part only."""

    name: str
    other_names: tuple[str, ...]
    kind: str | None
    place: str
    broader: str | None
    alike: tuple[str, ...]
    wholes: tuple[str, ...]
    facts: list[StatedFact]


def read_entries(file: str) -> Iterator[Entry]:
    """The entries of a file of common_knowledge, in its order; ValueError names a line that does not parse."""
    kind: str | None = None
    place = ""
    entry: Entry | None = None
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("== "):
            kind_name, _, place = line[3:].partition(" ; ")
            kind = None if kind_name == "-" else kind_name
        elif line[0] in MARKS:
            if entry is None:
                raise ValueError(f"{file}, line {number}: a fact before any entry")
            entry.facts.append(_parse_fact(line))
        else:
            if entry is not None:
                yield entry
            entry = _parse_entry(line, kind, place, where=f"{file}, line {number}")
    if entry is not None:
        yield entry


def read_text(file: str) -> str:
    """A file of common_knowledge."""
    folder = resources.files("maskwise.builder").joinpath("common_knowledge")
    return folder.joinpath(file).read_text(encoding="utf-8")


def read_sections(file: str) -> dict[str, tuple[str, ...]]:
    """The lines below each "[name]", without comments and empty ones."""
    sections: dict[str, list[str]] = {}
    name = ""
    for line in read_text(file).splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            name = line.strip("[]")
            sections[name] = []
        else:
            sections[name].append(line)
    return {name: tuple(lines) for name, lines in sections.items()}


def _parse_entry(line: str, kind: str | None, place: str, *, where: str) -> Entry:
    match = ENTRY.match(line)
    if match is None:
        raise ValueError(f"{where}: expected an entry, got {line!r}")
    broader = match["broader"]
    return Entry(
        name=match["name"].strip(),
        other_names=_split(match["other"]),
        kind=kind,
        place=place,
        broader=None if broader is None else broader.strip(),
        alike=_split(match["alike"]),
        wholes=_split(match["wholes"]),
        facts=[],
    )


def _parse_fact(line: str) -> StatedFact:
    text = line[1:].strip()
    braces = BRACES.search(text)
    also: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    if braces is not None:
        text = text[: braces.start()]
        also = _split(braces["also"])
        maybe = _split(braces["maybe"])
    opening, _, statement = text.rpartition(" | ")
    return StatedFact(
        MARKS[line[0]], statement, opening, also, maybe, always=line[0] == "+"
    )


def _split(names: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (names or "").split(",") if name.strip())
