"""The optimizer: AdamW, and Muon for weight matrices."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")
pytest.importorskip("transformers", reason="the extra `vlm` is not installed")

from maskwise.models.vlm.build import build_model
from maskwise.training.vlm.config import Optimization, Stage
from maskwise.training.vlm.optimizers import Muon, make_optimizer, orthogonalize
from tests.training.vlm.small_runs import small_model


@pytest.mark.parametrize("shape", [(16, 16), (8, 32), (32, 8)])
def test_orthogonalized_matrices_keep_their_singular_vectors(
    shape: tuple[int, int],
) -> None:
    matrices = torch.randn((3, *shape), generator=torch.Generator().manual_seed(0))
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    inner = left.mT @ orthogonalize(matrices) @ right.mT
    values = inner.diagonal(dim1=1, dim2=2)
    assert values.min() > 0.3
    assert values.max() < 1.6
    assert (inner - torch.diag_embed(values)).abs().max() < 1e-3


def test_an_update_is_that_of_the_optimizer_of_torch() -> None:
    torch.manual_seed(0)
    start = [torch.randn(24, 12), torch.randn(24, 12), torch.randn(12, 36)]
    gradients = [[torch.randn_like(one) for one in start] for _ in range(3)]
    ours, theirs = (
        [torch.nn.Parameter(one.clone()) for one in start] for _ in range(2)
    )
    optimizers = (
        Muon(
            [{"params": ours, "matrices": True}],
            lr=0.02,
            weight_decay=0.1,
            foreach=False,
        ),
        torch.optim.Muon(theirs, lr=0.02, weight_decay=0.1),
    )
    for step in gradients:
        for parameters, optimizer in zip((ours, theirs), optimizers):
            for parameter, gradient in zip(parameters, step):
                parameter.grad = gradient.clone()
            optimizer.step()
    for first, second in zip(ours, theirs):
        assert torch.allclose(first, second, atol=2e-3), "torch computes in bfloat16"


def test_linear_layers_are_matrices_and_everything_else_is_left_to_adamw() -> None:
    model = build_model(small_model())
    rate = Optimization(learning_rate=1e-3, batch_size=1, matrix_rate=0.01)
    stage = Stage(name="one", steps=1, rate_factors={"^projector": 0.5})
    groups = make_optimizer(model, stage, rate).param_groups
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = {
        names[id(one)]: (group["lr"], group.get("matrices", False))
        for group in groups
        for one in group["params"]
    }
    assert found.keys() == {
        name for name, one in model.named_parameters() if one.requires_grad
    }
    assert found[
        "vision_language.model.model.language_model.layers.0.mlp.up_proj.weight"
    ] == (0.01, True)
    assert found["projector.layers.0.weight"] == (0.005, True)
    assert found["projector.layers.0.bias"] == (0.0005, False)
    assert found["vision_language.model.model.language_model.embed_tokens.weight"] == (
        0.001,
        False,
    )
    assert found["mask_type_head.filters.weight"] == (0.001, False)
    plain = make_optimizer(
        model,
        Stage(name="one", steps=1),
        Optimization(learning_rate=1e-3, batch_size=1),
    )
    assert type(plain) is torch.optim.AdamW
