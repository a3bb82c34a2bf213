"""Examples drawn for tests: squares that cover each other."""

import numpy as np

from maskwise.models.tiny.spec import IMAGE_SIZE
from maskwise.training.tiny.scene_dataset import SceneExample


def square_example(*boxes: tuple[int, int, int, int]) -> SceneExample:
    """One object of one part per box, later ones in front; category 3, color 1, material 0."""
    instances = np.full((IMAGE_SIZE, IMAGE_SIZE), -1, np.int16)
    image = np.zeros((IMAGE_SIZE, IMAGE_SIZE, 3), np.uint8)
    part_maps = []
    for index, (left, top, right, bottom) in enumerate(boxes):
        instances[top:bottom, left:right] = index
        image[top:bottom, left:right] = 60 * (index + 1)
        part_maps.append(np.ones((bottom - top, right - left), np.uint8))
    labels = np.array([(3, 1, 0)] * len(boxes), np.int64)
    return SceneExample(
        image, instances, labels, np.array(boxes, np.int64), part_maps, []
    )
