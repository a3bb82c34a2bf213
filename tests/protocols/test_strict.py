"""Strict: by hand on tiny images, and against a slow reference on random ones."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwise.errors import ProtocolError
from maskwise.masks import Mask, Masks
from maskwise.protocols import GroundTruth, PredictionColumns, ScoringInput, strict
from maskwise.protocols.metrics import FAILED, MISSING, SCORED
from tests.protocols import strict_reference
from tests.protocols.small_cases import (
    answer_with_phrases,
    prediction,
    question,
    region,
    scoring_input,
    strip,
    target,
)
from tests.protocols.strategies import FRAME, datasets, predictions_for


def metrics(samples, predictions, frame=(1, 10), **options):
    return strict.score(
        scoring_input(samples, predictions, frame), **options
    ).headline()


def test_pairs_are_the_best_in_total_and_all_masks_count():
    # Targets 0-4 and 4-8; masks 4-8 (IoU 1 with the second), 0-5 (4/5 with the first, 1/8 with the second), one extra.
    # Best total 1 + 0.8, divided by max(3, 2).
    found = metrics(
        [question("a", target(strip(0, 4)), target(strip(4, 8)))],
        [
            prediction(
                "a", region(strip(4, 8)), region(strip(0, 5)), region(strip(9, 10))
            )
        ],
    )
    assert found["giou"] == pytest.approx((1 + 0.8) / 3)
    # Pixels: intersections 4 + 4; areas of the masks 4 + 5 + 1, of the targets 4 + 4: 8 / (18 - 8).
    assert found["ciou"] == pytest.approx(8 / 10)
    assert found["precision"] == pytest.approx(2 / 3)
    assert found["recall"] == 1.0
    assert found["f1"] == pytest.approx(2 * 2 / (3 + 2))
    assert found["target_count_error"] == 1.0
    assert (found["p@0.5"], found["p@0.6"], found["p@0.7"]) == (1.0, 1.0, 0.0)


def test_greedy_choice_is_not_the_best():
    a = strip(0, 7, 16)
    b = strip(2, 9, 16)
    found = metrics(
        [question("x", target(a), target(b))],
        [prediction("x", region(strip(1, 8, 16)), region(strip(0, 5, 16)))],
        (1, 16),
    )
    # Mask 1 (1-8): A 6/8, B 6/8; mask 2 (0-5): A 5/7, B 3/9. Taking A first for mask 1 would leave 3/9 for mask 2.
    assert found["giou"] == pytest.approx((6 / 8 + 5 / 7) / 2)


def test_no_target():
    samples = [
        question("quiet"),
        question("loud"),
        question("deaf", target(strip(0, 4))),
    ]
    predictions = [
        prediction("quiet", no_target=True),
        prediction("loud", region(strip(0, 2))),
        prediction("deaf"),
    ]
    found = metrics(samples, predictions)
    assert found["giou"] == pytest.approx(1 / 3)
    assert found["no_target_accuracy"] == 0.5
    assert found["target_accuracy"] == 0.0


def test_no_target_removes_the_regions_and_empty_masks_are_no_regions():
    samples = [question("a", target(strip(0, 4))), question("b"), question("c")]
    empty = Mask.empty(1, 10)
    predictions = [
        prediction("a", region(strip(0, 4)), no_target=True),
        prediction("b", region(strip(0, 4)), no_target=True),
        prediction("c", region(empty)),
    ]
    found = metrics(samples, predictions)
    assert found["giou"] == pytest.approx(2 / 3)
    assert found["no_target_accuracy"] == 1.0


EMPTY = Mask.empty(1, 10)


class TestEmptyMasks:
    """An empty mask counts as absent: adding one changes nothing."""

    def test_a_region_counts_if_any_of_its_masks_has_pixels(self):
        for extra in ({}, {"visible": EMPTY}):
            wrong = prediction(
                "a", region(amodal=strip(0, 4), **extra), mask_type="visible"
            )
            assert metrics([question("a")], [wrong])["giou"] == 0.0

    @pytest.mark.parametrize("requested", ["visible", "amodal"])
    def test_adding_empty_masks_and_regions_changes_no_metric(self, requested):
        targets = (target(EMPTY, strip(6, 9)), target(strip(0, 2), strip(0, 4)))
        samples = [
            question("a", *targets, mask_type=requested),
            question("b", mask_type=requested),
        ]
        plain = [
            prediction("a", region(amodal=strip(0, 3))),
            prediction("b", region(strip(0, 2))),
        ]
        padded = [
            prediction(
                "a",
                region(EMPTY, strip(0, 3)),
                region(EMPTY),
                region(EMPTY, EMPTY, name="cup"),
            ),
            prediction("b", region(strip(0, 2), EMPTY), region(amodal=EMPTY)),
        ]
        assert metrics(samples, plain) == metrics(samples, padded)

    def test_a_target_without_requested_pixels_is_no_target(self):
        samples = [question("a", target(EMPTY, strip(0, 4)))]
        assert metrics(samples, [prediction("a", no_target=True)])["giou"] == 1.0
        assert metrics(samples, [prediction("a", region(strip(0, 4)))])["giou"] == 0.0
        assert metrics(samples, [prediction("a")])["no_target_accuracy"] == 1.0

    def test_a_region_may_describe_a_fully_hidden_target(self):
        samples = [question("a", target(EMPTY, strip(0, 4)))]
        hidden = prediction("a", region(EMPTY, strip(0, 4)), mask_type="visible")
        assert metrics(samples, [hidden])["giou"] == 1.0
        elsewhere = prediction("a", region(EMPTY, strip(6, 8)), mask_type="visible")
        assert metrics(samples, [elsewhere])["giou"] == 0.0


def test_a_copied_region_is_not_matched():
    # One mask over two targets has IoU 0.5 with each; returning it twice must not find both.
    samples = [question("a", target(strip(0, 4)), target(strip(4, 8)))]
    once = metrics(samples, [prediction("a", region(strip(0, 8)))])
    twice = metrics(samples, [prediction("a", *[region(strip(0, 8))] * 2)])
    assert (once["giou"], twice["giou"]) == (0.25, 0.25)
    assert (once["target_count_error"], twice["target_count_error"]) == (1.0, 2.0)
    equal = [question("a", target(strip(0, 4)), target(strip(0, 4)))]
    assert metrics(equal, [prediction("a", *[region(strip(0, 4))] * 2)])["giou"] == 1.0


def test_equal_targets_without_visible_masks_are_two_where_both_are_asked_for():
    hidden = [target(amodal=strip(0, 4)) for _ in range(2)]
    samples = [question("a", *hidden, mask_type="both")]
    regions = [region(amodal=strip(0, 4))] * 2
    found = metrics(samples, [prediction("a", *regions, mask_type="both")])
    assert found["giou"] == 1.0


def test_missing_and_failed_predictions_score_zero_and_are_counted():
    samples = [question(name, target(strip(0, 4))) for name in "abcd"] + [question("e")]
    wrong_size = prediction("c", region(strip(0, 4, 12)))
    predictions = [
        prediction("a", region(strip(0, 4))),
        prediction("b", error="out of memory"),
        wrong_size,
    ]
    scores = strict.score(scoring_input(samples, predictions))
    assert scores.headline()["giou"] == pytest.approx(1 / 5)
    assert scores.headline()["ciou"] == pytest.approx(4 / 16)
    assert scores.statuses.status.tolist() == [SCORED, FAILED, FAILED, MISSING, MISSING]
    rows = scores.rows(list("abcde"))
    assert [row.reason for row in rows] == [
        None,
        "out of memory",
        "mask size differs from the image",
        "no prediction",
        "no prediction",
    ]
    assert [row.value for row in rows] == [1.0, None, None, None, None]
    assert [row.weight for row in rows] == [1.0] * 5


def test_malformed_masks_fail_their_sample_only():
    ground_truth = GroundTruth.from_samples(
        [question(name, target(strip(0, 4))) for name in "abc"], [(1, 10)] * 3
    )
    predictions = PredictionColumns.from_predictions(
        ground_truth, [prediction(name, region(strip(0, 4))) for name in "abc"]
    )
    masks = predictions.visible.masks
    data = masks.data.copy()
    data[masks.start[1]] = ord("~")
    broken = predictions.visible._replace(
        masks=Masks(data, masks.start, masks.stop, masks.size)
    )
    scores = strict.score(
        ScoringInput(ground_truth, replace(predictions, visible=broken))
    )
    assert scores.statuses.status.tolist() == [SCORED, FAILED, SCORED]
    assert scores.statuses.reasons[scores.statuses.reason[1]] == "malformed mask"


def test_forced_predictions_are_refused():
    with pytest.raises(ProtocolError, match=r"free answers only.*'a'"):
        metrics(
            [question("a", target(strip(0, 4)))],
            [prediction("a", region(strip(0, 4)), forced=True)],
        )


class TestMaskType:
    """The target is visible on 0-2 and whole on 0-8."""

    def sample(self, wanted):
        return question("a", target(strip(0, 2), strip(0, 8)), mask_type=wanted)

    @pytest.mark.parametrize("wanted", ["visible", "amodal", "both"])
    @pytest.mark.parametrize("said", ["visible", "amodal", "both"])
    def test_only_the_requested_type_scores(self, wanted, said):
        scores = strict.score(
            scoring_input(
                [self.sample(wanted)],
                [prediction("a", region(strip(0, 2), strip(0, 8)), mask_type=said)],
            )
        )
        assert scores.headline()["giou"] == float(wanted == said)
        assert scores.headline()["mask_type_accuracy"] == float(wanted == said)
        order = ["visible", "amodal", "both"]
        assert scores.confusion[order.index(wanted), order.index(said)] == 1
        assert scores.confusion.sum() == 1

    def test_masks_decide_the_type_if_none_is_stated(self):
        found = metrics(
            [self.sample("amodal")], [prediction("a", region(amodal=strip(0, 8)))]
        )
        assert (found["giou"], found["mask_type_accuracy"]) == (1.0, 1.0)
        found = metrics(
            [self.sample("amodal")], [prediction("a", region(visible=strip(0, 8)))]
        )
        assert (found["giou"], found["mask_type_accuracy"]) == (0.0, 0.0)

    def test_lenient_scores_the_requested_mask(self):
        masks = prediction("a", region(strip(0, 2), strip(0, 8)), mask_type="both")
        assert (
            metrics([self.sample("amodal")], [masks], mask_type="lenient")["giou"]
            == 1.0
        )

    def test_either_type_is_accepted_where_nothing_is_hidden(self):
        sample = question("a", target(strip(0, 4), strip(0, 4)), mask_type="amodal")
        for stated in ("visible", None):
            visible = prediction("a", region(strip(0, 4)), mask_type=stated)
            found = metrics([sample], [visible])
            assert (found["giou"], found["ciou"], found["mask_type_accuracy"]) == (
                1.0,
                1.0,
                0.0,
            )
            assert metrics([sample], [visible], unoccluded="exact")["giou"] == 0.0
        hidden = question(
            "a",
            target(strip(0, 4), strip(0, 4)),
            target(strip(6, 7), strip(6, 8)),
            mask_type="amodal",
        )
        assert metrics([hidden], [prediction("a", region(strip(0, 4)))])["giou"] == 0.0

    def test_equal_apart_from_ignored_pixels_is_not_hidden(self):
        equal = target(strip(0, 4), strip(0, 6))
        sample = question("a", equal, mask_type="amodal", ignore=strip(4, 6))
        assert metrics([sample], [prediction("a", region(strip(0, 4)))])["giou"] == 1.0

    def test_both_needs_both(self):
        half = prediction("a", region(visible=strip(0, 2)), mask_type="both")
        assert metrics([self.sample("both")], [half])["giou"] == 0.5
        # cIoU: shared 2 of visible 2, amodal 8.
        assert metrics([self.sample("both")], [half])["ciou"] == pytest.approx(2 / 10)


class TestHidden:
    """The target is visible on 0-4 and hidden on 4-8."""

    def metrics(self, *regions):
        return metrics(
            [question("a", target(strip(0, 4), strip(0, 8)), mask_type="amodal")],
            [prediction("a", *regions, mask_type="amodal")],
        )

    def test_only_the_hidden_region_counts(self):
        # Predicted whole 0-6 with front 0-4: hidden 4-6 of 4-8. Whole IoU 6/8, a copy of the front 4/8.
        found = self.metrics(region(strip(0, 4), strip(0, 6)))
        assert found["giou"] == 0.75
        assert found["occluded_iou"] == 0.5
        assert found["occluded_ciou"] == 0.5
        assert found["copy_gain"] == pytest.approx(6 / 8 - 4 / 8)
        assert found["visible_outside_amodal"] == 0.0

    def test_without_a_visible_mask_nothing_hidden_is_right(self):
        for visible in (None, EMPTY):
            found = self.metrics(region(visible, strip(0, 8)))
            assert (found["giou"], found["occluded_iou"], found["occluded_ciou"]) == (
                1.0,
                0.0,
                0.0,
            )
            assert found["copy_gain"] == pytest.approx(8 / 8 - 4 / 8)
            assert found["visible_outside_amodal"] == 1.0

    def test_a_fully_hidden_target_needs_no_visible_mask(self):
        sample = question("a", target(EMPTY, strip(0, 8)), mask_type="amodal")
        found = metrics([sample], [prediction("a", region(amodal=strip(0, 8)))])
        assert (found["occluded_iou"], found["visible_outside_amodal"]) == (1.0, 0.0)

    def test_ignored_pixels_are_not_outside(self):
        sample = question(
            "a",
            target(strip(0, 4), strip(0, 8)),
            mask_type="amodal",
            ignore=strip(8, 10),
        )
        leaving = region(strip(0, 4) | strip(8, 10), strip(0, 8))
        found = metrics([sample], [prediction("a", leaving, mask_type="amodal")])
        assert found["visible_outside_amodal"] == 0.0

    def test_copying_the_visible_mask_gains_nothing(self):
        found = self.metrics(region(strip(0, 4), strip(0, 4)))
        assert (found["occluded_iou"], found["copy_gain"]) == (0.0, 0.0)

    def test_a_visible_mask_that_leaves_the_amodal_one_is_counted(self):
        found = self.metrics(
            region(strip(0, 4), strip(1, 8)), region(strip(0, 4), strip(0, 8))
        )
        assert found["visible_outside_amodal"] == 0.5

    def test_a_missed_target_counts_zero(self):
        assert self.metrics()["occluded_iou"] == 0.0


def test_boundary_iou_is_stricter_than_iou_on_thick_masks():
    square = Mask.from_dense(np.pad(np.ones((60, 60), bool), 20))
    larger = Mask.from_dense(np.pad(np.ones((64, 64), bool), 18))
    found = metrics(
        [question("a", target(square))], [prediction("a", region(larger))], (100, 100)
    )
    assert found["giou"] == pytest.approx(3600 / 4096)
    # Bands are 3 wide (2 % of the diagonal 141). Square: 60^2 - 54^2 = 684; larger: 64^2 - 58^2 = 732.
    # The larger band covers rings 0-2 outside in, the square's rings 2-4: they share ring 2, 60^2 - 58^2 = 236.
    assert found["boundary_iou"] == pytest.approx(236 / (684 + 732 - 236))


def test_names_are_compared_as_a_bag():
    targets = target(strip(0, 2), name="cup:handle"), target(strip(4, 6), name="dog")
    sample = question("a", *targets, phrases=[[0], [1]])
    cat = region(strip(4, 6), name="a cat")
    found = metrics(
        [sample], [prediction("a", region(strip(0, 2), name="The cup_2's handle"), cat)]
    )
    assert (found["answer_exact"], found["answer_f1"]) == (0.0, 0.5)
    words = prediction(
        "a",
        region(strip(0, 2)),
        region(strip(4, 6)),
        answer=answer_with_phrases([[0], [1]]),
    )
    assert metrics([sample], [words])["answer_f1"] == 0.0


def test_a_prediction_without_names_is_wrong():
    samples = [
        question(name, target(strip(0, 2), name="cup"), phrases=[[0]]) for name in "ab"
    ]
    named = prediction("a", region(strip(0, 2), name="cup"))
    for other in (
        [prediction("b", region(strip(0, 2)))],
        [prediction("b", error="failed")],
        [],
    ):
        found = metrics(samples, [named, *other])
        assert (found["answer_exact"], found["answer_f1"]) == (0.5, 0.5)


def test_questions_without_an_answer_have_no_answer_metrics():
    sample = question("a", target(strip(0, 2), name="target"))
    found = metrics([sample], [prediction("a", region(strip(0, 2), name="target"))])
    assert (found["answer_exact"], found["answer_f1"]) == (None, None)


def test_calibration_counts_regions_by_their_score():
    sample = question("a", target(strip(0, 4)))
    regions = [
        region(strip(0, 4), score=0.95),
        region(strip(6, 8), score=0.92),
        region(strip(9, 10), score=0.05),
    ]
    scores = strict.score(scoring_input([sample], [prediction("a", *regions)]))
    table = strict.sum_calibration(scores.calibration)
    assert table[9].tolist() == pytest.approx([2, 1.87, 1, 1.0])
    assert table[0].tolist() == pytest.approx([1, 0.05, 0, 0.0])
    assert table[1:9].sum() == 0


def test_a_pair_for_both_types_may_match_by_the_amodal_masks_alone():
    """The visible masks are ignored entirely: what is left of the pair is perfect."""
    ignored = strip(3, 4)
    sample = question(
        "a", target(ignored, strip(0, 4)), mask_type="both", ignore=ignored
    )
    result = metrics([sample], [prediction("a", region(ignored, strip(0, 4)))])
    assert result["giou"] == 1.0
    assert result["recall"] == 1.0


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_strict_agrees_with_the_slow_reference(data):
    samples = data.draw(datasets())
    predictions = data.draw(predictions_for(samples))
    found = strict.score(
        scoring_input(samples, predictions, FRAME, threads=2)
    ).headline()
    slow = strict_reference.strict(
        samples, {one.sample: one for one in predictions}, FRAME
    )
    for name, value in slow.items():
        assert found[name] == (
            None if value is None else pytest.approx(value, abs=1e-12)
        ), name


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_the_order_of_masks_does_not_matter(data):
    samples = data.draw(datasets())
    predictions = data.draw(predictions_for(samples))
    plain = [
        one if one.answer is None else type(one)(sample=one.sample, regions=one.regions)
        for one in predictions
    ]
    mixed = [
        type(one)(
            **{
                **as_dict(one),
                "regions": tuple(data.draw(st.permutations(one.regions))),
            }
        )
        for one in plain
    ]
    first = strict.score(scoring_input(samples, plain, FRAME)).headline()
    again = strict.score(scoring_input(samples, mixed, FRAME)).headline()
    for name in ("giou", "answer_f1", "mask_type_accuracy", "target_count_error"):
        assert again[name] == (
            None if first[name] is None else pytest.approx(first[name], abs=1e-12)
        ), name


def as_dict(record):
    return {name: getattr(record, name) for name in record.__struct_fields__}
