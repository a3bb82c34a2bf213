"""A stage of reinforcement learning: GRPO of TRL on the language model, rewarded by our own protocols.

An answer is sampled as text with segmentation tokens. The hidden states of its tokens prompt the mask decoders, as in
prediction, and the masks are scored; nothing of that gets a gradient, only the tokens of the answer do.
"""

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from datasets import Dataset as Table
from PIL import Image
from torch import nn
from transformers import (
    PrinterCallback,
    Qwen2_5_VLProcessor,
    Qwen3VLProcessor,
    TrainerCallback,
)
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from maskwise.errors import ConfigError
from maskwise.models.vlm.batch import ImageQuestions
from maskwise.models.vlm.generation import encode_image, masks_of_answers
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.predictor import Vlm
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.schema import Prediction, Sample
from maskwise.training.accelerator import is_deepspeed, is_fsdp
from maskwise.training.progress import report
from maskwise.training.trackers import Tracker, open_trackers
from maskwise.training.vlm.config import Stage, VlmTrainingConfig
from maskwise.training.vlm.head_in_sampling import mask_type_head_in_sampling
from maskwise.training.vlm.rewards import REWARDS
from maskwise.training.vlm.usable_items import SUBSTITUTES, UsableItems

LOGGED_PREFIXES = (
    "reward",
    "frac_reward_zero_std",
    "completions/mean_length",
    "entropy",
    "kl",
    "loss",
    "grad_norm",
)
"""Values of TRL that are written to the training curve: how much is rewarded, how long answers are, how they vary.
`frac_reward_zero_std` is the share of questions whose answers were all rewarded alike, which nothing is learned from.
"""

KEPT_IMAGES = 64
"""Images that are kept: those of a step, which sampling and rewards both need."""


def run_grpo(
    config: VlmTrainingConfig,
    stage: Stage,
    model: VlmModel,
    processor: VlmProcessor,
    *,
    items: UsableItems,
    folder: Path,
) -> None:
    """Train the language model of `model` for the steps of a stage; its checkpoints are those of TRL.

    model: with frozen parameters set; of the trained ones only those of the language model change.
    """
    assert stage.grpo is not None
    steps = config.schedule_of(stage).steps
    rows = QuestionRows(
        items, processor, config.optimization_of(stage).questions_per_image
    )
    language: Any = model.vision_language.model
    rewards = AnswerRewards(Vlm(model, processor), rows)
    names = [name for name, weight in stage.grpo.rewards.items() if weight]
    trainer = _Trainer(
        model=language,
        reward_funcs=[rewards.function(name) for name in names],
        args=_arguments(config, stage, folder, names),
        # With several processes each has its own questions.
        train_dataset=rows.table(
            steps * stage.grpo.questions_per_step * PartialState().num_processes
        ),
        processing_class=make_trl_processor(processor, language.config.model_type),
        callbacks=[_Curve(folder, stage.name, steps)],
        kl_weight=stage.grpo.beta,
    )
    # It prints every row to standard output; the curve has them.
    trainer.remove_callback(PrinterCallback)
    checkpoints = folder / "checkpoints" / stage.name
    with mask_type_head_in_sampling(model, processor, stage.grpo.temperature):
        trainer.train(resume_from_checkpoint=any(checkpoints.glob("checkpoint-*")))


class _Trainer(GRPOTrainer):
    """The trainer of TRL without its report to the hub, as training needs no connection, and with a reference of its
    own: TRL reads the reference from the hub again, where the weights of a run are not.

    The reference is the model with the values that its trained parameters had at the start of the stage. These are put
    in for one forward, so that hooks on the model hold for both and frozen weights are in memory once.
    """

    def __init__(self, *, kl_weight: float, **options: Any) -> None:
        super().__init__(**options)
        if kl_weight:
            if is_fsdp(self.accelerator) or is_deepspeed(self.accelerator):
                raise ConfigError(
                    "beta: its reference needs whole parameters, which FSDP and DeepSpeed split among processes; "
                    "set beta = 0"
                )
            self.beta = kl_weight
            # TRL passes it on as the model whose log-probabilities are wanted.
            self.ref_model = _StartValues(self.model)

    def _get_per_token_logps_and_entropies(
        self, model: Any, *values: Any, **options: Any
    ) -> Any:
        """As in TRL; for the reference with the start values."""
        compute = super()._get_per_token_logps_and_entropies
        if not isinstance(model, _StartValues):
            return compute(model, *values, **options)
        with model.put_in():
            return compute(self.model, *values, **options)

    def _send_telemetry(self) -> None:
        """Nothing is sent."""


