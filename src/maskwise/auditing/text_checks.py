"""Doubts about words: questions that occur twice, mask types against the wording, answers that do not name targets."""

from collections import defaultdict
from collections.abc import Iterator

from maskwise.auditing.doubts import Doubt
from maskwise.auditing.mask_checks import RowDoubt
from maskwise.language.category_names import find_category_name
from maskwise.language.intent import classify_intent
from maskwise.language.tokens import split_words
from maskwise.schema import Sample
from maskwise.store import MASK_TYPES, Dataset

SAME_TRUTH = 0.5
"""Strength of a doubt about a question that occurs twice with one truth: it counts double, but is not wrong."""

OTHER_TRUTH = 0.9
"""Strength where the truth differs: at most one of them is right."""

NOT_NAMED = 0.8
"""Strength where a phrase does not name its target: it may use a word that the lexicon does not have."""

NOT_IN_ANSWER = 0.4
"""Strength where no phrases are known, and a name is not in the answer: the answer may speak of it as "it"."""


def check_texts(dataset: Dataset) -> Iterator[RowDoubt]:
    """All doubts about questions and answers."""
    yield from _repeated_questions(dataset)
    yield from _mask_types(dataset)
    for row, sample in enumerate(dataset):
        yield from ((row, doubt) for doubt in _names(sample))


def _repeated_questions(dataset: Dataset) -> Iterator[RowDoubt]:
    samples = dataset.samples
    offsets = samples.targets.offsets.tolist()
    rows_of: dict[tuple[int, tuple[str, ...]], list[int]] = defaultdict(list)
    for row, question in enumerate(samples.question):
        rows_of[int(samples.image[row]), split_words(question)].append(row)
    for rows in rows_of.values():
        if len(rows) == 1:
            continue
        truths = {
            row: (
                int(samples.mask_type[row]),
                frozenset(
                    samples.targets.values[offsets[row] : offsets[row + 1]].tolist()
                ),
            )
            for row in rows
        }
        for row in rows:
            others = [other for other in rows if other != row]
            differing = [other for other in others if truths[other] != truths[row]]
            named = samples.id[(differing or others)[0]]
            if differing:
                yield (
                    row,
                    Doubt(
                        check="contradiction",
                        strength=OTHER_TRUTH,
                        message=f"{named} asks the same with another truth",
                    ),
                )
            else:
                yield (
                    row,
                    Doubt(
                        check="duplicate",
                        strength=SAME_TRUTH,
                        message=f"{named} asks the same",
                    ),
                )


def _mask_types(dataset: Dataset) -> Iterator[RowDoubt]:
    samples = dataset.samples
    for row, intent in enumerate(classify_intent(samples.question)):
        stated = MASK_TYPES[samples.mask_type[row]]
        if stated in ("both", intent.mask_type):
            continue
        if not intent.language_supported:
            continue
        spans = [repr(span.text) for span in intent.spans]
        words = f" ({', '.join(spans)})" if spans else ""
        yield (
            row,
            Doubt(
                check="mask_type",
                strength=2.0 * intent.probability - 1.0,
                message=f"the words ask for the {intent.mask_type} mask{words}, the truth is {stated}",
            ),
        )


def _names(sample: Sample) -> Iterator[Doubt]:
    """Targets that the answer does not name."""
    answer = sample.answer
    if answer is None or not answer.text.strip():
        return
    for phrase in answer.phrases:
        words = answer.text[phrase.start : phrase.stop]
        for place in phrase.regions:
            name = sample.targets[place].name
            if not name or find_category_name(words, name) is not None:
                continue
            yield Doubt(
                check="names",
                strength=NOT_NAMED,
                message=f"{words!r} stands for the target {name!r}",
            )
    if answer.phrases:
        return
    for name in {target.name for target in sample.targets if target.name}:
        if find_category_name(answer.text, name) is None:
            yield Doubt(
                check="names",
                strength=NOT_IN_ANSWER,
                message=f"the answer does not name the target {name!r}",
            )
