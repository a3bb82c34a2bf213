"""Official protocols on images of one row, each value computed by hand in a comment."""

from itertools import permutations

import numpy as np
import pytest

from maskwise.errors import ProtocolError
from maskwise.masks import Mask
from maskwise.protocols import (
    aura,
    find_protocol,
    gres,
    gsva,
    lisa,
    mmr,
    muse,
    r2sm,
    union,
)
from maskwise.protocols.metrics import EXCLUDED, MISSING, SCORED
from tests.protocols.small_cases import (
    answer_with_phrases,
    prediction,
    question,
    region,
    scoring_input,
    strip,
    target,
)

EPS = 1e-4


def headline(scores):
    return scores.headline()


class TestLisa:
    def test_pairs_by_order_and_drops_extra_masks(self):
        # Target 0-4, prediction 2-6: intersection 2, union 6, IoU 1/3. The second prediction is free.
        inputs = scoring_input(
            [question("a", target(strip(0, 4)))],
            [prediction("a", region(strip(2, 6)), region(strip(0, 10)))],
        )
        found = headline(lisa.score(inputs))
        assert found["giou"] == pytest.approx(1 / 3, abs=EPS)
        assert found["ciou"] == pytest.approx(2 / 6, abs=EPS)

    def test_a_target_without_a_mask_costs_giou_but_not_ciou(self):
        # Two targets, one perfect mask: gIoU (1 + 0) / 2; cIoU looks only at the pair, 4 / 4.
        inputs = scoring_input(
            [question("a", target(strip(0, 4)), target(strip(6, 9)))],
            [prediction("a", region(strip(0, 4)))],
        )
        found = headline(lisa.score(inputs))
        assert found["giou"] == pytest.approx(0.5, abs=EPS)
        assert found["ciou"] == pytest.approx(1.0, abs=EPS)

    def test_ignored_pixels_are_removed_from_both(self):
        # Target 0-4, prediction 0-8, ignore 4-6: of the prediction 0-4 and 6-8 are left: 4 / 6.
        inputs = scoring_input(
            [question("a", target(strip(0, 4)), ignore=strip(4, 6))],
            [prediction("a", region(strip(0, 8)))],
        )
        assert headline(lisa.score(inputs))["giou"] == pytest.approx(4 / 6, abs=EPS)

    def test_overlapping_pieces_are_neither_class(self):
        # Pieces 0-4 and 2-6 overlap on 2-4, which has value 2: the target is 0-2 and 4-6, 4 pixels.
        # Predicting 0-6: intersection 4, union 6 + 4 - 4 = 6. Leaving 2-4 out costs nothing: 4 / 4.
        pieces = target(strip(0, 6), overlap=strip(2, 4))
        all_of_it = scoring_input(
            [question("a", pieces)], [prediction("a", region(strip(0, 6)))]
        )
        assert headline(lisa.score(all_of_it))["giou"] == pytest.approx(4 / 6, abs=EPS)
        without = scoring_input(
            [question("a", pieces)],
            [prediction("a", region(strip(0, 2) | strip(4, 6)))],
        )
        assert headline(lisa.score(without))["giou"] == pytest.approx(1.0, abs=EPS)

    def test_no_target_is_one_empty_mask(self):
        samples = [question("a"), question("b")]
        inputs = scoring_input(
            samples, [prediction("a"), prediction("b", region(strip(0, 3)))]
        )
        found = headline(lisa.score(inputs))
        assert found["giou"] == pytest.approx(0.5, abs=EPS)  # (1 + 0) / 2
        assert found["ciou"] == 0.0  # 0 / 3

    def test_no_mask_counts_as_one_empty_mask(self):
        samples = [question(name, target(strip(0, 4)), image=name) for name in "abcd"]
        right = [prediction(name, region(strip(0, 4))) for name in "ab"]
        found = headline(lisa.score(scoring_input(samples, [*right, prediction("c")])))
        assert found["giou"] == pytest.approx(2 / 4, abs=EPS)
        assert found["ciou"] == pytest.approx(
            8 / 16, abs=EPS
        )  # c and d add their targets to the union
        assert found["no_mask"] == 0.5

    def test_empty_targets_make_a_no_target_question(self):
        empty = question("a", target(Mask.empty(1, 10)), target(Mask.empty(1, 10)))
        for predictions, expected in (
            ([prediction("a", no_target=True)], 1.0),
            ([], 0.0),
        ):
            found = headline(lisa.score(scoring_input([empty], predictions)))
            assert found["giou"] == pytest.approx(expected, abs=EPS)

    def test_a_missing_prediction_counts_as_zero(self):
        inputs = scoring_input(
            [question("a", target(strip(0, 4))), question("b", target(strip(0, 4)))],
            [prediction("a", region(strip(0, 4)))],
        )
        scores = lisa.score(inputs)
        assert headline(scores)["giou"] == pytest.approx(0.5, abs=EPS)
        assert scores.statuses.status.tolist() == [SCORED, MISSING]
        assert scores.rows(["a", "b"])[1].value is None
        assert scores.rows(["a", "b"])[1].reason == "no prediction"

    def test_float32_sums_drift_from_exact_ones(self):
        samples = [
            question(str(k), target(strip(0, 3 + k % 5)), image=str(k))
            for k in range(3000)
        ]
        predictions = [prediction(str(k), region(strip(1, 7))) for k in range(3000)]
        inputs = scoring_input(samples, predictions)
        exact = lisa.score(inputs)
        legacy = lisa.score(inputs, legacy_float32=True)
        assert headline(legacy)["giou"] != headline(exact)["giou"]
        assert headline(legacy)["giou"] == pytest.approx(
            headline(exact)["giou"], rel=1e-4
        )


