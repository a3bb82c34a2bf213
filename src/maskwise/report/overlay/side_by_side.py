"""Ground truth and prediction of a sample side by side, and sheets of several images."""

from collections.abc import Sequence

from PIL import Image, ImageDraw

from maskwise.report.overlay.canvas import DARK, LIGHT
from maskwise.report.overlay.draw import draw_overlay
from maskwise.report.overlay.labels import default_font
from maskwise.schema import MaskType, PredictedRegion, Prediction, Sample

GAP = 12
"""Pixels between two images."""


def draw_comparison(
    image: Image.Image,
    sample: Sample,
    prediction: Prediction | None,
    *,
    mask_type: MaskType = "both",
    score: float | None = None,
    labels: bool = True,
) -> Image.Image:
    """The targets on the left, the predicted regions on the right, mask types above, question and answers below.

    A prediction that failed or is missing is the image alone, with the reason. score: written above the prediction.
    """
    truth = draw_overlay(
        image,
        sample.targets,
        mask_type=mask_type,
        question=sample.question,
        answer=sample.answer,
        labels=labels,
        ignore=sample.ignore,
    )
    predicted = draw_overlay(
        image,
        _drawable_regions(prediction, image),
        mask_type=mask_type,
        question=describe_outcome(prediction),
        answer=None if prediction is None else prediction.answer,
        labels=labels,
    )
    truth_title = f"ground truth ({sample.mask_type})"
    title = "prediction"
    if prediction is not None and prediction.mask_type is not None:
        title += f" ({prediction.mask_type})"
    if score is not None:
        title += f", score {score:.2f}"
    titled = [add_title(truth, truth_title), add_title(predicted, title)]
    return make_sheet(titled, columns=2)


def describe_outcome(prediction: Prediction | None) -> str | None:
    """What a reader has to know of a prediction beside its masks and answer; None if there is nothing."""
    if prediction is None:
        return "no prediction"
    if prediction.error is not None:
        return f"failed: {prediction.error}"
    if prediction.no_target:
        return "no target"
    return None if prediction.regions else "no region"


def _drawable_regions(
    prediction: Prediction | None, image: Image.Image
) -> list[PredictedRegion]:
    """The predicted regions whose masks have the size of the image."""
    if prediction is None:
        return []
    size = (image.height, image.width)
    return [region for region in prediction.regions if region.size == size]


def add_title(image: Image.Image, title: str) -> Image.Image:
    """The image with a line of text above it."""
    # By the width alone: images side by side have captions of different heights.
    font = default_font((image.width, image.width))
    height = round(font.size * 1.6)
    sheet = Image.new("RGB", (image.width, image.height + height), LIGHT)
    sheet.paste(image, (0, height))
    place = (round(font.size * 0.4), round(font.size * 0.2))
    ImageDraw.Draw(sheet).text(place, title, fill=DARK, font=font)
    return sheet


def make_sheet(images: Sequence[Image.Image], *, columns: int) -> Image.Image:
    """Images in rows of `columns`, each as high as its highest image; an empty sheet of one pixel for none."""
    rows = [images[first : first + columns] for first in range(0, len(images), columns)]
    widths = [sum(image.width + GAP for image in row) - GAP for row in rows]
    heights = [max(image.height for image in row) + GAP for row in rows]
    size = (max(widths, default=1), max(1, sum(heights) - GAP))
    sheet = Image.new("RGB", size, LIGHT)
    top = 0
    for row, height in zip(rows, heights):
        left = 0
        for image in row:
            sheet.paste(image, (left, top))
            left += image.width + GAP
        top += height
    return sheet
