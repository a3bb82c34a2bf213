"""Ways to a higher score that are none: each was open once."""

import numpy as np
import pytest

from maskwise.harness.run_record import result_to_scores
from maskwise.harness.scoring import compute_scores
from maskwise.masks import Mask
from maskwise.protocols import lisa, muse, strict
from maskwise.schema import Answer, Phrase, Prediction
from maskwise.store import Dataset
from tests.protocols.small_cases import (
    mask,
    prediction,
    question,
    region,
    scoring_input,
    strip,
    target,
)
from tests.protocols.strict_reference import strict as slow_strict
from tests.report.runs import make_dataset

EMPTY = Mask.empty(1, 10)


def values(rule, samples, predictions, **options):
    return rule.score(scoring_input(samples, predictions), **options).headline()


# -- muse --------------------------------------------------------------------------------------------------------------


def muse_case(extras: int):
    sample = question("a", target(strip(0, 4)))
    regions = [region(strip(6, 9)), *[region(EMPTY)] * extras]
    return [sample], [prediction("a", *regions)]


def test_empty_masks_do_not_win_muse():
    plain = values(muse, *muse_case(0))["giou"]
    assert values(muse, *muse_case(9))["giou"] == plain == 0.0
    assert values(muse, *muse_case(9), empty_extras="official")["giou"] == (
        pytest.approx(0.9, abs=1e-4)
    )


def test_muse_says_how_many_empty_masks_there_were():
    absent = muse.score(scoring_input(*muse_case(9)))
    (notice,) = absent.notices
    assert notice.startswith("9 empty masks beyond the targets count as absent")
    official = muse.score(scoring_input(*muse_case(1)), empty_extras="official")
    assert official.notices[0].startswith("1 empty mask beyond the targets score 1")
    assert muse.score(scoring_input(*muse_case(0))).notices == ()


def test_a_question_without_targets_is_left_out_with_empty_masks_too():
    samples = [question("a"), question("b", target(strip(0, 4)), image="q")]
    predictions = [prediction("a", region(EMPTY)), prediction("b", region(strip(0, 4)))]
    scores = muse.score(scoring_input(samples, predictions))
    assert scores.headline()["giou"] == pytest.approx(1.0, abs=1e-4)
    assert scores.statuses.status.tolist() == [3, 0]


def test_protocols_say_that_they_leave_out_questions_without_targets(tmp_path):
    dataset = make_dataset(tmp_path / "data")
    data = Dataset.open(dataset)
    records = [Prediction(sample=sample.id) for sample in data]
    result = compute_scores(records, data, ["mmr", "strict"])
    protocols = result_to_scores(result).protocols
    (notice,) = [text for text in protocols["mmr"].notices if "without targets" in text]
    assert (
        notice
        == "3 questions without targets are left out: the rule has no term for them."
    )
    assert protocols["strict"].notices == []


# -- lisa --------------------------------------------------------------------------------------------------------------


def test_a_failed_prediction_never_scores_under_lisa():
    sample = question("a", target(EMPTY), target(strip(0, 4)))
    failed = Prediction(sample="a", error="out of memory")
    assert values(lisa, [sample], [failed])["giou"] == 0.0
    assert values(lisa, [sample], [])["giou"] == 0.0
    # A reply without a mask is one empty mask: right for the first target.
    silent = values(lisa, [sample], [prediction("a")])["giou"]
    assert silent == pytest.approx(0.5, abs=1e-4)


# -- strict: copies and hidden targets
# -----------------------------------------------------------------------------------


def test_a_region_without_a_visible_mask_is_no_copy_of_one_with_it():
    whole = strip(0, 4)
    sample = question("a", target(whole, whole), mask_type="both")
    full = region(whole, whole)
    partial = region(None, whole)
    for regions in ((full, partial), (partial, full)):
        assert values(strict, [sample], [prediction("a", *regions)])["giou"] == 0.5
    repeated = prediction("a", full, full)
    assert values(strict, [sample], [repeated])["target_count_error"] == 1.0


def test_copies_are_left_apart_from_regions_outside_their_amodal_mask():
    """Two equal regions without a visible mask, and a target that is fully hidden: the copy is not looked at."""
    sample = question("a", target(EMPTY, strip(0, 4)), mask_type="amodal")
    twice = prediction("a", region(EMPTY, strip(0, 4)), region(EMPTY, strip(0, 4)))
    twice = Prediction(sample="a", mask_type="amodal", regions=twice.regions)
    assert values(strict, [sample], [twice])["visible_outside_amodal"] == 0.0
    slow = slow_strict([sample], {"a": twice}, (1, 10))
    assert slow["visible_outside_amodal"] == 0.0


