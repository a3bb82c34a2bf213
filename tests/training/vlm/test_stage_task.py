"""The loss and the batches that a stage gives to the training loop."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("peft", reason="the extra `vlm` is not installed")

from maskwise.errors import MaskwiseError
from maskwise.models.vlm.config import LossWeights
from maskwise.training.vlm.config import Optimization
from maskwise.training.vlm.stage_task import make_stage_accelerator, weighted_loss
from tests.training.vlm.small_runs import small_run


def model_with(losses: dict[str, float]):
    """Stands for a model whose forward gives these losses."""
    values = {name: torch.tensor(value) for name, value in losses.items()}
    return lambda batch: SimpleNamespace(loss=torch.tensor(7.0), losses=values)


def test_terms_are_weighted_and_the_loss_is_that_of_the_model() -> None:
    loss = weighted_loss(LossWeights(text=2.0, bce=0.5, dice=0.0))
    total, terms = loss(model_with({"text": 3.0, "bce": 4.0}), None)
    assert total.item() == 7
    assert {name: value.item() for name, value in terms.items()} == {
        "text": 6.0,
        "bce": 2.0,
    }


def test_a_batch_without_a_loss_counts_as_zero_so_that_all_have_the_same_terms() -> (
    None
):
    loss = weighted_loss(LossWeights(text=1.0, bce=1.0, dice=0.0))
    _, terms = loss(model_with({"text": 3.0}), None)
    assert list(terms) == ["text", "bce"]
    assert terms["bce"].item() == 0


def test_what_does_not_fit_into_a_forward_is_accumulated() -> None:
    optimization = Optimization(learning_rate=1, batch_size=6, micro_batch_size=2)
    accelerator = make_stage_accelerator(small_run(), optimization)
    assert accelerator.gradient_accumulation_steps == 3


def test_a_batch_that_processes_cannot_share_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "maskwise.training.vlm.stage_task.PartialState",
        lambda cpu: SimpleNamespace(num_processes=4),
    )
    optimization = Optimization(learning_rate=1, batch_size=6, micro_batch_size=2)
    with pytest.raises(
        MaskwiseError, match="batch_size 6 cannot be divided among 4 processes"
    ):
        make_stage_accelerator(small_run(), optimization)
