"""Polygons from outside, in every common form, and the masks that they draw."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maskwise.arrays import Float64Array, Int32Array, Int64Array
from maskwise.errors import MaskError
from maskwise.masks.contours import chain_rings
from maskwise.masks.kernel import OR, Strings, kernel

POINTS = (list, tuple, np.ndarray)
"""What a list of points contains; a flat list contains numbers."""

NOT_NUMBERS = "coordinates must be a flat list of numbers"


def draw_polygons(polygons: Sequence[Any], size: Int32Array) -> Strings:
    """One mask per flat polygon `[x, y, ...]`, drawn bit by bit as pycocotools draws it. size: int32 [n, 2]."""
    xy, offsets = kernel.coordinates(
        [flatten(part, item) for item, part in enumerate(polygons)]
    )
    return kernel.from_polygons(
        np.frombuffer(xy, np.float64), np.frombuffer(offsets, np.int64), size
    )


def draw_objects(objects: Sequence[Sequence[Any]], size: Int32Array) -> Strings:
    """One mask per object, the union of its polygons. An object none of whose polygons has three points is refused."""
    owner = [item for item, parts in enumerate(objects) for _ in parts]
    flat = [flatten(part, item) for item, parts in enumerate(objects) for part in parts]
    drawable = {item for item, part in zip(owner, flat) if len(part) >= 6}
    for item in owner:
        if item not in drawable:
            raise MaskError("no polygon has three points or more", item)
    try:
        data, stop = draw_polygons(flat, size[owner])
    except MaskError as error:
        raise MaskError(
            error.message, None if error.item is None else owner[error.item]
        ) from None
    ends = np.frombuffer(stop, np.int64)
    drawn = (
        np.frombuffer(data, np.uint8),
        _shift_right(ends),
        ends,
        np.ascontiguousarray(size[owner]),
    )
    return kernel.merge(OR, drawn, count_offsets(objects), size)


def object_polygons(source: Any) -> list[Any]:
    """The polygons of one object: a COCO list of flat lists, a list of [n, 2] points, one such list, or a geometry."""
    if is_geometry(source):
        return geometry_polygons(source)
    if isinstance(source, np.ndarray):
        return [source]
    try:
        parts = list(source)
        shapes = {np.shape(part) for part in parts}
    except (TypeError, ValueError):
        raise MaskError(
            f"expected polygons, got {type(source).__name__}: {NOT_NUMBERS}"
        ) from None
    if shapes == {()} or (shapes == {(2,)} and len(parts) > 2):
        return [to_floats(parts, None)]
    return parts


def is_geometry(source: Any) -> bool:
    """Whether an object offers the geo interface, as shapely's geometries do."""
    return hasattr(source, "__geo_interface__") or (
        isinstance(source, Mapping) and "coordinates" in source
    )


def geometry_polygons(geometry: Any) -> list[Float64Array]:
    """The polygons of a Polygon or MultiPolygon, holes included; an empty geometry has none."""
    form: Any = (
        geometry if isinstance(geometry, Mapping) else geometry.__geo_interface__
    )
    kind = form.get("type")
    coordinates = form.get("coordinates")
    if kind not in ("Polygon", "MultiPolygon"):
        raise MaskError(f"expected a Polygon or a MultiPolygon, got {kind}")
    polygons = [coordinates] if kind == "Polygon" else coordinates
    try:
        return [
            chain_rings([np.asarray(ring, np.float64)[:-1, :2] for ring in rings])
            for rings in polygons
            if len(rings)
        ]
    except (ValueError, TypeError, IndexError):
        raise MaskError(
            f"the coordinates of the {kind} are not rings of points"
        ) from None


def flatten(part: Any, item: int | None) -> Any:
    """As the kernel takes it: a list of numbers as it is, anything else as a flat float64 array."""
    if isinstance(part, list) and not (part and isinstance(part[0], POINTS)):
        return part
    return to_floats(part, item)


def to_floats(values: ArrayLike, item: int | None) -> Float64Array:
    """A flat float64 array."""
    try:
        return np.ravel(np.asarray(values, np.float64))
    except (ValueError, TypeError, OverflowError):
        raise MaskError(NOT_NUMBERS, item) from None


def count_offsets(parts: Sequence[Any]) -> Int64Array:
    """Where the parts begin and end when they are laid end to end, int64 [n + 1]."""
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


def _shift_right(ends: Int64Array) -> Int64Array:
    return np.concatenate([np.zeros(1, np.int64), ends[:-1]])[: len(ends)]
