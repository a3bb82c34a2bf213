"""Procedural scenes with exact visible, amodal and part masks, and questions about them written by a grammar.

    scene(seed, index, split, size)   one scene: image, items, dense or run-length masks, questions
    stream(seed, split, size)         scenes without end, for training
    write_scenes(path, n, seed)       scenes as a dataset folder
    bundled()                         the small test set that ships with the package
    bundled_predictions()             sample predictions for it, made by `spoil`

All categories, parts, colours, kinds and uses are in `catalogue`; all wordings in `wording`; which masks these are
exactly, in `items`. Splits: `train` and `val` are alike; `test` adds held-out wordings, held-out pairs of category and
colour, and more hiding.
"""

from maskwise.world.dataset import bundled, bundled_predictions, write_scenes
from maskwise.world.grammar import Question
from maskwise.world.items import Inventory, Item
from maskwise.world.scenes import QUESTIONS, SIZE, Scene, scene, stream

__all__ = [
    "QUESTIONS",
    "SIZE",
    "Inventory",
    "Item",
    "Question",
    "Scene",
    "bundled",
    "bundled_predictions",
    "scene",
    "stream",
    "write_scenes",
]
