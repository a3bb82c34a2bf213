"""What text alone gets: the targets' categories, guessed from the words of the question without the image.

The guess for a question is the commonest answer to the same question about other images; where no other image has it,
there is none. A set that is answered in this way asks for no looking.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence

import msgspec

from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.filters.repeats import content_words

Categories = tuple[str, ...]


class TextBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """Questions, and how many of them a guesser without images answers with the categories of all targets.

    by_string: from questions with the same words; by_content: from questions with the same content words. repeated:
    questions whose words occur about another image too.
    """

    questions: int
    repeated: int
    by_string: int
    by_content: int


def measure_text_alone(
    drafts: Sequence[Draft], images: Mapping[str, SourceImage]
) -> TextBaseline:
    """The baseline over the questions of a build."""
    answers = [_categories(draft, images[draft.image_id]) for draft in drafts]
    strings = _guess(drafts, answers, lambda draft: draft.question.casefold())
    contents = _guess(drafts, answers, lambda draft: content_words(draft.question))
    return TextBaseline(
        questions=len(drafts),
        repeated=sum(guess is not None for guess in strings),
        by_string=sum(map(_is_right, strings, answers)),
        by_content=sum(map(_is_right, contents, answers)),
    )


def _categories(draft: Draft, image: SourceImage) -> Categories:
    ids = (id for id in draft.region_ids if id in image.by_id)
    return tuple(sorted({image.by_id[id].name.strip() for id in ids}))


def _guess(
    drafts: Sequence[Draft],
    answers: Sequence[Categories],
    key: Callable[[Draft], Hashable],
) -> list[Categories | None]:
    """The commonest answer to each question about other images; None if no other image has it."""
    everywhere: defaultdict[Hashable, Counter[Categories]] = defaultdict(Counter)
    here: defaultdict[Hashable, Counter[Categories]] = defaultdict(Counter)
    keys = [key(draft) for draft in drafts]
    for draft, question, answer in zip(drafts, keys, answers):
        everywhere[question][answer] += 1
        here[question, draft.image_id][answer] += 1
    guesses: list[Categories | None] = []
    for draft, question in zip(drafts, keys):
        others = everywhere[question] - here[question, draft.image_id]
        guesses.append(others.most_common(1)[0][0] if others else None)
    return guesses


def _is_right(guess: Categories | None, answer: Categories) -> bool:
    return guess == answer
