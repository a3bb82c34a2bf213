"""Official protocols on images of one row, each figure worked by hand in a comment."""

import numpy as np
import pytest

from maskwise.errors import ProtocolError
from maskwise.protocols import aura, get, gres, gsva, lisa, mmr, muse, r2sm, union
from maskwise.protocols.metrics import SCORED, UNSCORED
from tests.protocols.scenes import evaluate, question, reply, seen, strip, target

EPS = 1e-4


def headline(scores):
    return scores.headline()


class TestLisa:
    def test_pairs_by_order_and_drops_extra_masks(self):
        # Target 0-4, prediction 2-6: intersection 2, union 6, IoU 1/3. The second prediction is free.
        evaluation = evaluate(
            [question("a", target(strip(0, 4)))], [reply("a", seen(strip(2, 6)), seen(strip(0, 10)))]
        )
        found = headline(lisa.score(evaluation))
        assert found["giou"] == pytest.approx(1 / 3, abs=EPS)
        assert found["ciou"] == pytest.approx(2 / 6, abs=EPS)

    def test_a_target_without_a_mask_costs_giou_but_not_ciou(self):
        # Two targets, one perfect mask: gIoU (1 + 0) / 2; cIoU looks only at the pair, 4 / 4.
        evaluation = evaluate(
            [question("a", target(strip(0, 4)), target(strip(6, 9)))], [reply("a", seen(strip(0, 4)))]
        )
        found = headline(lisa.score(evaluation))
        assert found["giou"] == pytest.approx(0.5, abs=EPS)
        assert found["ciou"] == pytest.approx(1.0, abs=EPS)

    def test_ignored_pixels_are_removed_from_both(self):
        # Target 0-4, prediction 0-8, ignore 4-6: of the prediction 0-4 and 6-8 are left: 4 / 6.
        evaluation = evaluate(
            [question("a", target(strip(0, 4)), ignore=strip(4, 6))], [reply("a", seen(strip(0, 8)))]
        )
        assert headline(lisa.score(evaluation))["giou"] == pytest.approx(4 / 6, abs=EPS)

    def test_overlapping_pieces_are_neither_class(self):
        # Pieces 0-4 and 2-6 overlap on 2-4, which has value 2: the target is 0-2 and 4-6, 4 pixels.
        # Predicting 0-6: intersection 4, union 6 + 4 - 4 = 6. Leaving 2-4 out costs nothing: 4 / 4.
        pieces = target(strip(0, 6), overlap=strip(2, 4))
        all_of_it = evaluate([question("a", pieces)], [reply("a", seen(strip(0, 6)))])
        assert headline(lisa.score(all_of_it))["giou"] == pytest.approx(4 / 6, abs=EPS)
        without = evaluate([question("a", pieces)], [reply("a", seen(strip(0, 2) | strip(4, 6)))])
        assert headline(lisa.score(without))["giou"] == pytest.approx(1.0, abs=EPS)

    def test_no_target_is_one_empty_mask(self):
        samples = [question("a"), question("b")]
        evaluation = evaluate(samples, [reply("a"), reply("b", seen(strip(0, 3)))])
        found = headline(lisa.score(evaluation))
        assert found["giou"] == pytest.approx(0.5, abs=EPS)  # (1 + 0) / 2
        assert found["ciou"] == 0.0  # 0 / 3

    def test_a_missing_reply_counts_zero_and_is_unscored(self):
        evaluation = evaluate(
            [question("a", target(strip(0, 4))), question("b", target(strip(0, 4)))],
            [reply("a", seen(strip(0, 4)))],
        )
        scores = lisa.score(evaluation)
        assert headline(scores)["giou"] == pytest.approx(0.5, abs=EPS)
        assert scores.verdicts.status.tolist() == [SCORED, UNSCORED]
        assert scores.rows(["a", "b"])[1].value is None
        assert scores.rows(["a", "b"])[1].reason == "no reply"

    def test_float32_sums_drift_from_exact_ones(self):
        samples = [question(str(k), target(strip(0, 3 + k % 5)), image=str(k)) for k in range(3000)]
        replies = [reply(str(k), seen(strip(1, 7))) for k in range(3000)]
        evaluation = evaluate(samples, replies)
        exact, legacy = lisa.score(evaluation), lisa.score(evaluation, legacy_float32=True)
        assert headline(legacy)["giou"] != headline(exact)["giou"]
        assert headline(legacy)["giou"] == pytest.approx(headline(exact)["giou"], rel=1e-4)