class TestMmr:
    def test_a_missing_mask_shifts_the_questions_after_it(self):
        # Targets A, B of question 1 and C of question 2, of one image; predictions A and C.
        # In one list: A with A (1), C with B (0), nothing with C (0): gIoU 1/3.
        samples = [
            question("1", target(strip(0, 2)), target(strip(3, 5))),
            question("2", target(strip(6, 9))),
        ]
        predictions = [
            prediction("1", region(strip(0, 2))),
            prediction("2", region(strip(6, 9))),
        ]
        scores = mmr.score(scoring_input(samples, predictions))
        assert headline(scores)["giou"] == pytest.approx(1 / 3, abs=EPS)
        # cIoU: pairs A, A (2 / 2) and B, C (0 / 2 + 3).
        assert headline(scores)["ciou"] == pytest.approx(2 / 7, abs=EPS)

    def test_an_image_without_any_mask_is_left_out(self):
        samples = [
            question("1", target(strip(0, 2)), image="p"),
            question("2", target(strip(0, 2)), image="q"),
        ]
        scores = mmr.score(
            scoring_input(
                samples, [prediction("1", region(strip(0, 2))), prediction("2")]
            )
        )
        assert headline(scores)["giou"] == pytest.approx(1.0, abs=EPS)
        assert scores.statuses.status.tolist() == [SCORED, EXCLUDED]
        assert scores.metrics["giou"].denominator.tolist() == [1, 0]

    def test_questions_of_an_image_need_not_lie_together(self):
        apart = [
            question("1", target(strip(0, 2)), image="p"),
            question("2", target(strip(2, 4)), image="q"),
            question("3", target(strip(4, 6)), image="p"),
        ]
        predictions = [
            prediction("1", region(strip(0, 2)), region(strip(4, 6))),
            prediction("2", region(strip(2, 4))),
            prediction("3"),
        ]
        assert headline(mmr.score(scoring_input(apart, predictions)))[
            "giou"
        ] == pytest.approx(1.0, abs=EPS)


class TestMuse:
    def test_left_overs_count_and_the_divisor_is_the_images(self):
        # Question 1: one target met (IoU 1), one extra mask (0). Question 2: one target missed (0).
        # Pairs: 1 + 0 + 0, divisor max(2 masks, 2 targets) = 2, although three pairs were scored.
        samples = [
            question("1", target(strip(0, 2))),
            question("2", target(strip(4, 6))),
        ]
        predictions = [
            prediction("1", region(strip(7, 9)), region(strip(0, 2))),
            prediction("2"),
        ]
        scores = muse.score(scoring_input(samples, predictions))
        assert headline(scores)["giou"] == pytest.approx(1 / 2, abs=EPS)
        assert headline(scores)["ciou"] == pytest.approx(2 / 6, abs=EPS)
        assert scores.metrics["giou"].denominator.sum() == pytest.approx(2)

    def test_raw_logits_need_logits(self):
        inputs = scoring_input([question("1")], [prediction("1", region(strip(0, 2)))])
        with pytest.raises(ProtocolError, match="needs predictions with logits"):
            muse.score(inputs, raw_logits=True)


