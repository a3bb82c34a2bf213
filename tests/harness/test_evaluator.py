"""The streaming metric: equal to scoring at once, in any order and split."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

import maskwise as mw

PROTOCOLS = ["strict", "mmr", "lisa", "gres", "muse"]
PROCESS = Path(__file__).parent / "gloo_process.py"


@pytest.fixture(scope="module")
def data() -> mw.Dataset:
    return mw.load_dataset("world")


@pytest.fixture(scope="module")
def run(data: mw.Dataset) -> mw.Run:
    """Predictions of which some are wrong, some are missing a region."""
    return mw.evaluate("oracle", data, options={"noise": 3}, protocols=PROTOCOLS)


@pytest.fixture(scope="module")
def predictions(run: mw.Run) -> list[mw.Prediction]:
    assert run.predictions is not None
    return list(run.predictions)


def at_once(predictions: list[mw.Prediction], data: mw.Dataset) -> dict[str, Any]:
    """The metrics of `maskwise.score`."""
    run = mw.score(predictions, data, protocols=PROTOCOLS)
    return {
        f"{protocol}/{name}": None if value is None else float(value)
        for protocol in run
        for name, value in ((key, run[protocol][key]) for key in run[protocol])
    }


def updated(
    data: mw.Dataset, predictions: list[mw.Prediction], **options: Any
) -> mw.Evaluator:
    evaluator = mw.Evaluator(data, **options)
    evaluator.update([prediction.sample for prediction in predictions], predictions)
    return evaluator


def shuffled(items: list[Any], seed: int) -> list[Any]:
    return [items[row] for row in np.random.default_rng(seed).permutation(len(items))]


# -- the same result -------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_and_batches_give_the_result_of_scoring_at_once(
    data: mw.Dataset, predictions: list[mw.Prediction], seed: int
) -> None:
    evaluator = mw.Evaluator(data, protocol=PROTOCOLS)
    order = shuffled(predictions, seed)
    for first in range(0, len(order), 7):
        batch = order[first : first + 7]
        evaluator.update([prediction.sample for prediction in batch], batch)
    assert evaluator.compute() == at_once(predictions, data)
    assert len(evaluator) == len(data)


def test_evaluators_are_merged_in_any_order(
    data: mw.Dataset, predictions: list[mw.Prediction]
) -> None:
    parts = [predictions[:50], predictions[50:51], predictions[51:]]
    expected = at_once(predictions, data)
    for order in (parts, parts[::-1]):
        whole = mw.Evaluator(data, protocol=PROTOCOLS)
        for part in order:
            whole.merge(updated(data, part, protocol=PROTOCOLS))
        assert whole.compute() == expected


def test_two_processes_give_the_result_of_one(
    data: mw.Dataset, predictions: list[mw.Prediction], tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    lines = [msgspec.json.encode(prediction) for prediction in predictions]
    (tmp_path / "predictions.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(PROCESS), str(rank), str(tmp_path)],
            stdout=subprocess.PIPE,
            env=environment,
        )
        for rank in range(2)
    ]
    results = [json.loads(process.communicate()[0]) for process in processes]
    expected = at_once(predictions, data)
    for result in results:
        assert result["samples"] == len(data), "the repeated sample counts once"
        for name, value in result["metrics"].items():
            assert value == expected[name], name


def test_without_processes_there_is_nothing_to_gather(
    data: mw.Dataset, predictions: list[mw.Prediction]
) -> None:
    evaluator = updated(data, predictions[:3])
    evaluator.gather()
    assert len(evaluator) == 3


def test_a_subset_gives_the_metrics_of_the_subset(
    data: mw.Dataset, predictions: list[mw.Prediction]
) -> None:
    ids = {prediction.sample for prediction in predictions[10:40]}
    view = data.filter(lambda sample: sample.id in ids)
    values = updated(data, shuffled(predictions[10:40], 3)).compute()
    run = mw.score(predictions[10:40], view, protocols="strict")
    assert values["giou"] == run["strict"]["giou"]
    assert values["ciou"] == run["strict"]["ciou"]


def test_the_run_has_intervals(
    data: mw.Dataset, predictions: list[mw.Prediction], run: mw.Run
) -> None:
    streamed = updated(data, shuffled(predictions, 4), protocol=["strict"]).run()
    assert repr(streamed["strict"]["giou"]) == repr(run["strict"]["giou"])


# -- duplicates, reset, state ----------------------------------------------------------


def test_a_sample_counts_once(
    data: mw.Dataset, predictions: list[mw.Prediction]
) -> None:
    once = updated(data, predictions[:20])
    twice = updated(data, [*predictions[:20], predictions[3], predictions[5]])
    assert len(twice) == 20
    assert twice.compute() == once.compute()


def test_of_two_different_predictions_the_same_counts_in_any_order(
    data: mw.Dataset, predictions: list[mw.Prediction]
) -> None:
    other = mw.Prediction(sample=predictions[0].sample, no_target=True)
    first = updated(data, [*predictions[:9], other]).compute()
    second = updated(data, [other, *predictions[:9]]).compute()
    assert first == second


def test_reset_and_state(data: mw.Dataset, predictions: list[mw.Prediction]) -> None:
    evaluator = updated(data, predictions)
    expected = evaluator.compute()
    state = evaluator.state()
    evaluator.reset()
    assert len(evaluator) == 0
    with pytest.raises(mw.ProtocolError, match="call update first"):
        evaluator.compute()
    evaluator.load_state(state)
    assert evaluator.compute() == expected


# -- input -----------------------------------------------------------------------------


def test_rows_and_masks_are_accepted(data: mw.Dataset) -> None:
    height, width = data.samples.size[0]
    masks = np.zeros((3, height, width), bool)
    masks[:, :50] = True
    by_row = mw.Evaluator(data)
    by_row.update(np.array([4, 2, 0]), masks)
    by_id = mw.Evaluator(data)
    by_id.update([data.samples.id[row] for row in (4, 2, 0)], list(masks))
    assert by_row.compute() == by_id.compute()
    assert repr(by_row) == "Evaluator('world-test', strict: 3 of 240 samples)"


def test_tensors_are_accepted(data: mw.Dataset) -> None:
    torch = pytest.importorskip("torch")
    height, width = data.samples.size[0].tolist()
    evaluator = mw.Evaluator(data)
    evaluator.update(torch.tensor([0, 1]), torch.ones(2, height, width, dtype=bool))
    assert len(evaluator) == 2


@pytest.mark.parametrize(
    ("ids", "predictions", "said"),
    [
        (
            ["nowhere"],
            [[]],
            "has no sample 'nowhere'; expected sample ids, or rows fro",
        ),
        ([999], [[]], "has no sample 999"),
        ([0, 1], [[]], "1 predictions for 2 ids"),
        ([0], [np.ones((2, 2), bool)], "expected a mask of height and width"),
        ([0], [None], "found None; a model that finds nothing returns an empty list"),
    ],
)
def test_wrong_input_is_refused_and_adds_nothing(
    data: mw.Dataset, ids: Any, predictions: Any, said: str
) -> None:
    evaluator = mw.Evaluator(data)
    with pytest.raises(mw.ProtocolError, match=said):
        evaluator.update(ids, predictions)
    assert len(evaluator) == 0


def test_evaluators_of_other_data_are_not_merged(data: mw.Dataset) -> None:
    with pytest.raises(mw.ProtocolError, match="merge evaluators of one dataset"):
        mw.Evaluator(data).merge(mw.Evaluator(data[:5]))


# -- transformers ----------------------------------------------------------------------


def test_metrics_for_a_trainer_are_those_of_the_masks(data: mw.Dataset) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(6, 1, 56, 56)).astype(np.float32)
    rows = np.array([5, 0, 3, 1, -100, 4])
    evaluator = mw.Evaluator(data)
    whole = SimpleNamespace(predictions=logits, label_ids=rows)
    expected = evaluator.compute_metrics(whole)
    assert len(evaluator) == 0, "the next evaluation begins anew"
    assert set(expected) > {"giou", "ciou"}
    # As with batch_eval_metrics=True: batch after batch, the result at the end.
    first = SimpleNamespace(predictions=logits[:4], label_ids=rows[:4])
    second = SimpleNamespace(predictions=logits[4:], label_ids=rows[4:])
    assert evaluator.compute_metrics(first, compute_result=False) == {}
    assert evaluator.compute_metrics(second, compute_result=True) == expected


def test_masks_for_a_trainer_are_scaled_to_the_image(data: mw.Dataset) -> None:
    evaluator = mw.Evaluator(data)
    half = np.zeros((1, 8, 8), bool)
    half[:, :4] = True
    logits = np.where(half, 4.0, -4.0).astype(np.float32)
    results = [
        evaluator.compute_metrics(
            SimpleNamespace(predictions=masks, label_ids=np.array([2]))
        )
        for masks in (half, logits)
    ]
    assert results[0]["giou"] == pytest.approx(results[1]["giou"], abs=0.02)


def test_a_trainer_of_transformers_reports_the_metrics(
    data: mw.Dataset, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")

    class Halves(torch.nn.Module):  # type: ignore[name-defined,misc]
        """The left half of every image."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def forward(self, images: Any, labels: Any) -> dict[str, Any]:
            logits = torch.full((len(images), 56, 56), -1.0)
            logits[:, :, :28] = 1.0
            return {"loss": self.weight * 0, "logits": logits + self.weight}

    rows = range(10)
    items = [{"images": torch.zeros(1), "labels": row} for row in rows]
    evaluator = mw.Evaluator(data)
    trainer = transformers.Trainer(
        Halves(),
        transformers.TrainingArguments(
            str(tmp_path), per_device_eval_batch_size=4, report_to=[], use_cpu=True
        ),
        eval_dataset=items,
        compute_metrics=evaluator.compute_metrics,
    )
    reported = trainer.evaluate()
    for row in rows:
        height, width = data.samples.size[row]
        left = np.zeros((height, width), bool)
        left[:, : width // 2] = True
        evaluator.update([row], [[left]])
    assert reported["eval_giou"] == pytest.approx(evaluator.compute()["giou"], abs=1e-6)
