"""The words that decide, with the kind of cue and its polarity."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.language.intent import classify_intent, split_at_cues
from maskwise.language.intent.cues import POLARITIES
from maskwise.training.intent.evaluate import evaluate
from maskwise.training.intent.sentences import HandWrittenSentence

CUES = [
    ("Segment all of the bus, hidden part included.", "hidden part", "completeness"),
    ("Segment the horse as if the fence were not there.", "as if", "removal"),
    ("Look through the fence and outline the horse.", "through", "see-through"),
    ("How far does the sofa really reach behind the table?", "far", "extent"),
    ("Continue the rope where the boat covers it.", "Continue", "continuation"),
    ("Restore the missing corner of the book.", "missing", "restoration"),
    ("Only the visible part of the bus.", "visible", "visible-only"),
    ("The chair, but leave out the hidden parts.", "leave out", "exclusion"),
    ("Which animal is half covered by the fence?", "covered", "mention"),
]


@pytest.mark.parametrize(("question", "words", "kind"), CUES)
def test_each_kind_of_cue_is_found(question: str, words: str, kind: str) -> None:
    (prediction,) = classify_intent([question])
    span = next(span for span in prediction.spans if words in span.text)
    assert (span.kind, prediction.cue) == (kind, kind)
    assert span.text == question[span.start : span.end]
    wanted = "amodal" if span.polarity == "amodal" else "visible"
    assert prediction.mask_type == wanted


PLAIN = [
    "In a city landscape, what structure serves to connect two areas separated by a river?",
    "the red mug",
    "Which of these would keep the rain off?",
]


@pytest.mark.parametrize("question", PLAIN)
def test_a_plain_question_is_visible_without_cue(question: str) -> None:
    (prediction,) = classify_intent([question])
    assert (prediction.mask_type, prediction.cue) == ("visible", "none")
    assert prediction.spans == ()
    assert prediction.probability > 0.9


@given(
    st.text()
    | st.lists(st.sampled_from(["whole", "hidden", "not", "see", "it", "."])).map(
        " ".join
    )
)
def test_the_amodal_mask_needs_evidence(question: str) -> None:
    (prediction,) = classify_intent([question])
    end = 0
    for span in prediction.spans:
        assert end <= span.start < span.end
        assert span.text == question[span.start : span.end]
        assert span.polarity == POLARITIES[span.kind]
        end = span.end
    amodal = [span for span in prediction.spans if span.polarity == "amodal"]
    assert bool(amodal) == (prediction.mask_type == "amodal")
    pieces = split_at_cues(question, prediction.spans)
    assert "".join(text for text, _ in pieces) == question


@pytest.mark.parametrize(
    ("name", "sentences", "right"),
    # test_f and test_g have many plain questions with words of doing and wholeness in other senses. Errors on the first
    # three were read before the weights were last trained; test_h was opened afterwards.
    [
        ("test_d", 400, 0.95),
        ("test_f", 404, 0.95),
        ("test_g", 204, 0.94),
        ("test_h", 200, 0.93),
    ],
)
def test_sentences_kept_aside_are_classified_with_their_cues(
    name: str, sentences: int, right: float
) -> None:
    file = Path(__file__).with_name(f"{name}.jsonl")
    lines = file.read_bytes().splitlines()
    accuracy = evaluate(
        [msgspec.json.decode(line, type=HandWrittenSentence) for line in lines]
    )
    assert accuracy.sentences == sentences
    assert accuracy.right >= right * accuracy.sentences
    assert accuracy.sure_and_right >= 0.95 * accuracy.sure
    assert accuracy.overlapping >= 0.85 * accuracy.cues