class TestGres:
    def test_the_four_cases(self):
        # Recognised empty: 1, adds nothing. Missed empty: 0, union 3. Wrongly called empty: 0, union 4 (mask kept).
        # Found: 2 / 6.
        samples = [
            question("a"),
            question("b"),
            question("c", target(strip(0, 4))),
            question("d", target(strip(0, 2)), target(strip(2, 4))),
        ]
        predictions = [
            prediction("a", no_target=True),
            prediction("b", region(strip(0, 3))),
            prediction("c", region(strip(0, 4)), no_target=True),
            prediction("d", region(strip(2, 6))),
        ]
        found = headline(gres.score(scoring_input(samples, predictions)))
        assert found["giou"] == pytest.approx((1 + 0 + 0 + 1 / 3) / 4)
        assert found["ciou"] == pytest.approx(2 / (0 + 3 + 4 + 6))
        assert found["n_acc"] == 0.5
        assert found["t_acc"] == 0.5
        assert found["p@0.7"] == 0.0

    def test_accuracies_are_zero_without_a_no_target_question(self):
        found = headline(
            gres.score(
                scoring_input(
                    [question("a", target(strip(0, 4)))],
                    [prediction("a", region(strip(0, 4)))],
                )
            )
        )
        assert (found["n_acc"], found["t_acc"]) == (0.0, 0.0)
        assert found["no_target_accuracy"] is None
        assert found["target_accuracy"] == 1.0


class TestGsva:
    def test_a_wrong_rejection_keeps_its_iou(self):
        samples = [question("a", target(strip(0, 4))), question("b")]
        predictions = [
            prediction("a", region(strip(0, 4)), no_target=True),
            prediction("b", region(strip(0, 3))),
        ]
        inputs = scoring_input(samples, predictions)
        found = headline(gsva.score(inputs))
        assert found["giou"] == pytest.approx(0.5, abs=EPS)
        assert found["ciou"] == pytest.approx(4 / 7, abs=EPS)
        assert (found["n_acc"], found["t_acc"]) == (0.0, 0.0)
        elsewhere = headline(gsva.score(inputs, grefcoco=False))
        assert elsewhere["ciou"] == pytest.approx(4 / 4, abs=EPS)


class TestUnion:
    def test_number_and_order_of_masks_do_not_matter(self):
        # Targets 0-2 and 2-4, one mask 0-5: 4 / 5. Overlapping masks count their pixels once.
        samples = [question("a", target(strip(0, 2)), target(strip(2, 4)))]
        assert (
            headline(
                union.score(
                    scoring_input(samples, [prediction("a", region(strip(0, 5)))])
                )
            )["giou"]
            == 0.8
        )
        overlapping = [prediction("a", region(strip(0, 4)), region(strip(1, 5)))]
        assert headline(union.score(scoring_input(samples, overlapping)))["giou"] == 0.8

    def test_no_target_and_no_mask_is_right(self):
        samples = [question("a"), question("b")]
        assert (
            headline(union.score(scoring_input(samples, [prediction("a")])))["giou"]
            == 0.5
        )  # b has no reply


