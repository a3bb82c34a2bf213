"""Weights as safetensors: written whole, checked when they are read."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from torch import nn

from maskwise.errors import MaskwiseError
from maskwise.training.checkpoints import (
    find_stage_weights,
    gather_weights,
    load_stage_weights,
    read_tensors,
    restore_weights,
    stage_weights_path,
    write_tensors,
)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def test_weights_and_buffers_are_read_as_they_were_written(tmp_path: Path) -> None:
    original = network()
    original[1].num_batches_tracked.fill_(4)
    names = original.state_dict().keys()
    write_tensors(stage_weights_path(tmp_path, "a"), gather_weights(original, names))
    loaded = network()
    load_stage_weights(loaded, find_stage_weights(tmp_path, "a"))
    for name, value in original.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name
    assert {path.name for path in (tmp_path / "stages").iterdir()} == {"a.safetensors"}


def test_only_the_named_weights_are_gathered() -> None:
    assert list(gather_weights(network(), {"0.bias"})) == ["0.bias"]


def test_views_are_written_as_what_they_show(tmp_path: Path) -> None:
    matrix = torch.arange(6.0).view(2, 3)
    write_tensors(tmp_path / "t.safetensors", {"turned": matrix.T})
    assert torch.equal(read_tensors(tmp_path / "t.safetensors")["turned"], matrix.T)


def test_weights_of_another_network_are_refused_before_any_is_changed() -> None:
    target = network()
    before = target[0].bias.detach().clone()
    weights = dict(network().state_dict())
    with pytest.raises(MaskwiseError, match=r"the network has no weights 2\.bias"):
        restore_weights(target, weights | {"2.bias": torch.zeros(1)})
    with pytest.raises(MaskwiseError, match=r"shape \[5\]; the network expects \[3\]"):
        restore_weights(target, weights | {"1.weight": torch.zeros(5)})
    with pytest.raises(MaskwiseError, match=r"1 weights are missing: 0\.weight"):
        restore_weights(target, {"0.bias": weights["0.bias"]}, ["0.weight"])
    assert torch.equal(target[0].bias, before)


def test_files_that_cannot_be_used_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        MaskwiseError,
        match=r"has no stages/a\.safetensors; run `maskwise train` to the end",
    ):
        find_stage_weights(tmp_path, "a")
    path = stage_weights_path(tmp_path, "a")
    path.parent.mkdir()
    path.write_bytes(b"torn")
    with pytest.raises(MaskwiseError, match=r"is not a safetensors file.*delete it"):
        load_stage_weights(network(), path)
    write_tensors(path, {"0.bias": torch.zeros(3)})
    with pytest.raises(
        MaskwiseError, match=r"does not hold the weights of this network.*delete it"
    ):
        load_stage_weights(network(), path)
