"""What a question asks for, as far as its words tell: categories, attributes, relations, exceptions, how many.

    "the red cup to the left of the laptops"    target: cup, red, left_of laptop
    "all cars except the white one"             target: car, all; exception: car, white
    "the wheel of the bus"                      target: a part of the bus, called wheel

This is a small grammar over fixed tables, not a language model. Words that it does not know are ignored. It works in
steps: tokens with offsets (language/tokens.py), sentences and the interrogative (clause.py), nouns (nouns.py), and then
one noun after another, by the words between it and the noun before it: "and", "except", "not", "of", a relation.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import msgspec

from maskwise.language.lexicons import read_sections, word_set
from maskwise.language.phrases import PhraseKey, PhraseMatch, find_phrases, phrase_table
from maskwise.language.tokens import Token
from maskwise.models.photo.clause import (
    DETERMINERS,
    INTERROGATIVES,
    PERSONAL,
    REQUESTS,
    Noun,
    asking_sentence,
    asks_for_number,
    find_interrogative,
    split_sentences,
)
from maskwise.models.photo.modifiers import (
    EVERY,
    NEGATIONS,
    NUMBER_OF_WORD,
    Order,
    is_modifier,
    read_modifiers,
)
from maskwise.models.photo.nouns import ONE, PIECES, find_nouns, find_open_nouns
from maskwise.models.photo.remarks import find_remarks

Relation = Literal[
    "left_of",
    "right_of",
    "above",
    "below",
    "on",
    "in",
    "behind",
    "in_front_of",
    "near",
    "touching",
]
PartPlace = Literal["top", "bottom", "anywhere"]

RELATIONS = msgspec.convert(read_sections("relations"), dict[Relation, list[str]])
PARTS = msgspec.convert(read_sections("object_parts"), dict[PartPlace, list[str]])

CONJUNCTIONS = word_set("and or plus")
EXCEPTIONS = (
    "except",
    "except for",
    "excepting",
    "excluding",
    "other than",
    "apart from",
    "aside from",
    "besides",
    "minus",
    "but not",
    "rather than",
    "instead of",
    "not counting",
)
"""What follows is not meant."""

BE = word_set("is are was were be been being that which who currently")
"""Words between a noun and its relation or its attribute that say nothing themselves."""

YES_OR_NO = word_set("is are was were do does did has have had will would could should")
"""A question that begins with one of these does not take for granted that there is a target."""

NOT_A_PART = word_set(
    "part piece portion region section component area feature aspect element structure rest remainder remaining "
    "whole entirety all both each every any some most many much more half none one two three four five six seven eight "
    "nine ten several other pixel mask segmentation outline contour silhouette shape form extent boundary figure "
    "footprint surface body volume size color colour kind type sort breed species brand model variety group pair set "
    "herd flock row bunch pile stack crowd couple number lot plenty team family view picture image photo photograph "
    "copy instance example kinds owner name position location left right top out because front inside outside side "
    "middle center centre bottom corner edge end back instead ahead full complete majority visible seen"
)
"""Words before "of" that name no part: "the outline of the dog" means the dog."""

MAX_GAP = 5
"""Words between an interrogative or the noun that it asks for, and the relation."""

MAX_ADJECTIVES = 2
"""Words between an owner and what it owns: "the dog's big red bowl"."""

MAX_PREMODIFIERS = 4
"""Words between the determiner of a noun and the noun."""

MAX_WORDS_BETWEEN_COORDINATED = 4
"""Different words between two nouns that are joined by "and" or "or"."""

BREAK = re.compile(r"[,;:()–—]|\w")
"""What ends a noun phrase if it stands between two words; a word is one that was left out as a remark."""


@dataclass(frozen=True)
class RelationTo:
    """A relation to another object, the anchor. negated: it must not hold. inverted: the anchor stands in the relation
    to the object: "what the man is holding".
    """

    name: Relation
    anchor: "NounPhrase"
    words: str = ""
    negated: bool = False
    inverted: bool = False


@dataclass(frozen=True)
class NounPhrase:
    """An object that a question mentions.

    categories: any of these; empty: any at all. text: the words for it. color: a key of `colors.HUES`; other_than: a
    color that it does not have. order: by which the objects are sorted, and rank: the position of the first one meant
    in that order, from 0. count: how many are meant, None for all of them; numbered: a number says so. part: the word
    for a part of it that is meant.
    """

    categories: frozenset[str]
    text: str
    color: str | None = None
    other_than: str | None = None
    order: Order | None = None
    rank: int = 0
    count: int | None = 1
    numbered: bool = False
    relation: RelationTo | None = None
    part: str | None = None

    @property
    def described(self) -> bool:
        """Whether anything besides a noun tells what is meant."""
        return bool(self.color or self.other_than or self.relation)


@dataclass(frozen=True)
class ParsedQuestion:
    """targets: what is asked for, any of them; empty if no known word says it. exceptions: what is not meant.

    words: singular forms of all words. mentioned: all categories that the question names. counts: it asks how many.
    presupposes: it takes for granted that there is a target.
    """

    targets: tuple[NounPhrase, ...]
    exceptions: tuple[NounPhrase, ...]
    words: frozenset[str]
    mentioned: frozenset[str]
    counts: bool
    presupposes: bool


def parse_question(text: str, *, open_nouns: bool = False) -> ParsedQuestion:
    """Find what the tables of this module and the vocabulary know in a question; nothing in an empty one.

    open_nouns: words that are in no table are categories too, where the grammar takes them for nouns.
    """
    words: set[str] = set()
    mentioned: set[str] = set()
    for sentence in split_sentences(text):
        words.update(token.singular for token in sentence)
        for noun in find_nouns(sentence):
            mentioned |= noun.value

    # Other sentences tell a story: only their words count, for what the thing is used for.
    tokens = asking_sentence(split_sentences(text, find_remarks(text)))
    clause = _Clause(text, tokens, open_nouns=open_nouns)
    clause.read()
    return ParsedQuestion(
        targets=tuple(clause.targets),
        exceptions=tuple(clause.exceptions),
        words=frozenset(words),
        mentioned=frozenset(mentioned),
        counts=asks_for_number(tokens),
        presupposes=_presupposes(tokens),
    )


def _presupposes(tokens: Sequence[Token]) -> bool:
    words = [token.word for token in tokens]
    if not words or words[0] in {"why", "how"}:
        return False
    # "When preparing dough, what could be used?" takes a target for granted, "When was it built?" does not.
    if not INTERROGATIVES.isdisjoint(words) or not REQUESTS.isdisjoint(words):
        return True
    return words[0] not in YES_OR_NO and words[0] not in {"any", "when"}


class _Clause:
    """The sentence that asks, read from left to right.

    tokens: its words. nouns: those of them that name something. breaks: places before which a phrase ends.
    """

    def __init__(self, text: str, tokens: Sequence[Token], *, open_nouns: bool) -> None:
        self.tokens = tokens
        self.words = [token.word for token in tokens]
        self.nouns = find_nouns(tokens)
        if open_nouns:
            self.nouns += find_open_nouns(text, tokens, self.nouns)
            self.nouns.sort(key=lambda noun: noun.start)
        self.breaks = {
            place
            for place in range(1, len(tokens))
            if BREAK.search(text[tokens[place - 1].stop : tokens[place].start])
        }
        self.relations = self._find_relations()
        self.exception_marks = [
            mark
            for mark in find_phrases(tokens, _exception_table())
            if self.words[mark.start] != "beside"  # the singular of "besides"
        ]
        self.targets: list[NounPhrase] = []
        self.exceptions: list[NounPhrase] = []
        self._heads: dict[int, int] = {}  # place of a noun: place of its target
        self._pending: RelationTo | None = None  # of the target that comes next
        self._detached = False  # after a noun that only tells a story

    def read(self) -> None:
        """Fill `targets` and `exceptions`."""
        start = 0
        interrogative = find_interrogative(self.tokens, self.nouns)
        open_at: int | None = None
        asked = None
        if interrogative is not None:
            place, asked = interrogative
            start = place + 1
            if asked is None:
                open_at = place
        nouns = [noun for noun in self.nouns if noun.start >= start]
        if asked is not None:
            nouns = [asked, *(noun for noun in nouns if noun.start > asked.start)]
        if open_at is not None:
            self._read_open(open_at, nouns)
            return
        self._read_nouns(nouns, is_asked=asked is not None)
        self._add_bare_exception()
        self._add_stranded_relation()

    # -- what an interrogative without a noun asks for

    def _read_open(self, place: int, nouns: Sequence[Noun]) -> None:
        """Anything in a relation to the next noun: "What is on the table?", "what the man is holding"."""
        if not nouns:
            return
        noun = nouns[0]
        phrase_start = self._phrase_start(noun, place + 1)
        relation = self._relation_before(phrase_start)
        is_near = relation is not None and relation.start <= place + 1 + MAX_GAP
        if relation is not None and is_near:
            anchor = self._describe(noun, phrase_start)
            related = self._to_relation(relation, anchor)
            self.targets.append(NounPhrase(frozenset(), "", relation=related))
            return
        between = set(self.words[place + 1 : phrase_start])
        stranded = self._stranded_relation(noun)
        if between <= BE and stranded is not None:
            anchor = self._describe(noun, phrase_start, stop=stranded.start)
            related = self._to_relation(stranded, anchor, inverted=True)
            self.targets.append(NounPhrase(frozenset(), "", relation=related))

    def _stranded_relation(self, noun: Noun) -> PhraseMatch[Relation] | None:
        """A relation at the end of the sentence whose subject is this noun: "the man is holding"."""
        for relation in self.relations:
            is_last = relation.stop == len(self.tokens)
            if is_last and relation.start >= noun.stop:
                between = set(self.words[noun.stop : relation.start])
                return relation if between <= BE else None
        return None

    def _add_stranded_relation(self) -> None:
        """Find it in "the thing that the man is holding"."""
        if len(self.targets) != 1 or self.targets[0].categories or not self.nouns:
            return
        noun = self.nouns[-1]
        stranded = self._stranded_relation(noun)
        if stranded is None or not noun.value or self.targets[0].relation:
            return
        anchor = self._describe(noun, noun.start, stop=stranded.start)
        related = self._to_relation(stranded, anchor, inverted=True)
        self.targets[0] = replace(self.targets[0], relation=related)

    # -- one noun after another

    def _read_nouns(self, nouns: Sequence[Noun], *, is_asked: bool) -> None:
        excepting = False  # after "except", until the sentence ends
        previous: Noun | None = None
        for noun in nouns:
            if self._is_modifier(noun) or self._is_whole_word(noun):
                continue
            earliest = 0 if previous is None else previous.stop
            start = self._phrase_start(noun, earliest)
            excepting = self._is_excepted(earliest, start, excepting=excepting)
            is_related = self._relation_before(start) is not None
            is_denied = not is_related and self._is_denied(start, earliest)
            if excepting or is_denied:
                described = self._resolve(self._describe(noun, start), noun)
                self.exceptions.append(described)
            else:
                self._read_noun(noun, start, previous, is_asked=is_asked)
            previous = noun

    def _is_excepted(self, earliest: int, start: int, *, excepting: bool) -> bool:
        """Whether a noun phrase is left out: after "except", or after "but" where all of something is meant."""
        if any(earliest <= mark.start < start for mark in self.exception_marks):
            return True
        is_universal = bool(self.targets) and self.targets[-1].count is None
        if is_universal and self.words[earliest:start][-1:] == ["but"]:
            return True
        # "Instead of the cat, show the laptop": the exception comes first and ends with the comma.
        is_over = not self.targets and any(
            earliest <= place <= start for place in self.breaks
        )
        return excepting and not is_over

    def _read_noun(
        self, noun: Noun, start: int, previous: Noun | None, *, is_asked: bool
    ) -> None:
        """An anchor, a target, or a noun that only tells a story; nothing after such a one is joined to a target."""
        earliest = 0 if previous is None else previous.stop
        described = self._describe(noun, start)
        relation = self._relation_before(start)
        if relation is not None and earliest <= relation.start:
            if not self.targets:
                self._pending = self._to_relation(relation, described)
            elif self._leaves_out(relation, start):
                self.exceptions.append(described)
            elif not self._detached and self._is_close(relation, previous, is_asked):
                self._relate(previous, relation, described)
        elif not self.targets:
            described = replace(described, relation=self._pending)
            self._add_target(noun, described, start, earliest)
        elif not self._detached and self._is_coordinated(earliest, start):
            self._add_target(noun, self._resolve(described, noun), start, earliest)
        else:
            self._detached = True

    def _add_target(
        self, noun: Noun, described: NounPhrase, start: int, earliest: int
    ) -> None:
        for twin in self._elliptical(described, start, earliest):
            self.targets.append(twin)
        self._heads[noun.start] = len(self.targets)
        self.targets.append(described)

    def _leaves_out(self, relation: PhraseMatch[Relation], start: int) -> bool:
        """Whether "without" makes an exception: "the bus without the car", unlike "the man without a hat"."""
        is_without = self.words[relation.start] == "without"
        return is_without and self.words[start] in {"the", "this", "that", "these"}

    def _is_close(
        self, relation: PhraseMatch[Relation], previous: Noun | None, is_asked: bool
    ) -> bool:
        """Whether a relation belongs to the noun before it; after an interrogative only a short way off."""
        if previous is None or not is_asked:
            return True
        return relation.start - previous.stop <= MAX_GAP

    def _relate(
        self,
        subject: Noun | None,
        relation: PhraseMatch[Relation],
        anchor: NounPhrase,
    ) -> None:
        """Give a relation to the target before it. What an anchor is related to says nothing about the target."""
        place = self._heads.get(subject.start) if subject is not None else None
        if place is None or self.targets[place].relation is not None:
            return
        related = self._to_relation(relation, anchor)
        self.targets[place] = replace(self.targets[place], relation=related)
        # "the cup and the dog on the table"
        for other in range(place):
            is_alone = self.targets[other].relation is None
            joined = self.targets[other].text == self.targets[place].text
            if is_alone and joined:
                self.targets[other] = replace(self.targets[other], relation=related)

    def _to_relation(
        self,
        relation: PhraseMatch[Relation],
        anchor: NounPhrase,
        *,
        inverted: bool = False,
    ) -> RelationTo:
        before = self.words[max(0, relation.start - 2) : relation.start]
        own_words = self.words[relation.start : relation.stop]
        after = self.words[relation.stop : relation.stop + 1]
        negated = (
            not NEGATIONS.isdisjoint(before)
            or "without" in own_words
            or after == ["no"]
        )
        return RelationTo(
            relation.value, anchor, " ".join(own_words), negated, inverted
        )

    def _is_denied(self, start: int, earliest: int) -> bool:
        """Whether "not" or "no" stands before a noun phrase or begins it."""
        if start < len(self.words) and self.words[start] in {"no", "non"}:
            return True
        place = start
        while place > earliest and start - place < 2:
            place -= 1
            if self.words[place] in NEGATIONS:
                return True
            if self.words[place] in CONJUNCTIONS or self.words[place] == "but":
                return False
        return False

    def _is_coordinated(self, earliest: int, start: int) -> bool:
        """Whether a noun phrase is one more target: joined by "and", "or", a comma, or "but" after a denied one."""
        between = self.words[earliest:start]
        if len(set(between)) > MAX_WORDS_BETWEEN_COORDINATED:
            return False
        joined = not CONJUNCTIONS.isdisjoint(between) or "but" in between
        as_well = between[-3:] == ["as", "well", "as"]
        listed = not between and start in self.breaks
        return joined or as_well or listed

    def _resolve(self, described: NounPhrase, noun: Noun) -> NounPhrase:
        """The same with a name: "one" and "ones" mean what the target before them means."""
        words = self.words[noun.start : noun.stop]
        if ONE.isdisjoint(words) or not self.targets:
            return described
        head = self.targets[-1]
        return replace(described, categories=head.categories, text=head.text)

    def _elliptical(
        self, described: NounPhrase, start: int, earliest: int
    ) -> list[NounPhrase]:
        """The first of "the red and the blue cup", "the first and third cup", "the red and blue cups"."""
        place = start
        # "the blue cup" begins with the determiner; "blue cups" does not.
        has_determiner = start < len(self.words) and self.words[start] in DETERMINERS
        if place - 1 < earliest or self.words[place - 1] not in {"and", "or"}:
            return []
        stop = place - 1
        first = stop
        while first > earliest and is_modifier(self.tokens[first - 1]):
            first -= 1
        before = set(self.words[earliest:first])
        is_phrase = before <= DETERMINERS | CONJUNCTIONS | REQUESTS | EVERY
        modifiers = read_modifiers(
            self.tokens[first:stop],
            plural=described.count is None and not has_determiner,
        )
        is_second = (
            has_determiner
            or described.count is None
            or (modifiers.rank > 0 or described.rank > 0)
        )
        if first == stop or not is_phrase or not is_second:
            return []
        return [
            replace(
                described,
                color=modifiers.color,
                other_than=modifiers.other_than,
                order=modifiers.order or described.order,
                rank=modifiers.rank,
                count=modifiers.count,
                numbered=modifiers.numbered,
            )
        ]

    def _add_bare_exception(self) -> None:
        """An exception that is an attribute alone: "all cups except the leftmost"."""
        if not self.targets or not self.exception_marks or self.exceptions:
            return
        tokens = self.tokens[self.exception_marks[-1].stop :]
        if any(is_modifier(token) for token in tokens):
            head = self.targets[-1]
            modifiers = read_modifiers(tokens, plural=False)
            self.exceptions.append(
                NounPhrase(
                    head.categories,
                    head.text,
                    color=modifiers.color,
                    order=modifiers.order,
                    rank=modifiers.rank,
                    count=modifiers.count,
                )
            )

    # -- the parts of one noun phrase

    def _find_relations(self) -> list[PhraseMatch[Relation]]:
        # Words of a noun's name are no relation.
        taken = [False] * len(self.tokens)
        for noun in self.nouns:
            for place in range(noun.start, noun.stop):
                taken[place] = True
        return find_phrases(self.tokens, _relation_table(), taken=taken)

    def _relation_before(self, start: int) -> PhraseMatch[Relation] | None:
        """The relation directly before a noun phrase: "on the table"; not "on the left and the table"."""
        for relation in self.relations:
            if relation.stop == start:
                return relation
        return None

    def _phrase_start(self, noun: Noun, earliest: int) -> int:
        """Where the noun phrase begins, with its determiner, numbers and adjectives."""
        mark_ends = {relation.stop for relation in self.relations}
        mark_ends |= {mark.stop for mark in self.exception_marks}
        place = noun.start
        while place > earliest:
            word = self.words[place - 1]
            if place in self.breaks or place in mark_ends:
                break
            if word in DETERMINERS:
                place -= 1
                # "all the cups", "no other cup"
                while place > earliest and self.words[place - 1] in (EVERY | {"no"}):
                    place -= 1
                break
            is_counted = word in NUMBER_OF_WORD or word in EVERY or word == "no"
            ends_phrase = (
                word in CONJUNCTIONS
                or word in INTERROGATIVES
                or word in REQUESTS
                or word in BE
                or word in NEGATIONS
                or word in {"of", "but", "with", "including", "there"}
            )
            if ends_phrase and not is_counted:
                break
            if noun.start - place >= MAX_PREMODIFIERS:
                break
            place -= 1
        # "two of the dogs", "one of the cups"
        has_of = place - 2 >= earliest and self.words[place - 1] == "of"
        if has_of:
            word = self.words[place - 2]
            if word in NUMBER_OF_WORD or word in EVERY:
                return place - 2
        return place

    def _phrase_stop(self, noun: Noun) -> int:
        """Where what is said about a noun ends: before a relation to another noun, "and", an exception, a comma."""
        stops = [len(self.tokens)]
        for other in self.nouns:
            if other.start >= noun.stop:
                start = self._phrase_start(other, noun.stop)
                stops.append(start)
                relation = self._relation_before(start)
                if relation is not None and relation.start >= noun.stop:
                    stops.append(relation.start)
                break
        stops += [
            mark.start for mark in self.exception_marks if mark.start >= noun.stop
        ]
        for place in range(noun.stop, len(self.tokens)):
            is_break = place in self.breaks and place > noun.stop
            if self.words[place] in CONJUNCTIONS or self.words[place] == "but":
                stops.append(place)
            if is_break:
                stops.append(place)
        return min(stops)

    def _describe(
        self, noun: Noun, start: int, *, stop: int | None = None
    ) -> NounPhrase:
        """A noun with its modifiers, and the part of it that is meant."""
        last = self.tokens[noun.stop - 1]
        end = self._phrase_stop(noun) if stop is None else stop
        part = self._part(noun, start)
        # "the dog's left ear": what follows describes the part.
        after = () if part is not None else self.tokens[noun.stop : max(end, noun.stop)]
        text = " ".join(self.words[noun.start : noun.stop])
        modifiers = read_modifiers(
            [*self.tokens[start : noun.start], *after],
            plural=last.plural or text in EVERY,
        )
        return NounPhrase(
            categories=noun.value,
            text="person" if text in PERSONAL else text,
            color=modifiers.color,
            other_than=modifiers.other_than,
            order=modifiers.order,
            rank=modifiers.rank,
            count=modifiers.count,
            numbered=modifiers.numbered,
            part=part,
        )

    def _part(self, noun: Noun, start: int) -> str | None:
        """The part of an object that is meant: "the wheel of the bus", "the cat's ear", "the car door"."""
        if not noun.value:
            return None
        if self.tokens[noun.stop - 1].possessive:
            return self._owned(noun)
        following = self.tokens[noun.stop : noun.stop + 1]
        if following and following[0].singular in part_places():
            is_joined = noun.stop not in self.breaks
            if is_joined:
                return following[0].word
        if start >= 2 and self.words[start - 1] == "of" and start not in self.breaks:
            token = self.tokens[start - 2]
            asked = set(self.words[max(0, start - 4) : start - 2])
            if token.singular in PIECES and not INTERROGATIVES.isdisjoint(asked):
                return token.word
            is_known = any(
                other.start <= start - 2 < other.stop for other in self.nouns
            )
            if token.singular in part_places():
                return token.word
            if not is_known and token.singular not in NOT_A_PART:
                return token.word
        return None

    def _owned(self, noun: Noun) -> str | None:
        """What belongs to a possessive noun, if it is no object that has a name here."""
        stop = noun.stop
        relation_starts = {relation.start for relation in self.relations}
        while stop < len(self.tokens) and stop - noun.stop <= MAX_ADJECTIVES:
            word = self.words[stop]
            is_end = (
                stop in self.breaks
                or stop in relation_starts
                or word in CONJUNCTIONS
                or word in BE
                or word in NEGATIONS
                or word in DETERMINERS
            )
            if is_end:
                break
            stop += 1
        owned = self.words[noun.stop : stop]
        if not owned or set(owned) <= NOT_A_PART:
            return None
        for place, word in enumerate(owned):
            if self.tokens[noun.stop + place].singular in part_places():
                return word
        return owned[-1]

    def _is_modifier(self, noun: Noun) -> bool:
        """Whether a noun only describes the next one: "chicken sandwich", "the dog's bowl"."""
        if self.tokens[noun.stop - 1].singular in part_places():
            reach = 0
        else:
            reach = MAX_ADJECTIVES if self.tokens[noun.stop - 1].possessive else 0
        return any(
            other.value
            and noun.stop <= other.start <= noun.stop + reach
            and not self._is_part_word(other)
            and not any(noun.stop <= place <= other.start for place in self.breaks)
            for other in self.nouns
        )

    def _is_part_word(self, noun: Noun) -> bool:
        """Whether a noun is also a word for parts: the seat of "the bike's seat"."""
        token = self.tokens[noun.start]
        return noun.stop == noun.start + 1 and token.singular in part_places()

    def _is_whole_word(self, noun: Noun) -> bool:
        """Whether a noun belongs to another one: the part of "part of the dog", the seat of "the seat of the bike"."""
        if noun.stop < len(self.words) and self.words[noun.stop] == "of":
            owner = any(
                other.value
                and other.start > noun.stop
                and self._phrase_start(other, noun.stop + 1) == noun.stop + 1
                for other in self.nouns
            )
            if owner and (not noun.value or self._is_part_word(noun)):
                return True
        if self._is_part_word(noun):
            return any(
                other.value
                and other.stop <= noun.start <= other.stop + MAX_ADJECTIVES
                and (other.stop == noun.start or self.tokens[other.stop - 1].possessive)
                and noun.start not in self.breaks
                for other in self.nouns
            )
        return False


@cache
def part_places() -> dict[str, PartPlace]:
    """Where a part usually is in its object, by the singular of its name."""
    return {name: place for place, names in PARTS.items() for name in names}


@cache
def _relation_table() -> dict[PhraseKey, Relation]:
    return phrase_table(RELATIONS)


@cache
def _exception_table() -> dict[PhraseKey, str]:
    return phrase_table({"except": EXCEPTIONS})
