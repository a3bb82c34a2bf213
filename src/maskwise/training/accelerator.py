"""The accelerator of a stage: one process or several, on CPUs or GPUs, with FSDP or DeepSpeed if they are set up."""

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import (
    DistributedDataParallelKwargs,
    DistributedType,
    GradientAccumulationPlugin,
)


def make_accelerator(
    *,
    accumulated: int = 1,
    precision: str | None = None,
    unused_parameters: bool = False,
) -> Accelerator:
    """The accelerator of a stage. FSDP and DeepSpeed are set up by `accelerate launch --config_file`.

    accumulated: forwards per optimizer step in each process. precision: "no" or "bf16"; None: that of `accelerate
    launch`. unused_parameters: a process may have batches that do not use all trained parameters.
    """
    # accelerate keeps the precision of the first Accelerator of a process and refuses another one.
    AcceleratorState._reset_state()
    return Accelerator(
        cpu=not torch.cuda.is_available(),
        mixed_precision=precision,
        gradient_accumulation_plugin=GradientAccumulationPlugin(
            num_steps=accumulated, adjust_scheduler=False, sync_with_dataloader=False
        ),
        kwargs_handlers=[
            DistributedDataParallelKwargs(find_unused_parameters=unused_parameters)
        ],
    )


def is_fsdp(accelerator: Accelerator) -> bool:
    """True if weights are sharded by FSDP: only the training forward gathers them."""
    return bool(accelerator.distributed_type == DistributedType.FSDP)


def is_deepspeed(accelerator: Accelerator) -> bool:
    """True if DeepSpeed holds the optimizer's state."""
    return bool(accelerator.distributed_type == DistributedType.DEEPSPEED)