class _StartValues:
    """The values that the trained parameters of a model have now."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = [
            parameter for parameter in model.parameters() if parameter.requires_grad
        ]
        self.values = [parameter.detach().clone() for parameter in self.parameters]

    @contextmanager
    def put_in(self) -> Iterator[None]:
        """The parameters have these values within the block, and their own again after it."""
        own = [parameter.data for parameter in self.parameters]
        self._set(self.values)
        try:
            yield
        finally:
            self._set(own)

    def _set(self, values: Sequence[torch.Tensor]) -> None:
        for parameter, value in zip(self.parameters, values):
            parameter.data = value


def _arguments(
    config: VlmTrainingConfig, stage: Stage, folder: Path, names: Sequence[str]
) -> GRPOConfig:
    """The settings of TRL for a stage, without `beta`, for which it would read a reference from the hub."""
    grpo = stage.grpo
    assert grpo is not None
    optimization = config.optimization_of(stage)
    return GRPOConfig(
        output_dir=str(folder / "checkpoints" / stage.name),
        max_steps=config.schedule_of(stage).steps,
        learning_rate=optimization.learning_rate,
        lr_scheduler_type=optimization.schedule,
        warmup_steps=optimization.warmup_steps,
        adam_beta1=optimization.betas[0],
        adam_beta2=optimization.betas[1],
        weight_decay=optimization.weight_decay,
        max_grad_norm=optimization.clip_norm,
        per_device_train_batch_size=grpo.questions_per_step * grpo.generations,
        num_generations=grpo.generations,
        temperature=grpo.temperature,
        scale_rewards=grpo.scale_rewards,
        max_completion_length=grpo.max_new_tokens or config.vlm.max_new_tokens,
        reward_weights=[grpo.rewards[name] for name in names],
        seed=config.seed,
        bf16=config.precision == "bf16",
        gradient_checkpointing=config.gradient_checkpointing,
        logging_steps=config.log_every,
        save_steps=config.checkpoint_every,
        save_total_limit=config.keep_checkpoints,
        use_cpu=not torch.cuda.is_available(),
        report_to="none",
        disable_tqdm=True,
        # Rows are in the order of the stage already.
        shuffle_dataset=False,
    )


class QuestionRows:
    """The questions of a stage, one per row, with their images. A row is read when it is needed.

    Rows of an image follow each other: `questions_per_image` of them, repeated where an image has fewer.
    """

    def __init__(
        self, items: UsableItems, processor: VlmProcessor, questions_per_image: int
    ) -> None:
        self.items = items
        self.processor = processor
        self.questions_per_image = questions_per_image
        self._read = lru_cache(KEPT_IMAGES)(self._find)

    def __getitem__(self, row: int) -> tuple[Image.Image, Sample]:
        """The image and the question of a row."""
        position, number = divmod(row, self.questions_per_image)
        item = self._read(position)
        assert item.image is not None
        return item.image, item.samples[number % len(item.samples)]

    def _find(self, position: int) -> ImageQuestions:
        """The item at a position, or the next substitute with an image: without one there are no masks to reward."""
        for attempt in range(SUBSTITUTES):
            item = self.items[position + attempt * self.items.positions]
            if item.image is not None and item.samples:
                return item
        raise ConfigError(
            f"{SUBSTITUTES} items in a row have no question about an image; a stage of GRPO needs sources with images"
        )

    def table(self, count: int) -> Table:
        """The first `count` rows as TRL expects them."""
        table = Table.from_dict({"row": list(range(count))})
        # The name stands for a hash of the function, which would hash the sources.
        table.set_format("custom", transform=self._to_trl, new_fingerprint="questions")
        return table

    def _to_trl(self, columns: dict[str, list[int]]) -> dict[str, list[Any]]:
        """A conversation, its image, and the number of the row for the rewards."""
        made: dict[str, list[Any]] = {"prompt": [], "image": [], "row": columns["row"]}
        for row in columns["row"]:
            image, sample = self[row]
            turns = self.processor.conversation(sample.asked)
            made["prompt"].append(
                [{"role": role, "content": text} for role, text in turns]
            )
            made["image"].append(image)
        return made


class AnswerRewards:
    """The rewards of sampled answers. The masks of a batch are drawn once for all rewards."""

    def __init__(self, predictor: Vlm, rows: QuestionRows) -> None:
        self.predictor = predictor
        self.rows = rows
        self._last: tuple[list[list[int]], list[Prediction]] | None = None

    def function(self, name: str) -> Any:
        """A reward function of TRL, by the name of the reward."""

        def rewarded(
            completion_ids: list[list[int]], row: list[int], **_others: Any
        ) -> list[float | None]:
            samples = [self.rows[number][1] for number in row]
            return REWARDS[name](self._predict(completion_ids, row), samples)

        rewarded.__name__ = name
        return rewarded

    @torch.inference_mode()
    def _predict(
        self, completion_ids: list[list[int]], rows: list[int]
    ) -> list[Prediction]:
        if self._last is not None and self._last[0] is completion_ids:
            return self._last[1]
        model = self.predictor.model
        was_training = model.training
        model.eval()
        by_row: dict[int, list[int]] = {}
        for place, row in enumerate(rows):
            by_row.setdefault(row, []).append(place)
        predictions: list[Prediction | None] = [None] * len(rows)
        for row, places in by_row.items():
            processor = self.predictor.processor
            opened, sample = self.rows[row]
            image = encode_image(model, processor, opened)
            answers = [completion_ids[place] for place in places]
            drawn = masks_of_answers(model, processor, image, sample.asked, answers)
            for place, answer in zip(places, drawn):
                predictions[place] = self.predictor.to_prediction(image, answer)
        model.train(was_training)
        complete = [prediction for prediction in predictions if prediction is not None]
        self._last = (completion_ids, complete)
        return complete


class _Curve(TrainerCallback):  # type: ignore[misc]
    """Writes what TRL logs to the trackers of the run, and reports the progress."""

    def __init__(self, folder: Path, stage: str, steps: int) -> None:
        self.folder = folder
        self.stage = stage
        self.steps = steps
        self.trackers: list[Tracker] = []
        self.reward = math.nan

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Open the trackers."""
        if state.is_world_process_zero:
            self.trackers = open_trackers(self.folder, self.stage, state.global_step)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any
    ) -> None:
        """Write a row."""
        values = {}
        for name, value in (logs or {}).items():
            if name.startswith(LOGGED_PREFIXES) and math.isfinite(float(value)):
                values[name] = float(value)
        self.reward = values.get("reward", self.reward)
        if values:
            for tracker in self.trackers:
                tracker.write(state.global_step, values)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report the step."""
        note = "" if math.isnan(self.reward) else f"reward {self.reward:.3f}"
        if state.is_world_process_zero:
            report(self.stage, state.global_step, self.steps, note)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the trackers."""
        for tracker in self.trackers:
            tracker.close()


