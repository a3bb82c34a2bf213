"""Boxes of targets in the coordinates that language models read and write, and back to masks."""

from maskwise.formats.file_layout import Size
from maskwise.formats.written_losses import requested_masks
from maskwise.masks import Mask, Masks
from maskwise.schema import Sample

Box = tuple[int, int, int, int]
"""Left, top, right, bottom."""


def scaled_boxes(sample: Sample, space: Size) -> list[Box]:
    """The boxes of all targets with pixels, in an image that was resized to `space` (height, width), rounded."""
    masks = requested_masks(sample)
    if not masks:
        return []
    boxes = Masks.from_masks(masks).box().tolist()
    height, width = masks[0].size
    return [
        (
            round(left * space[1] / width),
            round(top * space[0] / height),
            round((left + box_width) * space[1] / width),
            round((top + box_height) * space[0] / height),
        )
        for left, top, box_width, box_height in boxes
    ]


def box_mask(box: Box, space: Size, size: Size) -> Mask:
    """The rectangle of a box, given in an image of size `space`, as a mask of an image of `size` (height, width).

    What lies outside the image is cut off; a box without pixels gives an empty mask.
    """
    left, right = (min(max(x, 0), space[1]) for x in (box[0], box[2]))
    top, bottom = (min(max(y, 0), space[0]) for y in (box[1], box[3]))
    if left >= right or top >= bottom:
        return Mask.empty(*size)
    scale_x = size[1] / space[1]
    scale_y = size[0] / space[0]
    rectangle = [
        left * scale_x,
        top * scale_y,
        (right - left) * scale_x,
        (bottom - top) * scale_y,
    ]
    return Masks.from_boxes([rectangle], [size])[0]