class TestAura:
    """One image with two questions, another with one, so that the units differ."""

    def scene(self):
        samples = [
            question("1", target(strip(0, 2), strip(0, 4)), image="p"),
            question("2", target(strip(4, 6), strip(4, 6)), image="p"),
            question("3", target(strip(6, 9), strip(6, 10)), image="q"),
        ]
        predictions = [
            prediction(
                "1", region(strip(0, 2), strip(0, 2))
            ),  # visible 1, amodal 2 / 4
            prediction("2"),  # 0, 0
            prediction("3", region(strip(6, 9), strip(6, 10))),  # 1, 1
        ]
        return scoring_input(samples, predictions)

    def test_mean_over_images_by_default(self):
        found = headline(aura.score(self.scene()))
        assert found["giou_visible"] == pytest.approx(((1 + 0) / 2 + 1) / 2)
        assert found["giou_amodal"] == pytest.approx(((0.5 + 0) / 2 + 1) / 2)
        assert found["ciou_amodal"] == pytest.approx((2 + 4) / (4 + 2 + 4))

    @pytest.mark.parametrize(
        ("options", "giou"),
        [
            ({"unit": "mask"}, (1 + 0 + 1) / 3),
            ({"unit": "question"}, (1 + 0 + 1) / 3),
            ({"unmatched": "ignore"}, (1 + 1) / 2),
        ],
    )
    def test_other_readings(self, options, giou):
        assert headline(aura.score(self.scene(), **options))[
            "giou_visible"
        ] == pytest.approx(giou)

    def test_one_phrase_may_cover_several_objects(self):
        # "x" speaks of both bottles; one mask over both is right, or wrong by half if each counts alone.
        bottles = question(
            "1", target(strip(0, 2)), target(strip(5, 7)), phrases=[[0, 1]]
        )
        inputs = scoring_input(
            [bottles], [prediction("1", region(strip(0, 2) | strip(5, 7)))]
        )
        assert headline(aura.score(inputs))["giou_visible"] == 1.0
        # Alone: the mask meets one bottle (2 / 4), the other is missed.
        alone = headline(aura.score(inputs, phrases="instances"))
        assert alone["giou_visible"] == pytest.approx((0.5 + 0) / 2)

    def test_extra_masks_count_unless_ignored(self):
        inputs = scoring_input(
            [question("1", target(strip(0, 2)))],
            [prediction("1", region(strip(0, 2)), region(strip(5, 7)))],
        )
        assert headline(aura.score(inputs))["giou_visible"] == 0.5
        assert headline(aura.score(inputs))["ciou_visible"] == pytest.approx(2 / 4)
        assert headline(aura.score(inputs, extra="ignore"))["giou_visible"] == 1.0

    def test_masks_that_do_not_overlap_are_not_paired(self):
        inputs = scoring_input(
            [question("1", target(strip(0, 2)))], [prediction("1", region(strip(5, 7)))]
        )
        # An unmatched target and an extra mask: two terms, both 0.
        assert aura.score(inputs, unit="mask").metrics[
            "giou_visible"
        ].denominator.tolist() == [2]

    def test_a_member_without_an_amodal_mask_does_not_empty_the_phrase(self):
        bottles = question(
            "1",
            target(strip(0, 2), strip(0, 2)),
            target(strip(5, 7), strip(5, 7)),
            phrases=[[0, 1]],
        )
        parts = (region(strip(0, 2), strip(0, 2)), region(strip(5, 7)))
        inputs = scoring_input(
            [bottles], [prediction("1", *parts, answer=answer_with_phrases([[0, 1]]))]
        )
        found = headline(aura.score(inputs))
        assert (found["giou_visible"], found["giou_amodal"]) == (1.0, 0.5)

    def test_returning_every_region_of_the_image_is_not_perfect(self):
        targets = [strip(k, k + 1) for k in range(8)]
        samples = [
            question(str(k), target(mask, mask)) for k, mask in enumerate(targets)
        ]
        everything = [region(mask, mask) for mask in targets]
        inputs = scoring_input(
            samples, [prediction(str(k), *everything) for k in range(8)]
        )
        assert headline(aura.score(inputs))["giou"] == pytest.approx(1 / 8)

    def test_ties_do_not_depend_on_the_order_of_regions(self):
        sample = question("1", target(strip(0, 4)), target(strip(6, 8)))
        parts = [region(strip(0, 2)), region(strip(0, 8, 10)), region(strip(2, 4))]
        found = [
            headline(aura.score(scoring_input([sample], [prediction("1", *order)])))
            for order in permutations(parts)
        ]
        assert all(one == found[0] for one in found)

    def test_order_or_best_match(self):
        inputs = scoring_input(
            [question("1", target(strip(0, 2)), target(strip(5, 7)))],
            [prediction("1", region(strip(5, 7)), region(strip(0, 2)))],
        )
        assert headline(aura.score(inputs))["giou_visible"] == 1.0
        assert headline(aura.score(inputs, matching="order"))["giou_visible"] == 0.0

    def test_answers_can_be_restricted(self):
        forced = scoring_input(
            [question("1", target(strip(0, 2)))],
            [prediction("1", region(strip(0, 2)), forced=True)],
        )
        assert headline(aura.score(forced, answers="forced"))["giou"] == 1.0
        with pytest.raises(ProtocolError, match="free answers only"):
            aura.score(forced, answers="free")


