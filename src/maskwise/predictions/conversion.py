"""Predictions from whatever people have: one conversion for `maskwise.score`, for what `predict` returns, and for the
responses of command and HTTP models.

| given | is |
|---|---|
| a `Prediction` | itself |
| masks: a `Masks`, an array or tensor (n, height, width), a list of masks | one region per mask |
| one mask: an array (height, width), a COCO run-length dict, a PIL image | one region |
| supervision `Detections` | one region per detection, with its confidence and class name |
| a dict with `masks` and perhaps `scores` and `names` (or `labels`) | one region per mask |
| a dict with the fields of a prediction, such as `regions`, `answer` or `no_target` | those fields |

No mask at all (an empty list, an array of shape (0, height, width)) says that nothing in the image is meant:
`no_target`. A dict says that with its field only.

A region is a `PredictedRegion` or a dict with `score`, `name` and

- `visible` and `amodal`, or `mask` for the type that the caller names: any mask, run lengths compressed or not,
  polygons where the size of the image is known, or `{"png": ...}`, a PNG as bytes or in base64, 0 outside;
- or `box` [x0, y0, x1, y1] or `points` [[x, y], ...] in pixels, with `"as_mask": true`: a model without masks has the
  box filled, or the pixels of the points set. Without this flag they are refused, so that no box is taken for a mask by
  mistake.
"""

import base64
import binascii
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from PIL import Image

from maskwise.errors import ImageError, MaskError, RecordError
from maskwise.images import open_image
from maskwise.masks import Mask, as_mask, as_masks
from maskwise.schema import PredictedRegion, Prediction

Size = tuple[int, int]

SingleType = Literal["visible", "amodal"]

PREDICTION_FIELDS = frozenset(Prediction.__struct_fields__)
LISTED_FIELDS = frozenset({"masks", "scores", "names", "labels"})
REGION_FIELDS = frozenset(
    {"visible", "amodal", "mask", "score", "name", "box", "points", "as_mask"}
)
"""The keys of dicts; others are refused."""


def to_prediction(
    item: Any, *, size: Size | None = None, mask_type: SingleType = "visible"
) -> Prediction:
    """A prediction from any of the forms that the module lists; `sample` stays empty unless the item has it.

    size: height and width of the image; masks of another size are refused, polygons and boxes need it. mask_type: of
    masks that do not say. MaskError or RecordError says what was expected.
    """
    if isinstance(item, Prediction):
        return item
    if item is None:
        raise RecordError(
            "found None; a model that finds nothing returns an empty list, or Prediction(no_target=True)"
        )
    if isinstance(item, Mapping) and not {"size", "counts"} <= item.keys():
        return _from_fields(item, size, mask_type)
    masks = list(as_masks(item, size))
    scores = getattr(item, "confidence", None)
    detection_data = getattr(item, "data", None)
    names = None
    if isinstance(detection_data, Mapping):
        names = detection_data.get("class_name")
    regions = _make_regions(masks, scores, names, mask_type)
    return Prediction(regions=regions, no_target=not regions)


def _from_fields(
    item: Mapping[str, Any], size: Size | None, mask_type: SingleType
) -> Prediction:
    """A prediction from a dict with its fields, or with lists of masks, scores and names."""
    _check_keys(item, PREDICTION_FIELDS | LISTED_FIELDS, "a prediction")
    fields = {key: value for key, value in item.items() if key in PREDICTION_FIELDS}
    if "masks" in item:
        masks = list(as_masks(item["masks"], size))
        names = item.get("names", item.get("labels"))
        regions = _make_regions(masks, item.get("scores"), names, mask_type)
        fields["regions"] = (*fields.get("regions", ()), *regions)
    else:
        fields["regions"] = tuple(
            _to_region(region, size, mask_type) for region in fields.get("regions", ())
        )
    return Prediction(**fields)


def _make_regions(
    masks: Sequence[Mask], scores: Any, names: Any, mask_type: SingleType
) -> tuple[PredictedRegion, ...]:
    """One region per mask. scores, names: one per mask, or None. Names that are numbers are left out: they are classes
    that only the model can name.
    """
    score_list = [1.0] * len(masks) if scores is None else _to_list(scores)
    name_list = [None] * len(masks) if names is None else _to_list(names)
    for label, values in (("scores", score_list), ("names", name_list)):
        if len(values) != len(masks):
            raise RecordError(
                f"{len(values)} {label} for {len(masks)} masks; expected one per mask"
            )
    regions = []
    for mask, score, name in zip(masks, score_list, name_list):
        text = name if isinstance(name, str) else None
        region = PredictedRegion(**{mask_type: mask}, score=score, name=text)
        regions.append(region)
    return tuple(regions)


