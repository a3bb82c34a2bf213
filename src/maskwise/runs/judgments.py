"""Verdicts on the answers of a run: those of a judge, in its folder, and those of people, as JSON lines.

`judgments-JUDGE.json` holds what a judge says of every answer, `pairs-OTHER-JUDGE.json` which of two runs answers
better. docs/guides/judging.md describes both files, and the JSON lines of people's verdicts, which `maskwise judge
calibrate` reads.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from maskwise.errors import StoreError
from maskwise.runs.files import read_json
from maskwise.runs.run import Run
from maskwise.runs.schema import MetricValue

JUDGMENTS_FORMAT = "maskwise judgments 1"
PAIRS_FORMAT = "maskwise pairs 1"

CRITERIA = ("correct", "grounded", "complete", "hallucinated")
"""What is judged of an answer; of the last one less is better."""

AGAIN = "delete it and judge again (`maskwise judge`)"
"""What to do about a file that cannot be read."""

MAX_NAME = 80
"""Characters of a judge's name in a file name; file systems allow 255."""

MAX_LINE = 2**16
"""Characters of a line of people's verdicts: a verdict with a long reason has about 1,000."""

Origin = Literal["no answer", "words", "model", "judge"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a judge says of one answer.

    correct: it names what the question asks for, and nothing else in its place. grounded: its words and its masks mean
    the same things. complete: it names all targets. hallucinated: it names something that is not in the image.
    certain: False where a judge that only compares words cannot tell. origin: who decided: there was no answer to
    judge, the words settled it, a language model was asked, or a judge of the user's own.
    """

    sample: str
    correct: bool
    grounded: bool
    complete: bool
    hallucinated: bool
    reason: str
    certain: bool = True
    origin: Origin = "words"


class Unjudged(msgspec.Struct, frozen=True, kw_only=True):
    """An answer without a verdict, and why: the judge refused, failed, or had nothing to compare with."""

    sample: str
    reason: str


class JudgeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Who judged what, when, and at which cost.

    prompt: SHA-256 of what a language model is told. predictions, dataset: SHA-256 of what was judged. calls: requests
    to the model, answers of the ledger included; cost: US dollars, None where no price is known.
    """

    judge: str
    date: str
    maskwise: str
    predictions: str
    dataset: str
    model: str | None = None
    prompt: str | None = None
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0


class CriterionCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """A judge beside people on one criterion.

    questions: answers that people judged. confusion: people's verdicts by the judge's on the same answer (rows: no,
    yes) and their own (columns: no, yes). kappa: Cohen's, of the judge and people; people_kappa: of people among
    themselves, where two judged the same answer. corrected: the share that people would find, from the judge's verdicts
    on all answers and those of people on some; people: the same from people's verdicts alone. weight: how far the
    judge's verdicts were used, between 0 and 1.
    """

    questions: int
    confusion: tuple[tuple[int, int], tuple[int, int]]
    agreement: float
    kappa: MetricValue
    people_kappa: MetricValue
    judge: MetricValue
    corrected: MetricValue
    people: MetricValue
    weight: float


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """A judge, measured by people's verdicts. verdicts: SHA-256 of their file."""

    date: str
    verdicts: str
    reviewers: int
    questions: int
    criteria: dict[str, CriterionCalibration]


class Judgments(msgspec.Struct, frozen=True, kw_only=True):
    """`judgments-JUDGE.json`. shares: of each criterion, over all answers with a verdict."""

    format: str
    info: JudgeInfo
    shares: dict[str, MetricValue]
    verdicts: list[Verdict]
    unjudged: list[Unjudged] = []
    calibration: Calibration | None = None

    @property
    def doubtful(self) -> int:
        """Verdicts of which the judge is not certain."""
        return sum(not verdict.certain for verdict in self.verdicts)

    def count(self, origin: Origin) -> int:
        """Verdicts of one origin that are certain."""
        return sum(
            verdict.certain and verdict.origin == origin for verdict in self.verdicts
        )


class PairVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which of two answers to a question is better. agreed: False where the two orders of asking disagree, a tie."""

    sample: str
    better: Literal["this", "other", "tie"]
    reason: str
    agreed: bool = True
    origin: Origin = "words"


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """`pairs-OTHER-JUDGE.json`. other: the folder of the other run; wins: share of questions that this run wins, ties
    counted half.
    """

    format: str
    info: JudgeInfo
    other: str
    wins: MetricValue
    verdicts: list[PairVerdict]
    unjudged: list[Unjudged] = []

    def count(self, better: Literal["this", "other", "tie"]) -> int:
        """Questions with this result."""
        return sum(verdict.better == better for verdict in self.verdicts)

    @property
    def disagreements(self) -> int:
        """Ties that come from an answer that depends on the order."""
        return sum(not verdict.agreed for verdict in self.verdicts)


class PeopleVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of people's verdicts. run: name of the run's folder; a criterion that was not asked about is None."""

    run: str
    sample: str
    reviewer: str
    correct: bool | None = None
    grounded: bool | None = None
    complete: bool | None = None
    hallucinated: bool | None = None
    reason: str | None = None


def judgments_path(folder: Path, judge: str) -> Path:
    """The file of a judge's verdicts in a run folder."""
    return folder / f"judgments-{_file_name(judge)}.json"


def pairs_path(folder: Path, judge: str, other: str) -> Path:
    """The file of a comparison with another run."""
    return folder / f"pairs-{_file_name(other)}-{_file_name(judge)}.json"


def _file_name(text: str) -> str:
    """The text as a part of a file name: it cannot leave the folder or begin with a dot."""
    return re.sub(r"[^\w.+-]+", "-", text).strip(".-")[:MAX_NAME] or "judge"


def read_judgments(run: Run) -> list[Judgments]:
    """What judges said of a run's present predictions, by name of the file; empty for a run in memory.

    Verdicts on other predictions, of an earlier version of the folder, are left out.
    """
    files = _list_files(run, "judgments-*.json")
    judgments = [read_json(path, Judgments, JUDGMENTS_FORMAT, AGAIN) for path in files]
    return [item for item in judgments if is_current(run, item.info)]


def read_pairs(run: Run) -> list[Pairs]:
    """The comparisons of a run's present predictions with those of other runs."""
    files = _list_files(run, "pairs-*.json")
    pairs = [read_json(path, Pairs, PAIRS_FORMAT, AGAIN) for path in files]
    return [item for item in pairs if is_current(run, item.info)]


def _list_files(run: Run, pattern: str) -> list[Path]:
    return [] if run.folder is None else sorted(run.folder.glob(pattern))


def is_current(run: Run, info: JudgeInfo) -> bool:
    """Whether verdicts are about the predictions and the dataset that the run has now."""
    return (info.predictions, info.dataset) == (
        run.predictions_info.sha256,
        run.info.dataset.sha256,
    )


def read_people_verdicts(path: Path) -> Iterator[PeopleVerdict]:
    """People's verdicts from a file of JSON lines; StoreError names the first line that is none."""
    try:
        with open(path, encoding="utf-8") as file:
            number = 0
            while line := file.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    raise StoreError(
                        f"{path}, line {number} has more than {MAX_LINE} characters; expected a verdict in JSON"
                    )
                if line.strip():
                    yield _decode_verdict(path, number, line)
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from None


def _decode_verdict(path: Path, number: int, line: str) -> PeopleVerdict:
    try:
        return msgspec.json.decode(line, type=PeopleVerdict)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StoreError(
            f'{path}, line {number}: {error}; expected {{"run": ..., "sample": ..., "reviewer": ..., "correct": true}} '
            "(docs/guides/judging.md)"
        ) from None
