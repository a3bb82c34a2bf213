"""Make scenes: an image, its objects and parts with exact masks, and questions about it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maskwise.arrays import BoolArray, UInt8Array
from maskwise.errors import UnknownNameError
from maskwise.masks import Mask, Masks
from maskwise.schema import Region, Sample
from maskwise.world.background import sample_background
from maskwise.world.catalogue import PRESETS, SPLITS
from maskwise.world.dialogues import SceneDialogue, generate_dialogues
from maskwise.world.grammar import SceneQuestion, generate_questions
from maskwise.world.random_streams import RandomStream, scene_streams
from maskwise.world.render import render
from maskwise.world.scene_graph import SceneGraph, SceneNode, build_scene_graph
from maskwise.world.scene_layout import SceneLayout, sample_layout

SIZE = 160
"""Default side of an image in pixels."""

QUESTIONS = 6
"""Default number of questions per scene."""


@dataclass(frozen=True)
class Scene:
    """An image with exact masks and questions.

    image: uint8 (size, size, 3). `graph` lists every object and part. Dense and run-length masks are computed when
    first used. `id` names the preset if it is not the default one, split, seed and index, which determine the scene.
    """

    id: str
    split: str
    image: UInt8Array
    layout: SceneLayout
    graph: SceneGraph
    questions: tuple[SceneQuestion, ...]
    dialogues: tuple[SceneDialogue, ...] = ()

    @property
    def nodes(self) -> tuple[SceneNode, ...]:
        """Every object, each followed by its parts, from the front to the back."""
        return self.graph.nodes

    @cached_property
    def dense(self) -> tuple[BoolArray, BoolArray]:
        """Visible and amodal masks of all nodes, bool (nodes, size, size) each."""
        return self.graph.dense()

    @cached_property
    def masks(self) -> tuple[list[Mask], list[Mask]]:
        """Visible and amodal masks of all nodes as run lengths."""
        visible, amodal = self.dense
        both = list(Masks.from_dense(np.concatenate([visible, amodal])))
        return both[: len(visible)], both[len(visible) :]

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """All nodes as regions; ids are `object` or `object.part`, objects numbered from the front."""
        visible, amodal = self.masks
        return tuple(
            Region(
                id=_region_id(node),
                name=node.name,
                visible=visible[place],
                amodal=amodal[place],
                part_of=None if node.part is None else str(node.order),
                order=node.order,
            )
            for place, node in enumerate(self.nodes)
        )

    @cached_property
    def dialogue_samples(self) -> tuple[Sample, ...]:
        """The dialogues as samples; the last turn is asked."""
        return tuple(
            Sample(
                id=f"{self.id}-d{number}",
                image_id=self.id,
                question=dialogue.question,
                mask_type=dialogue.mask_type,
                targets=(self.regions[dialogue.target],),
                answer=dialogue.answer,
                turns=dialogue.turns,
                tags={
                    "question_type": dialogue.kind,
                    "turns": str(1 + len(dialogue.turns)),
                    "split": self.split,
                },
            )
            for number, dialogue in enumerate(self.dialogues)
        )

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """The questions as samples; the image's id is the scene's."""
        return tuple(
            Sample(
                id=f"{self.id}-{number}",
                image_id=self.id,
                question=question.text,
                mask_type=question.mask_type,
                targets=tuple(self.regions[place] for place in question.targets),
                answer=question.answer,
                tags=question.tags,
            )
            for number, question in enumerate(self.questions)
        )


def make_scene(
    seed: int,
    index: int,
    split: str = "train",
    size: int = SIZE,
    *,
    questions: int = QUESTIONS,
    dialogues: int = 0,
    preset: str = "default",
) -> Scene:
    """Scene `index` of a split. It depends only on these arguments; the layout does not depend on size."""
    if split not in SPLITS:
        raise UnknownNameError("split", split, SPLITS)
    if preset not in PRESETS:
        raise UnknownNameError("preset", preset, PRESETS)
    streams = scene_streams(seed, SPLITS[split].number, index)
    layout = sample_layout(split, preset, streams["layout"])
    image, graph = draw_layout(layout, size, streams)
    asked = generate_questions(graph, split, questions, streams["questions"])
    id = (
        f"{split}-{seed}-{index}"
        if preset == "default"
        else f"{preset}-{split}-{seed}-{index}"
    )
    talked = generate_dialogues(graph, dialogues, streams["dialogues"])
    return Scene(id, split, image, layout, graph, tuple(asked), tuple(talked))


def draw_layout(
    layout: SceneLayout, size: int, streams: dict[str, RandomStream]
) -> tuple[UInt8Array, SceneGraph]:
    """The image and the graph of a layout. streams: those of its scene, which give the
    background and the noise.
    """
    background = sample_background(
        layout.setting, layout.horizon, streams["background"]
    )
    image, object_map, rasters = render(layout, background, size, streams["noise"])
    return image, build_scene_graph(layout, object_map, rasters)


def stream_scenes(
    seed: int,
    split: str = "train",
    size: int = SIZE,
    *,
    questions: int = QUESTIONS,
    preset: str = "default",
    start: int = 0,
    step: int = 1,
) -> Iterator[Scene]:
    """An endless iterator over indices start, start + step, ... (worker k of n uses start=k, step=n)."""
    index = start
    while True:
        yield make_scene(seed, index, split, size, questions=questions, preset=preset)
        index += step


def _region_id(node: SceneNode) -> str:
    return str(node.order) if node.part is None else f"{node.order}.{node.part}"