def _to_list(values: Any) -> list[Any]:
    """A list of plain values from a list, array or tensor."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().float()
    if hasattr(values, "tolist"):
        values = values.tolist()
    return list(values)


def _to_region(region: Any, size: Size | None, mask_type: SingleType) -> Any:
    """A region from a dict; anything else as it is, for the record to check."""
    if not isinstance(region, Mapping):
        return region
    _check_keys(region, REGION_FIELDS, "a region")
    fields = {key: region[key] for key in ("score", "name") if key in region}
    for key in ("visible", "amodal"):
        if region.get(key) is not None:
            fields[key] = _to_mask(region[key], size)
    if region.get("mask") is not None:
        fields[mask_type] = _to_mask(region["mask"], size)
    for key, draw in (("box", _fill_box), ("points", _set_points)):
        if region.get(key) is None:
            continue
        if region.get("as_mask") is not True:
            raise RecordError(
                f'a region has a {key} and no mask; "as_mask": true says that it stands for one'
            )
        if size is None:
            raise RecordError(f"a region with a {key} needs the size of the image")
        fields[mask_type] = draw(region[key], size)
    return PredictedRegion(**fields)


def _to_mask(value: Any, size: Size | None) -> Mask:
    """A mask; a dict may have a PNG."""
    if isinstance(value, Mapping) and "png" in value:
        return as_mask(_open_png(value["png"]), size)
    return as_mask(value, size)


def _open_png(content: Any) -> Image.Image:
    """The image of a PNG, in gray levels: pixels that are not 0 are inside."""
    if isinstance(content, str):
        try:
            content = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError) as error:
            raise MaskError(f"a PNG is not valid base64: {error}") from None
    if not isinstance(content, bytes):
        raise MaskError(
            f"a PNG is bytes or base64, not a value of type {type(content).__name__}"
        )
    try:
        # `open_image` limits the number of pixels before it decodes them.
        open_image(content)
        with Image.open(io.BytesIO(content)) as image:
            # Palettes and one-bit images keep their values: only 0 is outside.
            pixels = np.asarray(image)
    except (ImageError, OSError, ValueError) as error:
        raise MaskError(f"a PNG cannot be read: {error}") from None
    inside = pixels != 0 if pixels.ndim == 2 else pixels[..., :3].any(-1)
    return Image.fromarray(inside)


def _fill_box(box: Any, size: Size) -> Mask:
    """The pixels of a box [x0, y0, x1, y1] whose ends are rounded and clipped to the image."""
    numbers = _to_numbers(box, (4,), "a box is [x0, y0, x1, y1]")
    height, width = size
    x0, y0, x1, y1 = np.rint(numbers).astype(np.int64).tolist()
    inside = np.zeros(size, bool)
    inside[max(0, y0) : min(height, y1), max(0, x0) : min(width, x1)] = True
    return Mask.from_dense(inside)


def _set_points(points: Any, size: Size) -> Mask:
    """The pixels that contain the points [[x, y], ...]; points outside the image are left out."""
    numbers = _to_numbers(points, (None, 2), "points are [[x, y], ...]")
    height, width = size
    inside = np.zeros(size, bool)
    for x, y in numbers.tolist():
        column = math.floor(x)
        row = math.floor(y)
        if 0 <= column < width and 0 <= row < height:
            inside[row, column] = True
    return Mask.from_dense(inside)


def _to_numbers(
    values: Any, shape: tuple[int | None, ...], expected: str
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Finite numbers of a shape, None for any length."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise RecordError(f"{expected}, not {values!r:.80}") from None
    fits = numbers.ndim == len(shape) and all(
        length in (None, actual) for length, actual in zip(shape, numbers.shape)
    )
    if not fits or not np.isfinite(numbers).all():
        raise RecordError(f"{expected}, not {values!r:.80}")
    return numbers


def _check_keys(item: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    unknown = [str(key) for key in item if key not in known]
    if unknown:
        raise RecordError(
            f"{what} has the unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}"
        )
