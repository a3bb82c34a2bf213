"""Training state and weights on disk: complete when they exist, with a clear error when they are unusable."""

import os
import shutil
from pathlib import Path

from accelerate import Accelerator
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from maskwise.errors import MaskwiseError
from maskwise.store.atomic import atomic_write, sync_folder


class CheckpointFolder:
    """The training state of one stage, in a folder per step (`step-0000250`), written by accelerate.

    A folder is written under another name and then renamed, so that a kill leaves no incomplete one. Only the newest
    checkpoint is kept.
    """

    def __init__(self, accelerator: Accelerator, folder: Path) -> None:
        self.accelerator = accelerator
        self.folder = folder

    def save(self, step: int) -> None:
        """Save everything prepared by or registered with the accelerator. All processes have to call this."""
        partial = self.folder / "partial"
        self.accelerator.save_state(str(partial))
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            old = self._complete()
            os.replace(partial, self.folder / f"step-{step:07}")
            sync_folder(self.folder)
            for path in old:
                shutil.rmtree(path)
        self.accelerator.wait_for_everyone()

    def load(self) -> int:
        """Restore the newest checkpoint and return its step; 0 if there is none."""
        if not (complete := self._complete()):
            return 0
        try:
            self.accelerator.load_state(str(complete[-1]))
        except Exception as error:  # accelerate, torch and safetensors raise different errors for a damaged file
            raise MaskwiseError(
                f"{complete[-1]} is not a usable checkpoint: {error}; delete it to restart this stage"
            ) from error
        return int(complete[-1].name.removeprefix("step-"))

    def _complete(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"))


def save_weights(network: nn.Module, path: Path) -> None:
    """Write the weights of a network as safetensors."""
    with atomic_write(path) as file:
        file.write(
            save(
                {
                    name: value.contiguous()
                    for name, value in network.state_dict().items()
                }
            )
        )


def load_weights(network: nn.Module, path: Path) -> None:
    """Read the weights of a network from a safetensors file."""
    try:
        weights: dict[str, Tensor] = load_file(path)
    except SafetensorError as error:
        raise MaskwiseError(
            f"{path} is not a safetensors file: {error}; delete it to repeat this stage"
        ) from None
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise MaskwiseError(
            f"{path} does not hold the weights of this network: {error}"
        ) from None
