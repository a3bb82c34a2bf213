"""Sources of training samples, grouped by image, so that the questions of an image share its encoding.

source[index]       the image and its questions, with all its regions; index below len(source)
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Protocol

import msgspec
import numpy as np
from PIL import Image

from maskwise.errors import ConfigError, MaskwiseError
from maskwise.models.vlm.batch import ImageQuestions
from maskwise.schema import Answer, Sample
from maskwise.store import Dataset
from maskwise.training.config_file import open_dataset
from maskwise.training.vlm.augment import Augmentation, augment, choose_questions
from maskwise.training.vlm.config import SourceConfig, WorldScenes
from maskwise.training.vlm.mixing import MixedOrder
from maskwise.training.vlm.paraphrase import Paraphraser
from maskwise.world import SceneQuestion, make_scene

CACHED_SCENES = 4096
"""Rendered scenes that are kept in memory; one of 160 x 160 pixels needs about 0.1 MB."""

MAX_LINE = 1_000_000
"""Bytes of a line of a text file, at most."""

TEXT_LINE = '{"question": "What is a mug?", "answer": "A cup."}'


class Source(Protocol):
    """A sequence of images with questions. `samples`: the number of questions."""

    samples: int

    def __len__(self) -> int:
        """Number of images."""

    def __getitem__(self, index: int) -> ImageQuestions:
        """The image with all its questions and regions."""


def open_source(config: SourceConfig) -> Source:
    """The source that a config describes."""
    if config.world is not None:
        return WorldSource(config.world)
    if config.text is not None:
        return TextSource(Path(config.text))
    assert config.dataset is not None
    return DatasetSource(open_dataset(config.dataset, images=config.images))


class DatasetSource:
    """The images of a dataset folder that have questions."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.samples = len(dataset)
        order = np.argsort(dataset.samples.image, kind="stable")
        images = dataset.samples.image[order]
        self._groups = (
            np.split(order, np.flatnonzero(np.diff(images)) + 1) if len(order) else []
        )

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, index: int) -> ImageQuestions:
        samples = tuple(self.dataset[int(row)] for row in self._groups[index])
        image = samples[0].image_id
        return ImageQuestions(
            self.dataset.open_image(image), samples, self.dataset.regions_of(image)
        )


class WorldSource:
    """Scenes of the world, rendered when they are first needed."""

    def __init__(self, scenes: WorldScenes) -> None:
        self.scenes = scenes
        self.samples = scenes.scenes * scenes.questions
        self._make = lru_cache(CACHED_SCENES)(self._render)

    def __len__(self) -> int:
        return self.scenes.scenes

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
        samples = tuple(map(self._rephrase, scene.samples, scene.questions))
        if not wanted.images:
            return ImageQuestions(None, samples)
        return ImageQuestions(Image.fromarray(scene.image), samples, scene.regions)

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
    """Questions and answers without an image: JSON lines with `question` and `answer`."""

    def __init__(self, path: Path) -> None:
        self._samples = _read_turns(path)
        self.samples = len(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> ImageQuestions:
        return ImageQuestions(None, (self._samples[index],))


def _read_turns(path: Path) -> list[Sample]:
    decoder = msgspec.json.Decoder(_Turn)
    samples = []
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
                    answer = Answer(text=turn.answer)
                    samples.append(
                        Sample(
                            id=f"{path.name}-{number}",
                            image_id="",
                            question=turn.question,
                            answer=answer,
                        )
                    )
    except OSError as error:
        reason = (
            "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        )
        raise ConfigError(
            f"{path}: {reason}; expected a file of JSON lines such as {TEXT_LINE}; correct `text` or remove the source"
        ) from None
    except msgspec.MsgspecError as error:
        raise MaskwiseError(f"{path}, line {number}: {error}") from None
    return samples


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
        self.order = MixedOrder(
            {name: len(sources[name]) for name in rates}, rates, seed
        )

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
