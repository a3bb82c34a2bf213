"""A training run under FSDP 2 on CPUs: sharded_run CONFIG FOLDER, started by torchrun.

accelerate uses FSDP for GPUs only, so it is told that the processes have some. All else is as on GPUs: the settings are
those of `accelerate launch`, and torch shards the model on a mesh of CPUs.
"""

import sys
from pathlib import Path

from accelerate import PartialState
from accelerate.utils import DistributedType

from maskwise.training.vlm.pipeline import read_config, train

if __name__ == "__main__":
    PartialState(cpu=True)
    PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
    train(read_config(Path(sys.argv[1])), Path(sys.argv[2]))