class _Qwen25Images(Qwen2_5_VLProcessor):  # type: ignore[misc]
    """The processor of Qwen2-VL and Qwen2.5-VL without its part for videos, which needs torchvision."""

    def __init__(
        self,
        image_processor: Any = None,
        tokenizer: Any = None,
        chat_template: str | None = None,
    ) -> None:
        super().__init__(image_processor, tokenizer, None, chat_template=chat_template)


class _Qwen3Images(Qwen3VLProcessor):  # type: ignore[misc]
    """The processor of Qwen3-VL without its part for videos."""

    def __init__(
        self,
        image_processor: Any = None,
        tokenizer: Any = None,
        chat_template: str | None = None,
    ) -> None:
        super().__init__(image_processor, tokenizer, None, chat_template=chat_template)


TRL_PROCESSORS = {
    "qwen2_vl": _Qwen25Images,
    "qwen2_5_vl": _Qwen25Images,
    "qwen3_vl": _Qwen3Images,
}
"""By model_type. TRL needs a processor class of transformers."""


def make_trl_processor(processor: VlmProcessor, model_type: str) -> Any:
    """The processor in the form that TRL uses; it makes the same prompts."""
    if model_type not in TRL_PROCESSORS:
        raise ConfigError(
            f"stages of GRPO need a model of the Qwen families ({', '.join(TRL_PROCESSORS)}), not {model_type}"
        )
    tokenizer = copy.deepcopy(processor.tokenizer)
    # TRL pads prompts at the left by itself, and takes the places of image tokens from the processor.
    tokenizer.padding_side = "left"
    return TRL_PROCESSORS[model_type](
        processor.image_processor, tokenizer, tokenizer.chat_template
    )
