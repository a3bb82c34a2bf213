"""The TOML table of a stage of a small network (`tiny`, `completion`): AdamW, a cosine, averaged weights."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import torch
from torch import Tensor, nn

from maskwise.training.config_file import PositiveInt
from maskwise.training.loop import TrainingTask
from maskwise.training.schedule import Schedule

FINAL_FACTOR = 0.01
"""The learning rate ends at a hundredth of its maximum: the last steps only settle the averaged weights."""

BETAS = (0.9, 0.99)
"""Of AdamW. The second is below torch's .999: runs of a few thousand steps need moments that adapt sooner."""


class StageConfig(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The optimization of one stage. The learning rate rises over `warmup_steps` and then falls to a hundredth along a
    cosine that ends at `steps`. Every `checkpoint_every` steps a checkpoint is written and validated. `stop_step` ends
    training early, without changing the cosine. `batch_size`: of each process. `ema_decay`: of the averaged weights,
    which are the result.
    """

    steps: PositiveInt
    batch_size: PositiveInt
    learning_rate: Annotated[float, msgspec.Meta(gt=0)]
    warmup_steps: PositiveInt = 200
    weight_decay: Annotated[float, msgspec.Meta(ge=0)] = 0.02
    ema_decay: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.998
    checkpoint_every: PositiveInt = 250
    stop_step: PositiveInt | None = None

    @property
    def last_step(self) -> int:
        """The step after which training ends."""
        return self.steps if self.stop_step is None else min(self.stop_step, self.steps)

    def schedule(self) -> Schedule:
        """The schedule of the stage; only the newest checkpoint is kept."""
        return Schedule(
            steps=self.steps,
            last_step=self.last_step,
            warmup_steps=self.warmup_steps,
            decay="cosine",
            final_factor=FINAL_FACTOR,
            log_every=self.checkpoint_every,
            validate_every=self.checkpoint_every,
            checkpoint_every=self.checkpoint_every,
        )

    def make_task(
        self,
        name: str,
        network: nn.Module,
        *,
        seed: int,
        make_batch: Callable[[int], Any],
        loss_terms: Callable[[Any, Any], dict[str, Tensor]],
        validate: Callable[[Any], dict[str, float]],
    ) -> TrainingTask:
        """The task of training all parameters of a network with these settings.

        loss_terms(network, batch): the terms of the loss by name, to be summed. The other arguments: as in
        `TrainingTask`.
        """

        def loss(network: Any, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
            terms = loss_terms(network, batch)
            return torch.stack(list(terms.values())).sum(), terms

        optimizer = torch.optim.AdamW(
            network.parameters(),
            self.learning_rate,
            betas=BETAS,
            weight_decay=self.weight_decay,
        )
        return TrainingTask(
            name=name,
            network=network,
            optimizer=optimizer,
            make_batch=make_batch,
            loss=loss,
            seed=(seed,),
            validate=validate,
            ema_decay=self.ema_decay,
        )
