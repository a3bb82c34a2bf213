"""Checkpoints as safetensors: trained weights, optimizer state and position, written atomically.

    checkpoints/STAGE/step-0000250/model.safetensors       parameters that the run trains, and buffers
                                   optimizer.safetensors   moments, by parameter name
                                   state.json              step, and position in the order of the samples

Random numbers and the order of samples need no more: those of a step depend on the seed and the step. The layout does
not depend on the number of processes: sharded states (FSDP) are gathered. Under DeepSpeed the optimizer's state is
written by DeepSpeed itself.
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

from maskwise.errors import MaskwiseError
from maskwise.store.atomic import atomic_write, sync_folder

FULL = StateDictOptions(full_state_dict=True, cpu_offload=True)
RESTORE = StateDictOptions(full_state_dict=True, strict=False)


class StageCheckpoints:
    """The checkpoints of one stage. `names`: the weights that are stored."""

    def __init__(
        self,
        accelerator: Accelerator,
        folder: Path,
        model: nn.Module,
        *,
        optimizer: torch.optim.Optimizer,
        names: Iterable[str],
        keep: int,
    ) -> None:
        self.accelerator = accelerator
        self.folder = folder
        self.keep = keep
        self.model = model
        self.optimizer = optimizer
        self.names = frozenset(names)

    def save(self, step: int, state: Mapping[str, Any]) -> None:
        """Write a checkpoint and remove the oldest. All processes have to call this."""
        partial = self.folder / "partial"
        weights = gather_weights(self.model, self.names)
        moments = {} if self._is_deepspeed else self._moments()
        if self.accelerator.is_main_process:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            write_tensors(partial / "model.safetensors", weights)
            write_tensors(partial / "optimizer.safetensors", moments)
            with atomic_write(partial / "state.json") as file:
                file.write(json.dumps({"step": step, **state}).encode())
        self.accelerator.wait_for_everyone()
        if self._is_deepspeed:
            self.accelerator.save_state(str(partial / "deepspeed"))
            self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            os.replace(partial, self.folder / f"step-{step:07}")
            sync_folder(self.folder)
            for path in self._complete()[: -self.keep]:
                shutil.rmtree(path)
        self.accelerator.wait_for_everyone()

    def load(self) -> int:
        """Restore the newest checkpoint and return its step; 0 if there is none."""
        if not (complete := self._complete()):
            return 0
        folder = complete[-1]
        try:
            state = json.loads((folder / "state.json").read_bytes())
            restore_weights(self.model, read_tensors(folder / "model.safetensors"))
            if self._is_deepspeed:
                self.accelerator.load_state(str(folder / "deepspeed"))
            else:
                self._restore_moments(read_tensors(folder / "optimizer.safetensors"))
            return int(state["step"])
        except (MaskwiseError, OSError, ValueError, KeyError, RuntimeError) as error:
            raise MaskwiseError(
                f"{folder} is not a usable checkpoint of this run: {error}; delete it to continue from an older one"
            ) from error

    @property
    def _is_deepspeed(self) -> bool:
        return bool(self.accelerator.distributed_type == DistributedType.DEEPSPEED)

    def _moments(self) -> dict[str, Tensor]:
        """The optimizer's state by names such as PARAMETER.exp_avg."""
        found: Any = get_optimizer_state_dict(self.model, self.optimizer, options=FULL)
        # Only the first process gets the state.
        states = found.get("state", {}).items()
        return {
            f"{name}.{key}": value for name, one in states for key, value in one.items()
        }

    def _restore_moments(self, moments: dict[str, Tensor]) -> None:
        state: Any = get_optimizer_state_dict(
            self.model, self.optimizer, options=RESTORE
        )
        for name, value in moments.items():
            parameter, _, key = name.rpartition(".")
            state["state"][parameter][key] = value
        set_optimizer_state_dict(self.model, self.optimizer, state, options=RESTORE)

    def _complete(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"))


def gather_weights(model: nn.Module, names: Iterable[str]) -> dict[str, Tensor]:
    """Weights of a model by name, on the CPU. All processes have to call this; the first one gets the result."""
    wanted = set(names)
    found: dict[str, Any] = get_model_state_dict(model, options=FULL)
    return {name: value for name, value in found.items() if name in wanted}


def restore_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    """Load weights by name; MaskwiseError if the model lacks one or a shape differs."""
    known = {name: value.shape for name, value in model.state_dict().items()}
    for name, value in weights.items():
        if (found := known.get(name)) != value.shape:
            shape = None if found is None else list(found)
            raise MaskwiseError(
                f"weights of {name} have the shape {list(value.shape)}; the model expects {shape}"
            )
    set_model_state_dict(model, dict(weights), options=RESTORE)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors, atomically."""
    with atomic_write(path) as file:
        file.write(save({name: value.contiguous() for name, value in tensors.items()}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file."""
    try:
        found: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError) as error:
        raise MaskwiseError(f"{path} cannot be read as safetensors: {error}") from None
    return found
