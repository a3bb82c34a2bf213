import numpy as np
from PIL import Image

from maskwise.models.tiny import load
from maskwise.models.tiny.greedy_matching import match_masks, match_targets
from maskwise.world import make_scene


def test_masks_are_matched_by_iou_best_first_and_once() -> None:
    def bar(first: int, stop: int) -> np.ndarray:
        mask = np.zeros((1, 10), bool)
        mask[0, first:stop] = True
        return mask

    ground_truth = np.stack([bar(0, 4), bar(4, 8)])
    found = np.stack([bar(0, 3), bar(0, 4), bar(5, 8), bar(9, 10)])
    assert match_masks(found, ground_truth) == [-1, 0, 1, -1]
    assert match_masks(found[:0], ground_truth) == []
    assert match_masks(found, ground_truth[:0]) == [-1] * 4


def test_most_targets_of_a_scene_match_a_detection_of_the_same_name() -> None:
    shown = make_scene(31, 2, "val")
    encoded = load().encode(Image.fromarray(shown.image))
    for sample in shown.samples:
        names = {
            encoded.candidates[key].name
            for key in match_targets(encoded, sample.targets)
        }
        assert names <= {region.name for region in sample.targets}
