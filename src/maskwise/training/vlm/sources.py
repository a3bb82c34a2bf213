"""Sources of training samples, grouped by image, so that the questions of an image share its encoding.

source[index]       the image and its questions, with all its regions; index below len(source)
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from random import Random

import msgspec
import numpy as np
from PIL import Image

from maskwise.errors import ConfigError, MaskwiseError
from maskwise.images import open_image, resolve_inside
from maskwise.models.vlm.batch import ImageQuestions
from maskwise.schema import Answer, Sample
from maskwise.training.config_file import open_dataset
from maskwise.training.vlm.augment import Augmentation, augment, choose_questions
from maskwise.training.vlm.color_words import (
    draw_colors,
    exchange_colors,
    names_held_out_color,
)
from maskwise.training.vlm.config import SourceConfig, WorldScenes
from maskwise.training.vlm.dataset_sources import (
    WORDING_LENGTH,
    CategorySource,
    DatasetSource,
    ItemSize,
    Source,
)
from maskwise.training.vlm.mixing import MixedOrder
from maskwise.training.vlm.paraphrase import Paraphraser
from maskwise.training.vlm.streamed_source import StreamedSource
from maskwise.world import SceneQuestion, make_scene

CACHE_BYTES = 512_000_000
"""Rendered scenes that are kept in memory by a process and source."""

SCENE_BYTES_PER_PIXEL = 4
"""Of a rendered scene: three colours, and the run lengths of its masks."""

COMMON_PIXELS = 640 * 480
"""Of an image of COCO, from which most instruction data is made."""

MAX_LINE = 1_000_000
"""Bytes of a line of a text file, at most."""

TEXT_LINE = '{"question": "What is a mug?", "answer": "A cup."}'


def open_source(config: SourceConfig) -> Source:
    """The source that a config describes."""
    if config.world is not None:
        return WorldSource(config.world)
    if config.text is not None:
        images = None if config.images is None else Path(config.images)
        return TextSource(Path(config.text), images)
    if config.stream is not None:
        assert config.expected_images is not None
        return StreamedSource(config.stream, config.split, config.expected_images)
    assert config.dataset is not None
    dataset = open_dataset(config.dataset, images=config.images)
    if config.questions == "categories":
        return CategorySource(dataset)
    return DatasetSource(dataset)


class WorldSource:
    """Scenes of the world, rendered when they are first needed."""

    window: int | None = None

    def __init__(self, scenes: WorldScenes) -> None:
        self.scenes = scenes
        self.samples = scenes.scenes * scenes.questions
        scene_bytes = SCENE_BYTES_PER_PIXEL * scenes.size**2
        self._make = lru_cache(CACHE_BYTES // scene_bytes)(self._render)

    def __len__(self) -> int:
        return self.scenes.scenes

    def size_of(self, index: int) -> ItemSize:
        """All alike: the questions are not known before a scene is made."""
        pixels = self.scenes.size**2 if self.scenes.images else 0
        return ItemSize(pixels, self.scenes.questions, WORDING_LENGTH)

    def __getitem__(self, index: int) -> ImageQuestions:
        return self._make(index)

    def _render(self, index: int) -> ImageQuestions:
        wanted = self.scenes
        scene = make_scene(
            wanted.seed,
            index,
            wanted.split,
            wanted.size,
            questions=wanted.questions,
            preset=wanted.preset,
        )
        samples = []
        for sample, question in zip(scene.samples, scene.questions):
            if wanted.held_out_colors or not names_held_out_color(question.np):
                samples.append(self._rephrase(sample, question))
        if not wanted.images:
            return ImageQuestions(None, self._exchange_colors(samples, index))
        image = Image.fromarray(scene.image)
        return ImageQuestions(image, tuple(samples), scene.regions)

    def _exchange_colors(self, samples: list[Sample], index: int) -> tuple[Sample, ...]:
        """The samples of a scene, or all of them with the same permutation of colors."""
        rng = Random(f"colors {self.scenes.seed} {index}")
        if rng.random() >= self.scenes.exchanged_colors:
            return tuple(samples)
        exchanged = draw_colors(rng)
        return tuple(exchange_colors(sample, exchanged) for sample in samples)

    def _rephrase(self, sample: Sample, question: SceneQuestion) -> Sample:
        """The sample, or the same sample in words of the mask-type corpus; always the same one for a question."""
        rng = Random(f"{self.scenes.seed} {sample.id}")
        if rng.random() >= self.scenes.paraphrased:
            return sample
        text = _paraphraser().rephrase(question, rng)
        return msgspec.structs.replace(sample, question=text)


@cache
def _paraphraser() -> Paraphraser:
    return Paraphraser()


class _Turn(msgspec.Struct, forbid_unknown_fields=True):
    question: str
    answer: str


class TextSource:
    """Questions and answers without masks: JSON lines with `question` and `answer`, or a JSON file as LLaVA's.

    images: the folder of the images that LLaVA's entries name; without it only entries without an image are used.
    """

    window: int | None = None

    def __init__(self, path: Path, images: Path | None = None) -> None:
        self._items = read_conversations(path) if _is_array(path) else _read_turns(path)
        if images is None:
            self._items = [item for item in self._items if not item[0].image_id]
        if not self._items:
            raise ConfigError(
                f"{path} has no questions without an image; give the folder of its images as `images`"
            )
        self._images = images
        self.samples = sum(map(len, self._items))

    def __len__(self) -> int:
        return len(self._items)

    def size_of(self, index: int) -> ItemSize:
        """The image is counted as one of common size: its header is not read."""
        samples = self._items[index]
        characters = sum(
            len(sample.question) + len(str(sample.answer)) for sample in samples
        )
        pixels = COMMON_PIXELS if samples[0].image_id else 0
        return ItemSize(pixels, len(samples), characters / len(samples))

    def __getitem__(self, index: int) -> ImageQuestions:
        samples = self._items[index]
        name = samples[0].image_id
        if not name or self._images is None:
            return ImageQuestions(None, samples)
        return ImageQuestions(open_image(resolve_inside(self._images, name)), samples)


def _is_array(path: Path) -> bool:
    """True if a file begins as a JSON array does."""
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] == b"["
    except OSError as error:
        raise _no_text(path, error) from None


def _no_text(path: Path, error: OSError) -> ConfigError:
    reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
    return ConfigError(
        f"{path}: {reason}; expected a file of JSON lines such as {TEXT_LINE}, or LLaVA's JSON; correct `text` or "
        "remove the source"
    )


def _read_turns(path: Path) -> list[tuple[Sample, ...]]:
    """The questions of a file of JSON lines."""
    decoder = msgspec.json.Decoder(_Turn)
    items: list[tuple[Sample, ...]] = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(
                iter(lambda: file.readline(MAX_LINE + 1), b""), 1
            ):
                if len(line) > MAX_LINE:
                    raise MaskwiseError(
                        f"{path}, line {number}: longer than {MAX_LINE:,} bytes"
                    )
                if line.strip():
                    turn = decoder.decode(line)
                    name = f"{path.name}-{number}"
                    items.append((_to_sample(name, "", turn.question, turn.answer),))
    except OSError as error:
        raise _no_text(path, error) from None
    except msgspec.MsgspecError as error:
        raise MaskwiseError(f"{path}, line {number}: {error}") from None
    return items


class _Message(msgspec.Struct, rename={"speaker": "from"}):
    speaker: str
    value: str


class _Conversation(msgspec.Struct):
    conversations: tuple[_Message, ...]
    id: str | int = ""
    image: str = ""


def read_conversations(path: Path) -> list[tuple[Sample, ...]]:
    """The questions and answers of each entry of a file in the format of LLaVA's instruction data.

    Every question of a person that a model answers is one sample; entries without any are left out.
    """
    try:
        entries = msgspec.json.decode(path.read_bytes(), type=list[_Conversation])
    except OSError as error:
        raise _no_text(path, error) from None
    except msgspec.MsgspecError as error:
        raise MaskwiseError(
            f"{path}: {error}; expected a list of objects with `conversations`, each of messages with `from` and "
            "`value`"
        ) from None
    items = []
    for number, entry in enumerate(entries):
        samples = []
        turns = zip(entry.conversations, entry.conversations[1:])
        for place, (asked, answered) in enumerate(turns):
            if asked.speaker in ("human", "user") and answered.speaker in (
                "gpt",
                "assistant",
            ):
                question = asked.value.replace("<image>", "").strip()
                name = f"{entry.id or number}-{place}"
                samples.append(_to_sample(name, entry.image, question, answered.value))
        if samples:
            items.append(tuple(samples))
    return items


def _to_sample(name: str, image: str, question: str, answer: str) -> Sample:
    return Sample(
        id=name, image_id=image, question=question, answer=Answer(text=answer)
    )


CHARACTERS_PER_TOKEN = 4.0
"""Of English text, roughly."""

PIXELS_PER_TOKEN = 28.0 * 28.0
"""Of an image in the Qwen families."""


class TrainingItems:
    """The items of a stage by their position: an image, some of its questions, augmented.

    An item depends only on the seed and its position.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        rates: Mapping[str, float],
        augmentation: Augmentation,
        *,
        questions_per_image: int,
        seed: int,
    ) -> None:
        self.sources = sources
        self.augmentation = augmentation
        self.questions_per_image = questions_per_image
        self.seed = seed
        windows = {}
        for name in rates:
            window = sources[name].window
            if window is not None:
                windows[name] = window
        self.order = MixedOrder(
            {name: len(sources[name]) for name in rates}, rates, seed, windows=windows
        )

    def length_of(self, position: int) -> float:
        """About how many tokens the item at a position has, its image and its chosen questions, without opening it."""
        name, index = self.order.draw(position)
        size = self.sources[name].size_of(index)
        questions = min(size.questions, self.questions_per_image)
        text = questions * size.characters / CHARACTERS_PER_TOKEN
        return text + size.pixels / PIXELS_PER_TOKEN

    def name_of(self, position: int) -> str:
        """Source and number of the item at a position, for a message about one that cannot be read."""
        name, index = self.order.draw(position)
        return f"{name}, image {index}"

    def __getitem__(self, position: int) -> ImageQuestions:
        name, index = self.order.draw(position)
        random = np.random.default_rng((self.seed, 2, position))
        item = self.sources[name][index]
        samples = choose_questions(item.samples, self.questions_per_image, random)
        chosen = ImageQuestions(item.image, samples, item.regions)
        return augment(chosen, self.augmentation, random)
