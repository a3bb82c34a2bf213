"""The language of questions: how varied they are, beside those that people wrote for ReasonSeg.

`python bench/question_language.py [DATASET ...]` builds questions about the bundled world and about dataset folders,
and prints a table. Distinct: different strings in 100 questions. Vocabulary: different words in 350 random questions.
"""

import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.sizes import choose
from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.filters import FilterOptions, apply_filters, limit_repeats
from maskwise.builder.grammar_writer import write_with_grammar
from maskwise.builder.pipeline import merge_results
from maskwise.builder.recipe import Recipe
from maskwise.builder.text_baseline import TextBaseline, measure_text_alone
from maskwise.language.tokens import split_words
from maskwise.registry import RECIPES
from maskwise.store import Dataset
from maskwise.world.dataset import bundled

SHARED = Path(os.environ.get("MASKWISE_SHARED", Path(__file__).parents[2] / "shared"))
REASONSEG = SHARED / "data/reasonseg_train_questions.txt"
"""Real questions, where they are present beside the project."""

SAMPLE = 350
"""Questions among which words are counted: ReasonSeg's val and test parts of that size."""

IMAGES = choose(10_000, 6)


class Written(NamedTuple):
    """The questions of one build."""

    drafts: Sequence[Draft]
    images: int
    text_alone: TextBaseline


def sections(datasets: Sequence[str] = ()) -> Iterator[str]:
    """One table with all recipes on each dataset, and ReasonSeg where it is present."""
    lines = [
        "## Language of the questions (`bench/question_language.py`)",
        "",
        "| questions | number | per image | several targets, % | words | distinct per 100 | "
        "vocabulary of 350 | text alone, % |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    if REASONSEG.is_file():
        people = REASONSEG.read_text(encoding="utf-8").splitlines()
        lines.append(_row("ReasonSeg train, by people", people))
    for path in (bundled(), *datasets):
        data = Dataset.open(path)
        for recipe in RECIPES.load_all(Recipe).values():
            written = _write(recipe, data)
            if written.drafts:
                lines.append(_built_row(f"{recipe.name} on {data.name}", written))
    yield "\n".join(lines) + "\n"


def _write(recipe: Recipe, data: Dataset) -> Written:
    images = {}
    results = []
    for row in range(min(IMAGES, len(data.images))):
        image = SourceImage.of(data, row)
        images[image.info.id] = image
        drafts = write_with_grammar(recipe, image)
        results.append(apply_filters(drafts, {image.info.id: image}))
    kept = limit_repeats(merge_results(results), FilterOptions()).kept
    return Written(kept, len(images), measure_text_alone(kept, images))


def _built_row(name: str, written: Written) -> str:
    questions = [draft.question for draft in written.drafts]
    several = sum(len(draft.region_ids) > 1 for draft in written.drafts)
    return _row(
        name,
        questions,
        per_image=f"{len(questions) / written.images:.1f}",
        several=f"{100 * several / len(questions):.0f}",
        text_alone=f"{100 * written.text_alone.by_string / len(questions):.1f}",
    )


def _row(
    name: str,
    questions: Sequence[str],
    *,
    per_image: str = "",
    several: str = "",
    text_alone: str = "",
) -> str:
    shuffled = random.Random(0).sample(questions, len(questions))
    words = [split_words(question) for question in shuffled]
    vocabulary = {word for question in words[:SAMPLE] for word in question}
    length = sum(map(len, words)) / len(words)
    distinct = 100 * len(set(questions)) / len(questions)
    counted = f"{len(vocabulary):,}" if len(questions) >= SAMPLE else "(too few)"
    return (
        f"| {name} | {len(questions):,} | {per_image} | {several} | {length:.1f} | "
        f"{distinct:.0f} | {counted} | {text_alone} |"
    )


if __name__ == "__main__":
    print("\n".join(sections(sys.argv[1:])))
