"""The mask-type head while TRL samples and scores answers, so that it trains the distribution that prediction uses.

TRL calls the language model alone. Without the head's shift the sampled mask types are those of a model that no one
uses, and their reward pulls at words that the head decides.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from maskwise.models.vlm.batch import IGNORED
from maskwise.models.vlm.mask_type_head import shift_mask_type
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.processor import VlmProcessor


@contextmanager
def mask_type_head_in_sampling(
    model: VlmModel, processor: VlmProcessor, temperature: float
) -> Iterator[None]:
    """Shift what the language model of `model` returns to TRL by the mask-type head; nothing without a head.

    temperature: of sampling, by which TRL divides the shifted logits.
    """
    if model.mask_type_head is None:
        yield
        return
    language = model.vision_language.model
    shift = _Shift(model, processor, temperature)
    norm = language.model.language_model.norm
    hooks = (
        norm.register_forward_hook(shift.keep_states),
        language.register_forward_hook(shift.change_output, with_kwargs=True),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class _Shift:
    """Hooks on the language model: what its forward returns gets the shift of the head."""

    def __init__(
        self, model: VlmModel, processor: VlmProcessor, temperature: float
    ) -> None:
        self.model = model
        self.processor = processor
        self.temperature = temperature
        # Of the questions that are being answered: [q].
        self.log_odds: Tensor | None = None
        # Last hidden states of the forward: [q, tokens, width].
        self.states: Tensor | None = None

    def keep_states(self, _module: nn.Module, _inputs: Any, output: Tensor) -> None:
        """Keep the output of the final norm, which TRL's log-probabilities are made of."""
        self.states = output

    def change_output(
        self, _module: nn.Module, _inputs: Any, given: dict[str, Any], output: Any
    ) -> Any:
        """Shift logits while answers are sampled, and log-probabilities of given answers in training."""
        input_ids = given["input_ids"]
        labels = given.get("labels")
        if labels is None:
            # A prompt has several tokens; the steps after it have one, and the same questions.
            if input_ids.shape[1] > 1:
                self.log_odds = self._log_odds(input_ids)
            output.logits = self._shift_last(output.logits)
        else:
            self._score_answers(output, input_ids, labels)
        self.states = None
        return output

    @torch.no_grad()
    def _log_odds(self, input_ids: Tensor, prompt: int | None = None) -> Tensor:
        """Of the first `prompt` tokens of each row, [q]; by default of all."""
        asked = self.processor.find_words(input_ids)
        if prompt is not None:
            asked[:, prompt:] = False
        language = self.model.vision_language
        assert self.model.mask_type_head is not None
        log_odds: Tensor = self.model.mask_type_head(
            input_ids, language.embed(input_ids), asked
        )
        return log_odds

    def _shift_last(self, logits: Tensor) -> Tensor:
        """logits: [q, kept, vocabulary]; the last of them is sampled from."""
        assert self.log_odds is not None
        last = shift_mask_type(logits[:, -1], self.log_odds, self.model.seg_token_ids)
        return last.unsqueeze(1)

    def _score_answers(self, output: Any, input_ids: Tensor, labels: Tensor) -> None:
        """Replace the log-probabilities [q, tokens - 1] of the next tokens, and the entropies of what they are from."""
        assert self.states is not None
        written = labels[:, 1:]
        # All prompts end in the same column: TRL pads them at the left.
        prompt = int((labels != IGNORED).any(0).int().argmax())
        log_odds = self._log_odds(input_ids, prompt)
        answered = (written != IGNORED).nonzero(as_tuple=True)
        logits = self.model.vision_language.logits(self.states[:, :-1][answered])
        shifted = shift_mask_type(
            logits.float(), log_odds[answered[0]], self.model.seg_token_ids
        )
        log_probs = (shifted / self.temperature).log_softmax(1)
        chosen = log_probs.gather(1, written[answered][:, None])[:, 0]
        empty = torch.zeros(written.shape, dtype=chosen.dtype, device=chosen.device)
        output.log_probs = empty.index_put(answered, chosen)
        entropy = -(log_probs.detach().exp() * log_probs.detach()).sum(1)
        output.entropy = empty.index_put(answered, entropy)
