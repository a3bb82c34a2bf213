"""Open images safely: upright, within a size limit, every pixel depth as 8-bit RGB, nothing half-read.

    open_image("a.jpg")            PIL image, RGB, upright
    image_size("a.jpg")            (width, height), upright, from the header alone
    resolve_inside(root, "b/c.jpg")  a path that cannot leave root

An image is a path, or the encoded bytes themselves.
"""

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
from PIL import ExifTags, Image

from maskwise.errors import ImageError

ImageFile = str | os.PathLike[str] | bytes

FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""Formats decoded within this process. EPS and its kind, which start other programs, are refused."""

MAX_PIXELS = 89_478_485
"""The largest image opened unless the caller says otherwise. Pillow warns from here on and refuses twice this."""

TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What makes an image of each EXIF orientation upright; 1 is upright already."""


def open_image(image: ImageFile, *, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """The image as 8-bit RGB, turned upright as its EXIF says.

    Grey of more than 8 bits is scaled, not clipped; transparent pixels are laid over white; of several frames the
    first is read. ImageError names the file where it is missing, damaged, truncated, of a format not in FORMATS,
    or larger than `max_pixels`, which is checked before any pixel is decoded.
    """
    with _opened(image) as opened:
        if opened.width * opened.height > max_pixels:
            raise ImageError(
                f"{_name(image)} has {opened.width} x {opened.height} pixels, more than the limit of {max_pixels}"
            )
        turn = TURNS.get(_orientation(opened))
        opened.load()
        upright = opened if turn is None else opened.transpose(turn)
        return _to_rgb(upright)


def image_size(image: ImageFile) -> tuple[int, int]:
    """Width and height, upright, reading no pixel. ImageError as `open_image`, size limit and damage aside."""
    with _opened(image) as opened:
        return opened.size if _orientation(opened) < 5 else (opened.height, opened.width)


def resolve_inside(root: str | os.PathLike[str], relative: str) -> Path:
    """The path of `relative` below root; refused if it leaves root: absolute, with `..`, or through a link.

    The file need not exist. Drives and backslashes are refused on every system, so that a dataset means the same
    files everywhere.
    """
    check_relative(relative)
    base = Path(root).resolve()
    full = (base / relative).resolve()
    if not full.is_relative_to(base):
        raise ImageError(f"path {relative!r} leads through a link out of {base}")
    return full


def check_relative(relative: str) -> None:
    """Refuse a path that is empty, absolute, or climbs with `..`, without looking at any disk."""
    posix, windows = PurePosixPath(relative), PureWindowsPath(relative)
    plain = posix.name and "\\" not in relative and "\0" not in relative
    if not plain or posix.is_absolute() or windows.drive or ".." in posix.parts:
        raise ImageError(f"path {relative!r} must be relative, with / between folders and without ..")


_IN_MEMORY = re.compile(r" <_io\.BytesIO[^>]*>")
"""What Pillow calls a file that has no name."""


@contextmanager
def _opened(image: ImageFile) -> Iterator[Image.Image]:
    try:
        source = io.BytesIO(image) if isinstance(image, bytes) else image
        with Image.open(source, formats=FORMATS) as opened:
            yield opened
    except ImageError:
        raise
    except FileNotFoundError:
        raise ImageError(f"{_name(image)} does not exist") from None
    except Exception as error:
        # Decoders meet hostile bytes with any exception at all; the reader needs the file's name first.
        raise ImageError(
            f"{_name(image)} cannot be read: {_IN_MEMORY.sub('', str(error)) or type(error).__name__}"
        ) from error


def _name(image: ImageFile) -> str:
    if isinstance(image, bytes):
        return f"the image of {len(image)} bytes"
    return f"image {os.fspath(image)}"


def _orientation(image: Image.Image) -> int:
    """EXIF orientation, 1 to 8, as the header tells before any pixel is read; 1 where it says nothing sensible."""
    if image.format == "TIFF":
        return 1  # Pillow turns these itself.
    # The base method, because that of PNG decodes the whole image to look for a late chunk.
    value = Image.Image.getexif(image).get(ExifTags.Base.Orientation)
    return value if value in TURNS else 1


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _deep_to_rgb(image)
    if image.has_transparency_data:
        above = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", above.size, "white"), above).convert("RGB")
    return image.convert("RGB")


def _deep_to_rgb(image: Image.Image) -> Image.Image:
    """Grey of more than 8 bits. White is 65535; where a value is larger, the largest; for floats 1.0 or 255.0."""
    values = np.nan_to_num(np.asarray(image).astype(np.float64))
    highest = float(values.max(initial=0.0))
    least = 65535.0 if image.mode != "F" else 255.0 if highest > 1.0 else 1.0
    grey = np.clip(values / max(least, highest) * 255.0, 0, 255).round().astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")
