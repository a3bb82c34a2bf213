"""The options of every engine.

They are the flags of `eval`, `build` and `train`, and the table `[execution]` of training
configs.
"""

from typing import Annotated, Literal, get_args

import msgspec

from maskwise.errors import MaskwiseError, UnknownNameError

EngineName = Literal["local", "ray"]

ENGINES: tuple[EngineName, ...] = get_args(EngineName)


class EngineOptions(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Where the work is done.

    engine: `local` is this process, or several on this machine; `ray` is workers of
    Ray. workers: how many; None is one for `local`, and as many as fit for `ray`.

    Of `ray` only: ray_address: of a cluster (HOST:PORT or auto); None starts a Ray on
    this machine. cpus_per_worker: cores that each worker reserves, None for 1.
    gpus_per_worker: GPUs that each worker reserves; None is for the caller to decide
    (evaluation: 1 if the cluster has any; building and training: 0).
    """

    engine: EngineName = "local"
    workers: Annotated[int, msgspec.Meta(ge=1)] | None = None
    ray_address: str | None = None
    cpus_per_worker: Annotated[float, msgspec.Meta(ge=0)] | None = None
    gpus_per_worker: Annotated[float, msgspec.Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UnknownNameError("engine", self.engine, ENGINES)
        if self.engine == "ray":
            return
        ray_flags = {
            "--ray-address": self.ray_address,
            "--cpus-per-worker": self.cpus_per_worker,
            "--gpus-per-worker": self.gpus_per_worker,
        }
        given = [flag for flag, value in ray_flags.items() if value is not None]
        if given:
            raise MaskwiseError(
                f"the local engine has no option {', '.join(given)}; use --engine ray"
            )

    @property
    def cpus(self) -> float:
        """Cores that each worker reserves."""
        return 1.0 if self.cpus_per_worker is None else self.cpus_per_worker
