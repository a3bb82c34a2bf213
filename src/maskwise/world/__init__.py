"""Procedural scenes with exact visible, amodal and part masks, and questions about them written by a grammar.

    make_scene(seed, index, split, size)   one scene: image, nodes, dense or run-length masks, questions
    stream_scenes(seed, split, size)       an endless iterator over scenes, for training
    write_scenes(path, n, seed)            scenes as a dataset folder
    bundled()                              the small test set that ships with the package
    bundled_predictions()                  example predictions for it, made by the model `oracle`

Categories, parts, colors, affordances, splits and presets are in `catalogue`, wordings in `question_templates`;
`scene_graph` defines the masks. `train` and `val` have the same distribution; `test` adds held-out wordings, held-out
pairs of category and color, and more occlusion.
"""

from maskwise.world.dataset import bundled, bundled_predictions, write_scenes
from maskwise.world.grammar import SceneQuestion
from maskwise.world.scene_graph import SceneGraph, SceneNode
from maskwise.world.scenes import QUESTIONS, SIZE, Scene, make_scene, stream_scenes

__all__ = [
    "QUESTIONS",
    "SIZE",
    "Scene",
    "SceneGraph",
    "SceneNode",
    "SceneQuestion",
    "bundled",
    "bundled_predictions",
    "make_scene",
    "stream_scenes",
    "write_scenes",
]
