"""Rewards: the score of one prediction under a protocol."""

import msgspec
import numpy as np
import pytest

import maskwise as mw


@pytest.fixture(scope="module")
def data() -> mw.Dataset:
    return mw.load_dataset("world")


@pytest.fixture(scope="module")
def run(data: mw.Dataset) -> mw.Run:
    return mw.evaluate(
        "oracle", data, options={"noise": 3}, protocols=["strict", "lisa"]
    )


@pytest.mark.parametrize("protocol", ["strict", "lisa"])
def test_the_reward_is_the_score_of_the_sample(
    data: mw.Dataset, run: mw.Run, protocol: str
) -> None:
    assert run.predictions is not None
    by_id = {prediction.sample: prediction for prediction in run.predictions}
    predictions = [by_id[sample.id] for sample in data]
    rewards = mw.reward(protocol).batch(predictions, list(data))
    rows = run.rows(protocol)
    assert rewards == rows.value.tolist()


def test_one_and_many_are_the_same(data: mw.Dataset, run: mw.Run) -> None:
    assert run.predictions is not None
    by_id = {prediction.sample: prediction for prediction in run.predictions}
    score = mw.reward("strict")
    samples = [data[3], data[7], data[3]]
    predictions = [by_id[sample.id] for sample in samples]
    many = score.batch(predictions, samples)
    single = [score(*pair) for pair in zip(predictions, samples)]
    assert many == single
    assert many[0] == many[2], "a sample may occur again"
    assert score.batch([], []) == []


@pytest.mark.parametrize("protocol", ["strict", "mmr", "lisa", "r2sm", "gres", "union"])
def test_a_right_no_target_is_rewarded(data: mw.Dataset, protocol: str) -> None:
    sample = next(sample for sample in data if not sample.targets)
    score = mw.reward(protocol)
    mask = mw.Mask.from_dense(np.ones((4, 4), bool))
    wrong = mw.Prediction(regions=(mw.PredictedRegion(visible=mask, amodal=mask),))
    assert score(mw.Prediction(no_target=True), sample) == 1.0
    assert score([], sample) == 1.0
    assert score(wrong, sample) == 0.0
    assert score(mw.Prediction(error="out of memory"), sample) == 0.0


@pytest.mark.parametrize("protocol", ["strict", "mmr", "lisa"])
def test_a_wrong_no_target_is_not(data: mw.Dataset, protocol: str) -> None:
    sample = next(sample for sample in data if sample.targets)
    assert mw.reward(protocol)(mw.Prediction(no_target=True), sample) == 0.0


def test_what_cannot_be_read_gets_nothing(data: mw.Dataset) -> None:
    sample = next(sample for sample in data if sample.targets)
    score = mw.reward()
    assert score(np.ones((2, 3), bool), sample) == 0.0
    assert score(None, sample) == 0.0


def test_masks_may_be_arrays(data: mw.Dataset) -> None:
    sample = next(
        sample
        for sample in data
        if len(sample.targets) == 1 and sample.mask_type == "visible"
    )
    mask = np.asarray(sample.targets[0].visible)
    assert mw.reward("union")(mask, sample) == 1.0


def test_what_the_protocol_cannot_score_is_an_error(data: mw.Dataset) -> None:
    sample = next(sample for sample in data if sample.targets)
    visible = [
        msgspec.structs.replace(region, amodal=None, overlap=None)
        for region in sample.targets
    ]
    amodal = msgspec.structs.replace(
        sample, mask_type="amodal", targets=tuple(visible), answer=None
    )
    with pytest.raises(mw.ProtocolError, match="cannot be scored under strict: a targ"):
        mw.reward("strict")([], amodal)


def test_predictions_and_samples_are_counted(data: mw.Dataset) -> None:
    with pytest.raises(mw.ProtocolError, match="1 predictions for 2 samples"):
        mw.reward().batch([[]], [data[0], data[1]])


def test_a_reward_has_a_name_for_logs() -> None:
    assert mw.reward("strict").__name__ == "strict_reward"
    assert repr(mw.reward("lisa")) == "Reward('lisa')"
