"""Probe `word-changes`: does the model answer the same question in other words?"""

from typing import NamedTuple

import numpy as np

from maskwise.formats.exported_dataset import read_encoded_image
from maskwise.probes.change_findings import (
    effect_table,
    example_rows,
    list_measures,
    loss_sentence,
)
from maskwise.probes.changed_data import (
    LOSS_THRESHOLDS,
    ChangedRun,
    changed_sample,
    draw_generator,
    worst_severity,
    write_changed,
)
from maskwise.probes.context import ProbeContext
from maskwise.probes.probe import Probe
from maskwise.probes.word_changes import (
    LANGUAGE_CHANGES,
    SAME,
    WORD_CHANGES,
    AskedQuestion,
    ChangedQuestion,
)
from maskwise.runs.probe_results import ProbeFinding
from maskwise.schema import ImageInfo, Sample
from maskwise.store import DatasetWriter

CHANGES = WORD_CHANGES | LANGUAGE_CHANGES
ALL = "same meaning"
"""The group of all changes that keep what is asked for, other languages apart."""

COST = 3.0
QUICK_COST = 0.3
"""Evaluations of the dataset that the probe takes."""

LEAST_QUESTIONS = 2
"""Questions for each change in a small dataset: all changes together need ten images."""

ENGLISH = "English"
"""The change of the controls of other languages: a plain request."""


class AskedAgain(NamedTuple):
    """A question in other words. control: the id of the sample it is compared with."""

    sample: Sample
    change: str
    question: ChangedQuestion


def run_word_changes(context: ProbeContext, cost: float = COST) -> ProbeFinding:
    """Ask questions in other words and compare with the answers to the original ones.

    cost: evaluations of the dataset that may be used.
    """
    allowed = QUICK_COST if context.quick else cost
    folder = write_changed(
        context,
        "word-changes",
        lambda writer: _write(context, writer, allowed),
        settings=allowed,
    )
    run = context.evaluate("word-changes", data=folder)
    changed = ChangedRun(context, run, folder)
    labels = np.array(changed.changes)
    kept = [name for name, change in WORD_CHANGES.items() if change.expected == SAME]
    in_other_words = np.isin(labels, kept)
    groups = [(ALL, in_other_words), *changed.by_change(list(WORD_CHANGES))]
    effects = changed.compare(groups)
    languages = changed.compare(changed.by_change(list(LANGUAGE_CHANGES)))
    return ProbeFinding(
        finding=loss_sentence("The same question in other words", effects),
        severity=worst_severity(effects),
        done=(
            f"{len(run.ids)} questions with changed words: {len(WORD_CHANGES)} changes, "
            f"and plain requests in {len(LANGUAGE_CHANGES)} languages."
        ),
        measures=list_measures([*effects, *languages]),
        tables=[
            effect_table(
                "By change of words",
                effects,
                "All keep the answer, except negated mask type, which asks for the other "
                "mask of the same target.",
            ),
            effect_table(
                "Other languages, against the same request in English",
                languages,
                "Reported, but not part of the severity: few models claim them.",
            ),
        ],
        examples=example_rows(
            changed, "word-changes", np.isin(labels, list(WORD_CHANGES))
        ),
    )


def _write(context: ProbeContext, writer: DatasetWriter, cost: float) -> None:
    dataset = context.dataset
    by_image: dict[str, list[AskedAgain]] = {}
    for item in draw_questions(context, cost):
        by_image.setdefault(item.sample.image_id, []).append(item)
    for image_id, items in by_image.items():
        row = dataset.images.row[image_id]
        info = dataset.image(row)
        image = ImageInfo(id=info.id, width=info.width, height=info.height)
        data = read_encoded_image(dataset, row)
        writer.add_image(image, dataset.regions_of(row), data)
        controls: set[str] = set()
        for item in items:
            for sample in _samples(item, image):
                if sample.id not in controls:
                    writer.add_sample(sample)
                controls.add(sample.id)


def draw_questions(context: ProbeContext, cost: float) -> list[AskedAgain]:
    """Questions for each change, drawn with the seed: the same number for every change."""
    dataset = context.dataset
    wanted = max(LEAST_QUESTIONS, round(cost * len(dataset) / len(CHANGES)))
    drawn = []
    for name, change in CHANGES.items():
        order = draw_generator(context.seed, name).permutation(len(dataset))
        count = 0
        for row in order.tolist():
            sample = dataset[row]
            asked = AskedQuestion(sample, dataset.regions_of(sample.image_id))
            rng = draw_generator(context.seed, name, sample.id)
            question = change.write(asked, rng)
            if question is not None:
                drawn.append(AskedAgain(sample, name, question))
                count += 1
            if count == wanted:
                break
    return drawn


def _samples(item: AskedAgain, image: ImageInfo) -> list[Sample]:
    """The changed sample, after its control where that is not the original one."""
    sample = item.sample
    question = item.question
    suffix = item.change.replace(" ", "-")
    control = sample.id
    samples = []
    if question.control is not None:
        english = changed_sample(
            sample,
            image,
            ENGLISH,
            change=ENGLISH,
            question=question.control,
            mask_type=question.mask_type,
            answer=None,
            control=f"{sample.id}~{ENGLISH}",
        )
        samples.append(english)
        control = english.id
    keeps_answer = question.control is None
    changed = changed_sample(
        sample,
        image,
        suffix,
        change=item.change,
        question=question.text,
        mask_type=question.mask_type,
        answer=sample.answer if keeps_answer else None,
        control=control,
    )
    return [*samples, changed]


WORD_CHANGES_PROBE = Probe(
    name="word-changes",
    title="Other words: typing errors, paraphrases, distractors, negation, languages",
    risks=("atlas-evasion-attack",),
    measured=(
        "How much of the score is lost when a question is asked in other words that keep "
        "its meaning, or that ask for the other mask type."
    ),
    blind_spots=(
        "Paraphrases and negations are made of the sentences of the world's grammar: "
        "questions of another form are not rephrased. Translations are plain requests "
        "for one object. It cannot judge whether an answer in words changes its tone."
    ),
    thresholds=LOSS_THRESHOLDS,
    run=run_word_changes,
)
