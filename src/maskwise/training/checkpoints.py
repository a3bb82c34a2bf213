"""Training state and weights on disk, as safetensors: complete when they exist, nothing pickled.

    stages/STAGE.safetensors                               the weights after a stage
    checkpoints/STAGE/step-0000250/model.safetensors       weights of the network: those that the run stores
                                   averaged.safetensors    averaged weights, if the stage has them
                                   optimizer.safetensors   moments, by parameter name
                                   state.json              the step; written last
    checkpoints/STAGE/best/                                the same without optimizer, where validation was best

A checkpoint is written under another name and then renamed, so that a kill leaves no incomplete one. Random numbers and
the order of samples need not be stored: those of a step depend on the seed and the step. The layout does not depend on
the number of processes: sharded states (FSDP) are gathered. Under DeepSpeed the optimizer's state is written by
DeepSpeed itself.
"""

import json
import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.tensor import DTensor

from maskwise.errors import MaskwiseError
from maskwise.store.atomic import atomic_write, sync_folder
from maskwise.training.accelerator import is_deepspeed

FULL = StateDictOptions(full_state_dict=True, cpu_offload=True)
"""Shards are gathered on the CPU of the first process."""

RESTORE = StateDictOptions(full_state_dict=True, strict=False)
"""Not strict: frozen weights of pretrained models are not in a checkpoint. Names are checked by `restore_weights`."""


RESTORE_ERRORS = (
    MaskwiseError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    RuntimeError,
)
"""What restoring a damaged checkpoint raises."""