class TestMmr:
    def test_a_missing_mask_shifts_the_questions_after_it(self):
        # Targets A, B of question 1 and C of question 2, of one image; predictions A and C.
        # In one list: A with A (1), C with B (0), nothing with C (0): gIoU 1/3.
        samples = [
            question("1", target(strip(0, 2)), target(strip(3, 5))),
            question("2", target(strip(6, 9))),
        ]
        replies = [reply("1", seen(strip(0, 2))), reply("2", seen(strip(6, 9)))]
        scores = mmr.score(evaluate(samples, replies))
        assert headline(scores)["giou"] == pytest.approx(1 / 3, abs=EPS)
        # cIoU: pairs A, A (2 / 2) and B, C (0 / 2 + 3).
        assert headline(scores)["ciou"] == pytest.approx(2 / 7, abs=EPS)

    def test_a_image_without_any_mask_is_left_out(self):
        samples = [
            question("1", target(strip(0, 2)), image="p"),
            question("2", target(strip(0, 2)), image="q"),
        ]
        scores = mmr.score(evaluate(samples, [reply("1", seen(strip(0, 2))), reply("2")]))
        assert headline(scores)["giou"] == pytest.approx(1.0, abs=EPS)
        assert scores.verdicts.status.tolist() == [SCORED, UNSCORED]
        assert scores.metrics["giou"].denominator.tolist() == [1, 0]

    def test_questions_of_a_image_need_not_lie_together(self):
        apart = [
            question("1", target(strip(0, 2)), image="p"),
            question("2", target(strip(2, 4)), image="q"),
            question("3", target(strip(4, 6)), image="p"),
        ]
        replies = [
            reply("1", seen(strip(0, 2)), seen(strip(4, 6))),
            reply("2", seen(strip(2, 4))),
            reply("3"),
        ]
        assert headline(mmr.score(evaluate(apart, replies)))["giou"] == pytest.approx(1.0, abs=EPS)


class TestMuse:
    def test_left_overs_count_and_the_divisor_is_the_images(self):
        # Question 1: one target met (IoU 1), one extra mask (0). Question 2: one target missed (0).
        # Pairs: 1 + 0 + 0, divisor max(2 masks, 2 targets) = 2, although three pairs were scored.
        samples = [question("1", target(strip(0, 2))), question("2", target(strip(4, 6)))]
        replies = [reply("1", seen(strip(7, 9)), seen(strip(0, 2))), reply("2")]
        scores = muse.score(evaluate(samples, replies))
        assert headline(scores)["giou"] == pytest.approx(1 / 2, abs=EPS)
        assert headline(scores)["ciou"] == pytest.approx(2 / 6, abs=EPS)
        assert scores.metrics["giou"].denominator.sum() == pytest.approx(2)

    def test_raw_logits_need_logits(self):
        evaluation = evaluate([question("1")], [reply("1", seen(strip(0, 2)))])
        with pytest.raises(ProtocolError, match="needs predictions with logits"):
            muse.score(evaluation, raw_logits=True)


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
        replies = [
            reply("a", no_target=True),
            reply("b", seen(strip(0, 3))),
            reply("c", seen(strip(0, 4)), no_target=True),
            reply("d", seen(strip(2, 6))),
        ]
        found = headline(gres.score(evaluate(samples, replies)))
        assert found["giou"] == pytest.approx((1 + 0 + 0 + 1 / 3) / 4)
        assert found["ciou"] == pytest.approx(2 / (0 + 3 + 4 + 6))
        assert found["n_acc"] == 0.5
        assert found["t_acc"] == 0.5
        assert found["p@0.7"] == 0.0

    def test_accuracies_are_zero_without_a_no_target_question(self):
        found = headline(
            gres.score(evaluate([question("a", target(strip(0, 4)))], [reply("a", seen(strip(0, 4)))]))
        )
        assert (found["n_acc"], found["t_acc"]) == (0.0, 0.0)
        assert found["no_target_accuracy"] is None
        assert found["target_accuracy"] == 1.0


class TestGsva:
    def test_a_wrong_rejection_keeps_its_iou(self):
        samples = [question("a", target(strip(0, 4))), question("b")]
        replies = [reply("a", seen(strip(0, 4)), no_target=True), reply("b", seen(strip(0, 3)))]
        evaluation = evaluate(samples, replies)
        found = headline(gsva.score(evaluation))
        assert found["giou"] == pytest.approx(0.5, abs=EPS)
        assert found["ciou"] == pytest.approx(4 / 7, abs=EPS)
        assert (found["n_acc"], found["t_acc"]) == (0.0, 0.0)
        elsewhere = headline(gsva.score(evaluation, grefcoco=False))
        assert elsewhere["ciou"] == pytest.approx(4 / 4, abs=EPS)


class TestUnion:
    def test_number_and_order_of_masks_do_not_matter(self):
        # Targets 0-2 and 2-4, one mask 0-5: 4 / 5. Overlapping masks count their pixels once.
        samples = [question("a", target(strip(0, 2)), target(strip(2, 4)))]
        assert headline(union.score(evaluate(samples, [reply("a", seen(strip(0, 5)))])))["giou"] == 0.8
        overlapping = [reply("a", seen(strip(0, 4)), seen(strip(1, 5)))]
        assert headline(union.score(evaluate(samples, overlapping)))["giou"] == 0.8

    def test_nothing_wanted_and_nothing_drawn_is_right(self):
        samples = [question("a"), question("b")]
        assert headline(union.score(evaluate(samples, [reply("a")])))["giou"] == 0.5  # b has no reply


