"""Sentences that answer a question by naming its targets, each name tied to its region."""

from collections.abc import Sequence

from maskwise.language.word_forms import is_plural
from maskwise.schema import Answer, Phrase

NOTHING = "There is nothing like that here."


def write_answer(targets: Sequence[tuple[str, str]], *, amodal: bool) -> Answer:
    """A sentence that names every target in order; each name is a phrase of its region. No target: it says so.

    targets: name and noun of each; the noun decides the verb ("legs" for "legs of the brown table").
    """
    if not targets:
        return Answer(text=NOTHING)
    first_noun = targets[0][1]
    has_plural_verb = len(targets) > 1 or is_plural(first_noun)
    text = "They are " if has_plural_verb else "It is "
    phrases = []
    last = len(targets) - 1
    for number, (name, _) in enumerate(targets):
        if number > 0:
            text += " and " if number == last else ", "
        start = len(text)
        text += f"the {name}"
        phrases.append(Phrase(start=start, stop=len(text), regions=(number,)))
    text += ", shown whole." if amodal else "."
    return Answer(text=text, phrases=tuple(phrases))