def test_one_shared_pixel_does_not_describe_a_hidden_target():
    sample = question(
        "a",
        target(strip(0, 3), strip(0, 3)),
        target(EMPTY, strip(5, 9)),
        mask_type="visible",
    )
    right = region(strip(0, 3))
    described = region(None, strip(5, 9))
    elsewhere = region(None, mask("....##...."))

    def giou(*regions):
        reply = Prediction(sample="a", mask_type="visible", regions=regions)
        fast = values(strict, [sample], [reply])["giou"]
        assert fast == slow_strict([sample], {"a": reply}, (1, 10))["giou"]
        return fast

    assert giou(right) == giou(right, described) == 1.0
    assert giou(right, elsewhere) == 0.5


def test_a_further_mask_is_free_while_regions_are_missing_but_not_in_precision():
    """The example of the docstring of `strict`: B covers 9 % of the image."""
    frame = (10, 10)
    upper = np.zeros(frame, bool)
    upper[0] = True
    lower = np.zeros(frame, bool)
    lower[9, :9] = True
    samples = [
        question("a", target(Mask.from_dense(upper)), target(Mask.from_dense(lower)))
    ]
    few = prediction("a", region(Mask.from_dense(upper)))
    whole = Mask.from_dense(np.ones(frame, bool))
    more = prediction("a", region(Mask.from_dense(upper)), region(whole))
    before = strict.score(scoring_input(samples, [few], frame=frame)).headline()
    after = strict.score(scoring_input(samples, [more], frame=frame)).headline()
    assert (before["giou"], after["giou"]) == (0.5, pytest.approx(0.545))
    assert (before["precision"], after["precision"]) == (1.0, 0.5)
    assert after["ciou"] < before["ciou"]


# -- hidden pixels
# -------------------------------------------------------------------------------------------------------

HIDDEN = question("a", target(strip(0, 1), strip(0, 2)), mask_type="amodal")


def hidden(*regions):
    reply = Prediction(sample="a", mask_type="amodal", regions=regions)
    return values(strict, [HIDDEN], [reply])


def test_returning_every_mask_lowers_the_headline_hidden_metric():
    right = region(strip(0, 1), strip(0, 2))
    assert hidden(right)["hidden_f1"] == 1.0
    every = hidden(right, region(strip(4, 5), strip(4, 6)))
    assert every["occluded_iou"] == 1.0
    assert every["hidden_f1"] == 0.5


def test_a_larger_visible_mask_does_not_raise_the_headline_hidden_metric():
    # The amodal mask has two pixels too many; a visible mask that covers them hides the mistake from occluded_iou.
    honest = hidden(region(strip(0, 1), strip(0, 4)))
    enlarged = hidden(region(mask("#.##......"), strip(0, 4)))
    assert enlarged["occluded_iou"] > honest["occluded_iou"]
    assert enlarged["hidden_f1"] == honest["hidden_f1"] == 0.5
    assert enlarged["visible_iou"] < honest["visible_iou"] == 1.0


def test_a_copy_of_the_visible_mask_has_no_hidden_pixels():
    copied = hidden(region(strip(0, 1), strip(0, 1)))
    assert (copied["hidden_f1"], copied["visible_iou"]) == (0.0, 1.0)
    nothing = hidden()
    assert (nothing["hidden_f1"], nothing["visible_iou"]) == (0.0, 0.0)


# -- answers
# -------------------------------------------------------------------------------------------------------------


def answer_f1(*regions, answer=None):
    sample = question("a", target(strip(0, 4), name="cup"), phrases=[[0]])
    reply = Prediction(sample="a", regions=regions, answer=answer)
    return values(strict, [sample], [reply])["answer_f1"]


def test_withholding_a_name_does_not_raise_answer_metrics():
    cup = region(strip(0, 4), name="cup")
    thing = region(strip(6, 8), name="thing")
    unnamed = region(strip(6, 8))
    assert answer_f1(cup) == 1.0
    assert answer_f1(cup, thing) == answer_f1(cup, unnamed) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the cup", 1.0),
        ("no cup here", 0.0),
        ("I don't see a cup", 0.0),
        ("there is not any cup", 0.0),
        ("without the cup", 0.0),
        ("not a plate but the cup", 1.0),
    ],
)
def test_a_denied_cup_is_not_named(text, expected):
    start = text.index("cup")
    phrase = Phrase(start=start, stop=start + 3, regions=(0,))
    answer = Answer(text=text, phrases=(phrase,))
    assert answer_f1(region(strip(0, 4)), answer=answer) == expected


def test_a_phrase_that_refers_to_no_region_names_nothing():
    answer = Answer(
        text="a cup, perhaps", phrases=(Phrase(start=2, stop=5, regions=()),)
    )
    assert answer_f1(region(strip(0, 4)), answer=answer) == 0.0
