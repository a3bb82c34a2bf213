"""What the report of a run shows of the verdicts on its answers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from maskwise.errors import MaskwiseError
from maskwise.report.charts import ChartLine
from maskwise.report.judgment_text import (
    CRITERION_LABELS,
    CRITERION_MEANINGS,
    describe_calibration,
    describe_judge,
    describe_pairs,
    describe_verdicts,
)
from maskwise.report.run_data import RunData
from maskwise.runs import Run
from maskwise.runs.judgments import (
    CriterionCalibration,
    Judgments,
    Verdict,
    read_judgments,
    read_pairs,
)

MAX_EXAMPLES = 10
MAX_OF_A_REASON = 2
"""Wrong answers that a page quotes of each judge, and of each reason."""


@dataclass(frozen=True)
class WrongAnswer:
    """An answer that is not correct, and why."""

    sample: str
    question: str
    answer: str
    reason: str
    certain: bool


@dataclass(frozen=True)
class JudgeView:
    """One judge: shares, sentences, people beside it if they were asked, and examples. wrong: how many are wrong."""

    name: str
    lines: list[ChartLine]
    sentences: list[str]
    calibration: list[tuple[str, CriterionCalibration]]
    calibrated: str
    wrong: int
    examples: list[WrongAnswer]


@dataclass(frozen=True)
class JudgedView:
    """All judges of a run, and comparisons with other runs, in sentences. problem: why they cannot be read."""

    judges: list[JudgeView] = field(default_factory=list)
    pairs: list[list[str]] = field(default_factory=list)
    problem: str = ""


def view_judgments(run: Run, data: RunData | str) -> JudgedView:
    """What is shown. data: the samples of the run, for examples, or why they cannot be opened."""
    try:
        judgments = read_judgments(run)
        pairs = read_pairs(run)
    except MaskwiseError as error:
        return JudgedView(problem=str(error))
    return JudgedView(
        [_view(item, data) for item in judgments],
        [[*describe_pairs(item), describe_judge(item.info)] for item in pairs],
    )


def _view(judgments: Judgments, data: RunData | str) -> JudgeView:
    calibration = judgments.calibration
    wrong = [verdict for verdict in judgments.verdicts if not verdict.correct]
    criteria = {} if calibration is None else calibration.criteria
    return JudgeView(
        name=judgments.info.judge,
        lines=[
            ChartLine(CRITERION_LABELS[name], CRITERION_MEANINGS[name], share, None)
            for name, share in judgments.shares.items()
            if name in CRITERION_LABELS
        ],
        sentences=[describe_judge(judgments.info), *describe_verdicts(judgments)],
        calibration=[
            (CRITERION_LABELS[name], row)
            for name, row in criteria.items()
            if name in CRITERION_LABELS
        ],
        calibrated="" if calibration is None else describe_calibration(calibration),
        wrong=len(wrong),
        examples=[] if isinstance(data, str) else _examples(wrong, data),
    )


def _examples(wrong: Sequence[Verdict], data: RunData) -> list[WrongAnswer]:
    """Wrong answers with their questions; some of each reason, certain verdicts first."""
    times = Counter[str]()
    chosen = []
    for verdict in wrong:
        times[verdict.reason] += 1
        if times[verdict.reason] <= MAX_OF_A_REASON:
            chosen.append(verdict)
    chosen.sort(key=lambda item: (item.origin == "no answer", not item.certain))
    examples = []
    for verdict in chosen[:MAX_EXAMPLES]:
        row = data.dataset.samples.row.get(verdict.sample)
        if row is None:
            continue
        prediction = data.prediction(row)
        answer = prediction.answer if prediction is not None else None
        examples.append(
            WrongAnswer(
                sample=verdict.sample,
                question=data.dataset.samples.question[row],
                answer="" if answer is None else answer.text,
                reason=verdict.reason,
                certain=verdict.certain,
            )
        )
    return examples