class TestR2sm:
    def test_the_predicted_type_is_compared_with_the_requested_type(self):
        samples = [
            question("a", target(strip(0, 2), strip(0, 8)), mask_type="amodal"),
            question("b", target(strip(0, 2), strip(0, 8)), mask_type="visible"),
        ]
        both = region(strip(0, 2), strip(0, 8))
        undecided = scoring_input(
            samples, [prediction("a", both), prediction("b", both)]
        )
        # Undecided shows the visible mask: 2 / 8 where the whole shape is wanted.
        found = headline(r2sm.score(undecided))
        assert (found["giou_amodal"], found["giou_visible"]) == (0.25, 1.0)
        assert headline(r2sm.score(undecided, mask_type="wanted"))["giou"] == 1.0
        decided = scoring_input(
            samples,
            [
                prediction("a", both, mask_type="amodal"),
                prediction("b", both, mask_type="amodal"),
            ],
        )
        found = headline(r2sm.score(decided))
        assert (found["giou_amodal"], found["giou_visible"]) == (1.0, 0.25)

    def test_the_share_of_requested_types_is_reported(self):
        both = region(strip(0, 2), strip(0, 8))
        samples = [
            question("a", target(strip(0, 2), strip(0, 8)), mask_type="amodal"),
            question("b", target(strip(0, 2), strip(0, 8)), mask_type="visible"),
            question("c", target(strip(0, 2), strip(0, 2)), mask_type="visible"),
            question("nothing to find"),
        ]
        answers = [
            prediction("a", both, mask_type="amodal"),
            prediction("b", both),
            prediction("c", region(None, strip(0, 2))),
            prediction("nothing to find"),
        ]
        found = headline(r2sm.score(scoring_input(samples, answers)))
        # a chose the requested type, b none, c the other one; the fourth has no target.
        assert found["mask_type_accuracy"] == pytest.approx(1 / 3)
        assert found["mask_type_accuracy_amodal"] == 1.0
        assert found["mask_type_accuracy_visible"] == 0.0
        # Both masks of c are equal: the wrong type costs nothing in gIoU.
        assert found["giou_visible"] == 1.0

    def test_several_targets_are_one_mask_unless_matched(self):
        inputs = scoring_input(
            [question("a", target(strip(0, 2)), target(strip(4, 6)))],
            [prediction("a", region(strip(0, 2) | strip(4, 6)))],
        )
        assert headline(r2sm.score(inputs))["giou"] == 1.0
        assert headline(r2sm.score(inputs, matching="iou"))["giou"] == pytest.approx(
            (0.5 + 0) / 2
        )


@pytest.mark.parametrize(
    "name", ["lisa", "mmr", "muse", "gres", "gsva", "union", "r2sm"]
)
def test_the_mask_of_the_predicted_type_is_scored(name):
    samples = [question("a", target(strip(0, 2), strip(0, 8)), mask_type="amodal")]
    both = region(strip(0, 2), strip(0, 8))
    for stated, expected in (
        ("amodal", 1.0),
        ("visible", 0.25),
        ("both", 0.25),
        (None, 0.25),
    ):
        inputs = scoring_input(samples, [prediction("a", both, mask_type=stated)])
        assert headline(find_protocol(name).score(inputs))["giou"] == pytest.approx(
            expected, abs=EPS
        )
        revealed = find_protocol(name).score(inputs, mask_type="requested")
        assert headline(revealed)["giou"] == pytest.approx(1.0, abs=EPS)


@pytest.mark.parametrize("name", ["strict", "lisa", "muse", "gsva", "union", "r2sm"])
@pytest.mark.parametrize("targets", [(), (Mask.empty(1, 10),)])
def test_nothing_here_is_right_without_a_target(name, targets):
    samples = [question("a", *map(target, targets))]
    scores = find_protocol(name).score(
        scoring_input(samples, [prediction("a", no_target=True)])
    )
    if name != "muse" or targets:
        assert headline(scores)["giou"] == pytest.approx(1.0, abs=EPS)
    drawn = find_protocol(name).score(
        scoring_input(samples, [prediction("a", region(strip(0, 2)))])
    )
    assert headline(drawn)["giou"] == pytest.approx(0.0, abs=EPS)


def test_an_unknown_option_or_value_is_refused():
    inputs = scoring_input([question("a")], [prediction("a")])
    with pytest.raises(ProtocolError, match="it takes image, question, mask"):
        find_protocol("aura").score(inputs, unit="region")
    with pytest.raises(Exception, match="unknown option of aura 'units'"):
        find_protocol("aura").score(inputs, units="mask")
    with pytest.raises(Exception, match="unknown protocol 'lise'"):
        find_protocol("lise")


def test_every_protocol_takes_an_empty_set():
    inputs = scoring_input([], [])
    for name in (
        "strict",
        "lisa",
        "mmr",
        "muse",
        "gres",
        "gsva",
        "union",
        "aura",
        "r2sm",
    ):
        assert len(find_protocol(name).score(inputs)) == 0
        assert find_protocol(name).score(inputs).headline()["giou"] is None


def test_a_sample_without_the_requested_target_mask_is_excluded():
    samples = [question("a", target(strip(0, 2)), mask_type="amodal")]
    inputs = scoring_input(samples, [prediction("a", region(amodal=strip(0, 2)))])
    for name in ("strict", "lisa", "mmr", "muse", "gres", "gsva", "union", "r2sm"):
        scores = find_protocol(name).score(inputs)
        assert scores.statuses.status.tolist() == [EXCLUDED], name
        assert not np.any(scores.metrics["giou"].denominator), name
