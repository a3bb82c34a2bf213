"""The small parts between the language model and the mask decoders."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `vlm` is not installed")

from torch import nn

from maskwise.models.vlm.early_features import EarlyFeatures
from maskwise.models.vlm.initialization import scale_initialization
from maskwise.models.vlm.losses import occlusion_map_loss
from maskwise.models.vlm.occlusion_head import OcclusionHead, unite_masks
from maskwise.models.vlm.occlusion_map import OcclusionMapHead, occlusion_map_targets
from maskwise.models.vlm.projector import PromptProjector


def test_a_token_becomes_several_prompt_vectors() -> None:
    projector = PromptProjector(width=8, hidden=16, prompt_width=4, vectors=3)
    assert projector(torch.randn(5, 8)).shape == (5, 3, 4)
    assert projector(torch.randn(0, 8)).shape == (0, 3, 4)


def test_the_scale_of_a_hidden_state_does_not_matter() -> None:
    projector = PromptProjector(width=8, hidden=16, prompt_width=4, vectors=1)
    states = torch.randn(2, 8)
    torch.testing.assert_close(
        projector(states), projector(100 * states), atol=1e-3, rtol=1e-3
    )


def test_occlusion_rates_are_shares() -> None:
    head = OcclusionHead(width=4, vectors=2)
    prompts, rates = head(torch.randn(6, 2, 4))
    assert prompts.shape == (6, 2, 4)
    assert ((rates >= 0) & (rates <= 1)).all()


def test_an_occlusion_map_starts_without_effect_and_learns_its_classes() -> None:
    torch.manual_seed(0)
    head = OcclusionMapHead(width=8, vectors=2)
    embedding = torch.randn(3, 8, 4, 4)
    prompts = torch.randn(3, 2, 8)
    visible = torch.randn(3, 16, 16, requires_grad=True)
    dense, logits = head(embedding, prompts, visible)
    assert dense.shape == (3, 8, 4, 4)
    assert not dense.any()
    assert logits.shape == (3, 3, 4, 4)
    shown = torch.zeros(3, 16, 16)
    shown[:, :8] = 1
    whole = torch.ones(3, 16, 16)
    shares = occlusion_map_targets(shown, whole, (4, 4))
    assert torch.equal(shares[:, 1, :2], torch.ones(3, 2, 4)), "visible"
    assert torch.equal(shares[:, 2, 2:], torch.ones(3, 2, 4)), "occluded"
    assert not shares[:, 0].any(), "background"
    optimizer = torch.optim.Adam(head.parameters(), 0.05)
    losses = []
    for _ in range(30):
        loss = occlusion_map_loss(head(embedding, prompts, 20 * shown - 10)[1], shares)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 5
    assert visible.grad is None


def test_united_masks_contain_both_and_leave_the_visible_one_alone() -> None:
    visible = torch.tensor([-3.0, 2.0, -1.0], requires_grad=True)
    amodal = torch.tensor([-3.0, -5.0, 4.0], requires_grad=True)
    united = unite_masks(visible, amodal)
    # The probability of at least one of two independent events.
    neither = (1 - visible.sigmoid()) * (1 - amodal.sigmoid())
    torch.testing.assert_close(united.sigmoid(), 1 - neither)
    united.sum().backward()
    assert visible.grad is None
    assert amodal.grad is not None


def test_early_features_fit_the_image_embedding() -> None:
    early = EarlyFeatures(channels=3, width=4)
    for side in (4, 8, 16):
        assert early(torch.randn(2, 3, side, side), (8, 8)).shape == (2, 4, 8, 8)


def test_small_networks_get_weights_scaled_to_their_width() -> None:
    torch.manual_seed(0)
    network = nn.ModuleDict(
        {"linear": nn.Linear(64, 64), "words": nn.Embedding(99, 64)}
    )
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.02)
    scale_initialization(network, 0.125)
    assert network["words"].weight.std().item() == pytest.approx(0.125, rel=0.1)
    # Uniform in +-1/8, whose standard deviation is 1/8 divided by the root of 3.
    assert network["linear"].weight.std().item() == pytest.approx(0.072, rel=0.1)
