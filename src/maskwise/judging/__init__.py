"""Judge the answers of a run: by their words, by a language model, and by how far people agree with either.

    judgments = judge("runs/mine")                              # offline: names, synonyms, kinds, masks
    judgments = judge("runs/mine", "openai/gpt-5-mini", budget=2.0)
    calibrate("runs/mine", "verdicts.jsonl", "openai/gpt-5-mini")

A judge is a function from an `AnswerCase` to a `Verdict`; `maskwise ls judges` lists them. A language model is asked
only about answers that the words do not settle.
"""

from maskwise.judging.case import AnswerCase
from maskwise.judging.judge_run import judge
from maskwise.runs.judgments import Judgments, Verdict

__all__ = ["AnswerCase", "Judgments", "Verdict", "judge"]
