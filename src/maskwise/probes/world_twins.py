"""Twins of scenes of the world: drawn again with the target removed, replaced, uncovered or covered.

The logical form of a question is executed on the new scene, so that its truth is exact. A
question that people could disagree about in the new scene is left out.
"""

from typing import NamedTuple

import numpy as np

from maskwise.formats.exported_dataset import read_encoded_image
from maskwise.harness.plan import PlannedImage
from maskwise.probes.changed_data import changed_image, changed_sample
from maskwise.probes.twin import ABSENT_KINDS, Twin, TwinKind
from maskwise.schema import Sample
from maskwise.store import Dataset
from maskwise.world import Scene, SceneGraph, SceneNode, SceneQuestion
from maskwise.world.dataset import Encoding, encode_image
from maskwise.world.edited_scenes import (
    SceneKey,
    cover_object,
    number_in_layout,
    parse_scene_id,
    remove_objects,
    replace_object,
)
from maskwise.world.logical_forms import AmbiguousError, is_recognisable
from maskwise.world.random_streams import RandomStream
from maskwise.world.scene_layout import SceneLayout

TRIES = 6
"""Covers that are tried for one target: many cover too little or too much."""

LEAST_COVERED = 0.15
"""The share of a target that a cover hides, or that uncovering shows."""

MAX_QUESTIONS = 64
"""Questions of a scene at most; a dataset of the world has fewer."""

SCENE_KINDS: tuple[TwinKind, ...] = ("removed", "replaced", "uncovered", "covered")

JPEG_START = b"\xff\xd8"


class AskedScene(NamedTuple):
    """A scene made again, with those of its questions that the dataset has."""

    key: SceneKey
    scene: Scene
    questions: tuple[tuple[Sample, SceneQuestion], ...]


def open_scene(dataset: Dataset, planned: PlannedImage) -> AskedScene | None:
    """The scene of an image; None if the image or its questions are not of the world."""
    info = dataset.image(planned.image)
    key = parse_scene_id(info.id)
    if key is None or info.width != info.height:
        return None
    samples = [dataset[row] for row in planned.rows]
    numbers = [sample.id.removeprefix(f"{info.id}-") for sample in samples]
    if not all(
        number.isdecimal() and int(number) < MAX_QUESTIONS for number in numbers
    ):
        return None
    count = max(int(number) for number in numbers) + 1
    scene = key.make(info.width, count)
    pairs = []
    for sample, number in zip(samples, numbers):
        if int(number) >= len(scene.questions):
            return None
        question = scene.questions[int(number)]
        if question.text != sample.question:
            return None
        pairs.append((sample, question))
    return AskedScene(key, scene, tuple(pairs))


def make_scene_twin(
    dataset: Dataset,
    planned: PlannedImage,
    asked: AskedScene,
    kind: TwinKind,
    rng: RandomStream,
) -> Twin | None:
    """A twin of one kind, of the first object for which that is possible; None if there is none.

    Only objects count that a question asks for alone.
    """
    objects = dict.fromkeys(
        asked.scene.nodes[question.targets[0]].whole
        for _, question in asked.questions
        if len(question.targets) == 1
    )
    for place in rng.shuffled(list(objects)):
        edited = _draw_twin(asked, place, kind, rng)
        if edited is None:
            continue
        info = dataset.image(planned.image)
        suffix = f"{kind}-{asked.scene.nodes[place].order}"
        image = changed_image(info, suffix, edited.image)
        samples = []
        for sample, question in asked.questions:
            targets = _twin_targets(asked.scene, edited.graph, question, place, kind)
            if targets is None:
                continue
            regions = tuple(edited.regions[target] for target in targets)
            twin_sample = changed_sample(
                sample, image, suffix, change=kind, targets=regions, answer=None
            )
            samples.append(twin_sample)
        if samples:
            stored = read_encoded_image(dataset, planned.image)
            # As the original is stored, so that compression makes no difference.
            encoding: Encoding = "jpeg" if stored.startswith(JPEG_START) else "png"
            data = encode_image(edited.image, encoding)
            return Twin(image, edited.regions, data, tuple(samples))
    return None


def _draw_twin(
    asked: AskedScene, place: int, kind: TwinKind, rng: RandomStream
) -> Scene | None:
    """The scene of a twin; None if the edit is not possible here."""
    scene = asked.scene
    node = scene.nodes[place]
    for _ in range(TRIES):
        layout = _edit(scene, node, kind, rng)
        if layout is None:
            return None
        pixels, graph = asked.key.draw(layout, len(scene.image))
        if kind != "covered" or _covers_enough(node, graph):
            return Scene(scene.id, scene.split, pixels, layout, graph, ())
    return None


def _edit(
    scene: Scene, node: SceneNode, kind: TwinKind, rng: RandomStream
) -> SceneLayout | None:
    numbers = number_in_layout(scene)
    number = numbers.get(node.order)
    if number is None:
        return None
    if kind == "removed":
        return remove_objects(scene.layout, [number])
    if kind == "replaced":
        return replace_object(scene.layout, number, rng)
    if kind == "covered":
        return cover_object(scene.layout, number, rng)
    if node.occlusion_rate < LEAST_COVERED:
        return None
    hidden = scene.graph.occluders(node.whole)
    fronts = [numbers.get(int(rank) + 1) for rank in np.flatnonzero(hidden)]
    return remove_objects(
        scene.layout, [front for front in fronts if front is not None]
    )


def _covers_enough(before: SceneNode, graph: SceneGraph) -> bool:
    """Whether an object is still there, and hidden more than before."""
    for place in graph.objects():
        node = graph.nodes[place]
        if _kind(node) == _kind(before):
            hidden_more = before.visible_area - node.visible_area
            is_covered = hidden_more >= LEAST_COVERED * before.amodal_area
            if is_covered and is_recognisable(graph, node):
                return True
    return False


def _twin_targets(
    scene: Scene,
    graph: SceneGraph,
    question: SceneQuestion,
    place: int,
    kind: TwinKind,
) -> tuple[int, ...] | None:
    """The targets of a question in a twin; None if it is not about the edited object, or if
    its truth is not what the kind of twin is about.
    """
    if len(question.targets) != 1:
        return None
    before = scene.nodes[question.targets[0]]
    if before.whole != place:
        return None
    try:
        targets = question.form.execute(graph)
    except AmbiguousError:
        return None
    if kind in ABSENT_KINDS:
        return () if not targets else None
    if len(targets) != 1:
        return None
    after = graph.nodes[targets[0]]
    if _kind(after) != _kind(before) or not is_recognisable(graph, after):
        return None
    return targets


def _kind(node: SceneNode) -> tuple[str, str, str, str | None]:
    return node.category, node.color, node.material, node.part
