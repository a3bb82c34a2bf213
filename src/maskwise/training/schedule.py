"""When a stage does what: its steps, its learning rate, and how often it logs, validates and saves."""

import math
from dataclasses import dataclass
from typing import Literal

Decay = Literal["linear", "cosine", "constant"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The steps of a stage. Steps are counted from 1 where they are reported, from 0 inside the loop.

    `steps`: where the learning rate has fallen to `final_factor` of its maximum. `last_step`: where training ends, at
    most `steps`. `warmup_steps`: the learning rate rises linearly over these. `log_every`, `validate_every`,
    `checkpoint_every`: steps between lines of the training curve, validations and checkpoints; each is also done after
    the last step. `validate_every` None: never. `keep_checkpoints`: older checkpoints are deleted.
    `clip_norm`: gradients are scaled down to this norm.
    """

    steps: int
    last_step: int
    warmup_steps: int
    decay: Decay
    final_factor: float
    log_every: int
    validate_every: int | None
    checkpoint_every: int
    keep_checkpoints: int = 1
    clip_norm: float = 1.0

    def learning_rate_factor(self, step: int) -> float:
        """What the learning rate of step 0, 1, ... is multiplied with: warm-up to 1, then the decay."""
        if step < self.warmup_steps:
            return (step + 1) / self.warmup_steps
        if self.decay == "constant":
            return 1.0
        decay_steps = max(1, self.steps - self.warmup_steps)
        progress = (step - self.warmup_steps) / decay_steps
        remaining = 1 - progress
        if self.decay == "cosine":
            remaining = 0.5 * (1 + math.cos(math.pi * progress))
        return self.final_factor + (1 - self.final_factor) * remaining

    def is_due(self, done: int, every: int | None) -> bool:
        """True if something that happens every `every` steps happens after `done` steps."""
        if every is None:
            return False
        return done % every == 0 or done == self.last_step