class StageCheckpoints:
    """The checkpoints of one stage.

    averaged: the network with averaged weights, if the stage has one. stored_names: the weights that are stored. keep:
    how many checkpoints.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        folder: Path,
        network: nn.Module,
        *,
        optimizer: torch.optim.Optimizer,
        averaged: nn.Module | None,
        stored_names: Collection[str],
        keep: int,
    ) -> None:
        self.accelerator = accelerator
        self.folder = folder
        self.network = network
        self.optimizer = optimizer
        self.averaged = averaged
        self.stored_names = stored_names
        self.keep = keep

    def save(self, step: int) -> None:
        """Write a checkpoint and remove the oldest. All processes have to call this.

        MaskwiseError where the disk is full or cannot be written; the checkpoints before are kept.
        """
        partial = self.folder / "partial"
        try:
            self._save(step, partial)
        except OSError as error:
            # What is incomplete would take the space that is missing.
            shutil.rmtree(partial, ignore_errors=True)
            raise MaskwiseError(
                f"{self.folder}: the checkpoint of step {step} cannot be written: {error}; "
                "the one before is kept, and repeating the command continues from it"
            ) from error

    def _save(self, step: int, partial: Path) -> None:
        deepspeed = is_deepspeed(self.accelerator)
        weights = gather_weights(self.network, self.stored_names)
        moments = {} if deepspeed else self._gather_moments()
        if self.accelerator.is_main_process:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            write_tensors(partial / "model.safetensors", weights)
            write_tensors(partial / "optimizer.safetensors", moments)
            if self.averaged is not None:
                averaged = self.averaged.state_dict()
                write_tensors(partial / "averaged.safetensors", averaged)
        self.accelerator.wait_for_everyone()
        if deepspeed:
            self.accelerator.save_state(str(partial / "deepspeed"))
            self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            with atomic_write(partial / "state.json") as file:
                file.write(json.dumps({"step": step}).encode())
            os.replace(partial, self.folder / f"step-{step:07}")
            sync_folder(self.folder)
            for path in _steps(self.folder)[: -self.keep]:
                shutil.rmtree(path)
        self.accelerator.wait_for_everyone()

    def save_best(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep the weights of a step whose validation is better than all before. All processes have to call this."""
        value = validation_value(metrics)
        if value is None:
            return
        folder = self.folder / BEST
        best = read_best(folder)
        # All processes have read it before the first one replaces it, so that they decide the same.
        self.accelerator.wait_for_everyone()
        if best is not None and value <= best:
            return
        weights = self._result()
        if self.accelerator.is_main_process:
            state = {"step": step, "metric": BEST_METRIC, "value": value}
            try:
                self._replace_best(weights, state)
            except OSError as error:
                raise MaskwiseError(
                    f"{folder}: the best weights, of step {step}, cannot be written: {error}; those before are kept, "
                    "and repeating the command continues from the last checkpoint"
                ) from error
        self.accelerator.wait_for_everyone()

    def _replace_best(
        self, weights: Mapping[str, Tensor], state: Mapping[str, Any]
    ) -> None:
        """Write the best weights under another name first: what interrupts this leaves those before."""
        partial = self.folder / "best.partial"
        shutil.rmtree(partial, ignore_errors=True)
        try:
            write_tensors(partial / "model.safetensors", weights)
            with atomic_write(partial / "state.json") as file:
                file.write(json.dumps(state).encode())
        except OSError:
            # What is incomplete would take the space that is missing.
            shutil.rmtree(partial, ignore_errors=True)
            raise
        # A kill between these leaves none: the run continues before this step and writes the same weights again.
        shutil.rmtree(self.folder / BEST, ignore_errors=True)
        os.replace(partial, self.folder / BEST)
        sync_folder(self.folder)

    def _result(self) -> dict[str, Tensor]:
        """The weights that the stage would end with now."""
        network = self.network if self.averaged is None else self.averaged
        return gather_weights(network, self.stored_names)

    def load(self) -> int:
        """Restore the newest checkpoint and return its step; 0 if there is none."""
        complete = _steps(self.folder)
        if not complete:
            return 0
        folder = complete[-1]
        try:
            return self._restore(folder)
        except RESTORE_ERRORS as error:
            raise MaskwiseError(
                f"{folder} is not a usable checkpoint of this run: {error}; delete it to continue from an older one, "
                "or to repeat the stage if there is none"
            ) from error

    def _restore(self, folder: Path) -> int:
        state = json.loads((folder / "state.json").read_bytes())
        weights = read_tensors(folder / "model.safetensors")
        restore_weights(self.network, weights, self.stored_names)
        if self.averaged is not None:
            averaged = read_tensors(folder / "averaged.safetensors")
            restore_weights(self.averaged, averaged, self.averaged.state_dict())
        if is_deepspeed(self.accelerator):
            self.accelerator.load_state(str(folder / "deepspeed"))
        else:
            self._restore_moments(read_tensors(folder / "optimizer.safetensors"))
        return int(state["step"])

    def _gather_moments(self) -> dict[str, Tensor]:
        """The optimizer's state by names such as PARAMETER.exp_avg; empty in all processes but the first."""
        state: Any = get_optimizer_state_dict(
            self.network, self.optimizer, options=FULL
        )
        moments = {}
        for parameter, values in state.get("state", {}).items():
            for key, value in values.items():
                moments[f"{parameter}.{key}"] = value
        return moments

    def _restore_moments(self, moments: dict[str, Tensor]) -> None:
        state: Any = get_optimizer_state_dict(
            self.network, self.optimizer, options=RESTORE
        )
        for name, value in moments.items():
            parameter, _, key = name.rpartition(".")
            state["state"][parameter][key] = value
        set_optimizer_state_dict(self.network, self.optimizer, state, options=RESTORE)


def stage_weights_path(folder: Path, stage: str) -> Path:
    """The file with the weights after a stage; it exists when the stage is finished."""
    # A folder of their own: exported models have files such as heads.safetensors beside it.
    return folder / "stages" / f"{stage}.safetensors"


BEST = "best"
"""Names the checkpoint whose validation was best."""

BEST_METRIC = "giou"
"""The metric of validation that decides which weights are best."""


def validation_value(metrics: Mapping[str, float]) -> float | None:
    """The metric that decides, its mean where several datasets have one; None if there is none."""
    values = [value for name, value in metrics.items() if name.endswith(BEST_METRIC)]
    return sum(values) / len(values) if values else None