class TestAura:
    """One image with two questions, another with one, so that the units differ."""

    def scene(self):
        samples = [
            question("1", target(strip(0, 2), strip(0, 4)), image="p"),
            question("2", target(strip(4, 6), strip(4, 6)), image="p"),
            question("3", target(strip(6, 9), strip(6, 10)), image="q"),
        ]
        replies = [
            reply("1", seen(strip(0, 2), strip(0, 2))),  # visible 1, amodal 2 / 4
            reply("2"),  # 0, 0
            reply("3", seen(strip(6, 9), strip(6, 10))),  # 1, 1
        ]
        return evaluate(samples, replies)

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
        assert headline(aura.score(self.scene(), **options))["giou_visible"] == pytest.approx(giou)

    def test_one_phrase_may_cover_several_things(self):
        # "x" speaks of both bottles; one mask over both is right, or wrong by half if each counts alone.
        bottles = question("1", target(strip(0, 2)), target(strip(5, 7)), phrases=[[0, 1]])
        evaluation = evaluate([bottles], [reply("1", seen(strip(0, 2) | strip(5, 7)))])
        assert headline(aura.score(evaluation))["giou_visible"] == 1.0
        # Alone: the mask meets one bottle (2 / 4), the other is missed.
        alone = headline(aura.score(evaluation, phrases="instances"))
        assert alone["giou_visible"] == pytest.approx((0.5 + 0) / 2)

    def test_extra_masks_can_be_made_to_count(self):
        evaluation = evaluate(
            [question("1", target(strip(0, 2)))], [reply("1", seen(strip(0, 2)), seen(strip(5, 7)))]
        )
        assert headline(aura.score(evaluation))["giou_visible"] == 1.0
        assert headline(aura.score(evaluation, extra="count"))["giou_visible"] == 0.5

    def test_order_or_best_match(self):
        evaluation = evaluate(
            [question("1", target(strip(0, 2)), target(strip(5, 7)))],
            [reply("1", seen(strip(5, 7)), seen(strip(0, 2)))],
        )
        assert headline(aura.score(evaluation))["giou_visible"] == 1.0
        assert headline(aura.score(evaluation, matching="order"))["giou_visible"] == 0.0

    def test_answers_can_be_restricted(self):
        forced = evaluate([question("1", target(strip(0, 2)))], [reply("1", seen(strip(0, 2)), forced=True)])
        assert headline(aura.score(forced, answers="forced"))["giou"] == 1.0
        with pytest.raises(ProtocolError, match="free answers only"):
            aura.score(forced, answers="free")


class TestR2sm:
    def test_the_type_the_reply_decided_on_is_compared_with_the_type_wanted(self):
        samples = [
            question("a", target(strip(0, 2), strip(0, 8)), mask_type="amodal"),
            question("b", target(strip(0, 2), strip(0, 8)), mask_type="visible"),
        ]
        both = seen(strip(0, 2), strip(0, 8))
        undecided = evaluate(samples, [reply("a", both), reply("b", both)])
        # Undecided shows the visible mask: 2 / 8 where the whole shape is wanted.
        found = headline(r2sm.score(undecided))
        assert (found["giou_amodal"], found["giou_visible"]) == (0.25, 1.0)
        assert headline(r2sm.score(undecided, reply_mask="wanted"))["giou"] == 1.0
        decided = evaluate(
            samples, [reply("a", both, mask_type="amodal"), reply("b", both, mask_type="amodal")]
        )
        found = headline(r2sm.score(decided))
        assert (found["giou_amodal"], found["giou_visible"]) == (1.0, 0.25)

    def test_several_targets_are_one_mask_unless_matched(self):
        evaluation = evaluate(
            [question("a", target(strip(0, 2)), target(strip(4, 6)))],
            [reply("a", seen(strip(0, 2) | strip(4, 6)))],
        )
        assert headline(r2sm.score(evaluation))["giou"] == 1.0
        assert headline(r2sm.score(evaluation, matching="iou"))["giou"] == pytest.approx((0.5 + 0) / 2)


def test_an_unknown_option_or_value_is_refused():
    evaluation = evaluate([question("a")], [reply("a")])
    with pytest.raises(ProtocolError, match="it takes image, question, mask"):
        get("aura").score(evaluation, unit="region")
    with pytest.raises(Exception, match="unknown option of aura 'units'"):
        get("aura").score(evaluation, units="mask")
    with pytest.raises(Exception, match="unknown protocol 'lise'"):
        get("lise")


def test_every_protocol_takes_an_empty_set():
    evaluation = evaluate([], [])
    for name in ("strict", "lisa", "mmr", "muse", "gres", "gsva", "union", "aura", "r2sm"):
        assert len(get(name).score(evaluation)) == 0
        assert get(name).score(evaluation).headline()["giou"] is None


def test_a_wanted_mask_that_is_not_known_leaves_the_sample_unscored():
    samples = [question("a", target(strip(0, 2)), mask_type="amodal")]
    evaluation = evaluate(samples, [reply("a", seen(amodal=strip(0, 2)))])
    for name in ("strict", "lisa", "mmr", "muse", "gres", "gsva", "union", "r2sm"):
        scores = get(name).score(evaluation)
        assert scores.verdicts.status.tolist() == [UNSCORED], name
        assert not np.any(scores.metrics["giou"].denominator), name
