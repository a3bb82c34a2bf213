"""A tokenizer for models that start from random weights: byte-level BPE trained on the texts of the world's grammar."""

from collections.abc import Iterator
from random import Random
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from maskwise.models.vlm.build import NEW_IMAGE_TOKEN, build_processor
from maskwise.models.vlm.config import VlmConfig
from maskwise.models.vlm.pretrained import read_architecture
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.training.vlm.paraphrase import Paraphraser
from maskwise.world import stream_scenes

PAD = "<|pad|>"
START = "<|assistant|>"
END = "<|end|>"
IMAGE_TOKENS = ("<|vision_start|>", NEW_IMAGE_TOKEN, "<|vision_end|>")
VIDEO = "<|video_pad|>"

CHAT_TEMPLATE = (
    "{% for message in messages %}{% for item in message['content'] %}"
    "{% if item['type'] == 'image' %}"
    + "".join(IMAGE_TOKENS)
    + "{% else %}{{ item['text'] }}{% endif %}"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %}" + START + "{% endif %}"
)
"""Short, because a small model spends its time on tokens: image, question, start of the answer."""


def new_processor(config: VlmConfig) -> VlmProcessor:
    """The processor at the start of a run: that of the pretrained model, or one with a tokenizer trained here."""
    if config.vision_language.name is not None:
        return build_processor(config)
    architecture = read_architecture(config.vision_language)
    vocabulary = architecture.get_text_config().vocab_size
    tokenizer = train_nano_tokenizer(
        vocabulary, config.seg_tokens, config.vocabulary_scenes
    )
    return build_processor(config, tokenizer=tokenizer)


def train_nano_tokenizer(
    vocabulary: int, seg_tokens: tuple[str, str], scenes: int
) -> Any:
    """A tokenizer of at most this vocabulary, special tokens included."""
    special = [PAD, START, END, *IMAGE_TOKENS, VIDEO, *seg_tokens]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[
            AddedToken(token, special=True, normalized=False) for token in special
        ],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_grammar_texts(scenes), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=special[1:],
        chat_template=CHAT_TEMPLATE,
    )


def _grammar_texts(scenes: int) -> Iterator[str]:
    """Questions, their paraphrases, answers and names of scenes of the training split."""
    paraphraser = Paraphraser()
    rng = Random(0)
    for _, scene in zip(range(scenes), stream_scenes(0, "train", 32)):
        for question in scene.questions:
            yield question.text
            yield paraphraser.rephrase(question, rng)
            yield question.answer.text
        for node in scene.nodes:
            yield f"the {node.name}"
