"""Did the answer name the right things? Names said against names of the targets, and a judge for whole answers."""

import re
from collections.abc import Callable

import numpy as np

from maskwise.errors import ProtocolError
from maskwise.protocols.evaluation import Evaluation
from maskwise.protocols.metrics import Flags, Floats, Int64s, Metric
from maskwise.protocols.tables import Replies
from maskwise.store import Codes

Judge = Callable[[str, str, str], float]
"""Takes the question, the true answer and the reply's answer; returns how right the reply is, from 0 to 1."""

_NUMBER = re.compile(r"_\d+(?='|\b|_|$)")
_OWNER = re.compile(r"['’]s?\b")
_BREAK = re.compile(r"[\W_]+")
_ARTICLE = re.compile(r"^(?:a|an|the|some) ")


def normalise(name: str) -> str:
    """A name without case, punctuation, leading article and instance number: `The knife_1's handle` and
    `knife:handle` both give `knife handle`.
    """
    plain = _OWNER.sub("", _NUMBER.sub("", name.casefold()))
    return _ARTICLE.sub("", _BREAK.sub(" ", plain).strip())


def name_metrics(evaluation: Evaluation, judged: Flags) -> dict[str, Metric]:
    """`answer_exact`: share of replies that name exactly the targets, each as often as it is one; `answer_f1`: mean F1
    of the names. Over judged questions with targets whose reply has words: a reply without any is not judged on them.

    A reply names what its regions are called, or where they have no names what its phrases say.
    """
    truth, replies = evaluation.truth, evaluation.replies
    said_sample, said = _names_said(replies)
    words = _has_words(replies) & judged & (truth.counts > 0)
    count = len(truth)
    true_code, said_code = _common_codes(truth.names, said)
    shared = _shared(count, (truth.sample, true_code), (said_sample, said_code))
    total = truth.counts + np.bincount(said_sample, minlength=count)
    exact = words & (2 * shared == total)
    f1 = np.where(words, 2 * shared / np.maximum(total, 1), 0.0)
    return {
        "answer_exact": Metric(exact.astype(np.int64), words.astype(np.int64)),
        "answer_f1": Metric(f1, words.astype(np.int64)),
    }


def judge_metric(evaluation: Evaluation, judged: Flags, judge: Judge) -> Metric:
    """`judge`: the mean of what the judge says, over judged questions that have a true answer and a reply in words."""
    truth, replies = evaluation.truth, evaluation.replies
    if not len(truth.answers):
        raise ProtocolError("the judge needs the dataset's answers: read the truth with texts=True")
    value = np.zeros(len(truth))
    counted = np.zeros(len(truth), np.int64)
    for sample in np.flatnonzero(judged & _has_words(replies)).tolist():
        right, said = truth.answers[sample], replies.answers[sample]
        if right is not None and said is not None:
            value[sample] = judge(truth.questions[sample], right, said)
            counted[sample] = 1
            if not 0.0 <= value[sample] <= 1.0:
                raise ProtocolError(
                    f"sample {truth.ids[sample]!r}: the judge said {value[sample]}, not within 0 and 1"
                )
    return Metric(value, counted)


def _has_words(replies: Replies) -> Flags:
    words = np.zeros(len(replies), bool)
    if len(replies.answers):
        words |= np.array([text is not None for text in replies.answers], bool)
    words[replies.sample[_named(replies.names)]] = True
    return words


def _named(names: Codes) -> Flags:
    """Whether each row has a name."""
    has = np.array([name is not None for name in names.names], bool)
    named: Flags = has[names.codes] if len(has) else np.zeros(0, bool)
    return named


def _names_said(replies: Replies) -> tuple[Int64s, Codes]:
    """Sample and name of everything named: regions, and the phrases of replies none of whose regions has a name."""
    named = _named(replies.names)
    sample = replies.sample[named]
    codes, names = replies.names.codes[named], replies.names.names
    if replies.phrases is None or replies.phrases.words is None:
        return sample, Codes(codes, names)
    silent = np.ones(len(replies), bool)
    silent[sample] = False
    spoken = silent[replies.phrases.sample]
    words = replies.phrases.words
    return (
        np.concatenate([sample, replies.phrases.sample[spoken]]),
        Codes(np.concatenate([codes, words.codes[spoken] + np.int32(len(names))]), (*names, *words.names)),
    )


def _common_codes(one: Codes, other: Codes) -> tuple[Int64s, Int64s]:
    """Codes of both columns after normalising, equal where the names are."""
    code: dict[str, int] = {}

    def recode(column: Codes) -> Int64s:
        table = [code.setdefault(normalise(name or ""), len(code)) for name in column.names]
        return np.array(table, np.int64)[column.codes] if table else np.zeros(0, np.int64)

    return recode(one), recode(other)


def _shared(count: int, one: tuple[Int64s, Int64s], other: tuple[Int64s, Int64s]) -> Int64s:
    """How many names two lists have in common in each sample, repeats counted: int64 [count]."""
    width = 1 + max((int(codes.max(initial=0)) for _, codes in (one, other)), default=0)
    keys, times = np.unique(one[0] * width + one[1], return_counts=True)
    other_keys, other_times = np.unique(other[0] * width + other[1], return_counts=True)
    both, left, right = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    least: Floats = np.minimum(times[left], other_times[right]).astype(np.float64)
    return np.bincount(both // width, least, minlength=count).astype(np.int64)