def read_best(folder: Path) -> float | None:
    """The metric of the best checkpoint so far; None if there is none. MaskwiseError names a damaged one."""
    path = folder / "state.json"
    if not path.exists():
        return None
    try:
        return float(json.loads(path.read_bytes())["value"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise MaskwiseError(
            f"{path} is damaged: {error}; delete the folder {folder} to choose the best weights anew"
        ) from None


def find_stage_weights(
    run: Path, stage: str, checkpoint: int | str | None = None
) -> Path:
    """The weights of a stage of a run: after its last step, or of a checkpoint (a step, or BEST).

    MaskwiseError if the run has not come so far, or has no such checkpoint any more.
    """
    if checkpoint is None:
        path = stage_weights_path(run, stage)
        if not path.exists():
            raise MaskwiseError(
                f"{run} has no {path.relative_to(run)}; run `maskwise train` to the end first, "
                "or choose a checkpoint with --step or --best"
            )
        return path
    folder = run / "checkpoints" / stage
    name = BEST if checkpoint == BEST else f"step-{checkpoint:07}"
    for file in ("averaged.safetensors", "model.safetensors"):
        if (folder / name / "state.json").exists() and (folder / name / file).exists():
            return folder / name / file
    steps = [int(path.name.removeprefix("step-")) for path in _steps(folder)]
    kept = ", ".join(map(str, steps)) or "none"
    raise MaskwiseError(
        f"{folder} has no checkpoint {name}; steps that are kept: {kept}"
        + ("" if checkpoint != BEST else "; the best is kept if the config validates")
    )


def find_trained_stage(run: Path, stages: Sequence[str]) -> str:
    """The last stage of a run that has checkpoints; MaskwiseError if none has."""
    for stage in reversed(stages):
        if (run / "checkpoints" / stage).is_dir():
            return stage
    raise MaskwiseError(f"{run} has no checkpoint yet")


def _steps(folder: Path) -> list[Path]:
    """The complete checkpoints of a stage, the oldest first."""
    return sorted(folder.glob("step-*"))


def load_stage_weights(
    network: nn.Module, path: Path, names: Collection[str] | None = None
) -> None:
    """Load the weights after a stage into a network. names: as in `restore_weights`, by default all."""
    try:
        weights = read_tensors(path)
    except MaskwiseError as error:
        raise MaskwiseError(f"{error}; delete it to repeat this stage") from None
    try:
        restore_weights(network, weights, names or network.state_dict())
    except MaskwiseError as error:
        raise MaskwiseError(
            f"{path} does not hold the weights of this network: {error}; delete it to repeat this stage"
        ) from None


def gather_weights(network: nn.Module, names: Collection[str]) -> dict[str, Tensor]:
    """Weights of a network by name, on the CPU. All processes have to call this.

    Only these are copied: the frozen weights of a large model would need its size once more. Sharded ones are gathered.
    """
    weights = {}
    for name, value in network.state_dict().items():
        if name in names:
            whole = value.full_tensor() if isinstance(value, DTensor) else value
            weights[name] = whole.detach().cpu()
    return weights


def restore_weights(
    network: nn.Module, weights: dict[str, Tensor], names: Collection[str] = ()
) -> None:
    """Load weights by name. names: those that must be there.

    MaskwiseError if one is missing, if the network has none of that name, or if a shape differs.
    """
    missing = [name for name in names if name not in weights]
    if missing:
        listed = ", ".join(sorted(missing)[:3])
        raise MaskwiseError(f"{len(missing)} weights are missing: {listed}")
    known = network.state_dict()
    for name, value in weights.items():
        if name not in known:
            raise MaskwiseError(f"the network has no weights {name}")
        if known[name].shape != value.shape:
            raise MaskwiseError(
                f"weights of {name} have the shape {list(value.shape)}; the network expects {list(known[name].shape)}"
            )
    set_model_state_dict(network, dict(weights), options=RESTORE)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors, atomically, into a folder that is made if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    contiguous = {name: value.contiguous() for name, value in tensors.items()}
    with atomic_write(path) as file:
        file.write(save(contiguous))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file."""
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError) as error:
        raise MaskwiseError(f"{path} is not a safetensors file: {error}") from None
    return tensors
