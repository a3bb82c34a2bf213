"""Open pictures safely: orientation, size limits, every pixel depth as 8-bit RGB, nothing half-read.

    open_picture("a.jpg")            PIL image, RGB, upright
    picture_size("a.jpg")            (width, height) from the header alone
    resolve_inside(root, "b/c.jpg")  a path that cannot leave root

A picture is named by a path, or is the encoded bytes themselves.
"""

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
from PIL import ExifTags, Image, ImageOps

from maskwise.errors import PictureError

PictureFile = str | os.PathLike[str] | bytes

FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""Formats decoded within this process. EPS and its kind, which start other programs, are refused."""

MAX_PIXELS = 178_956_970
"""The largest picture opened unless the caller says otherwise: twice Pillow's own warning limit."""


def open_picture(picture: PictureFile, *, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """The picture as 8-bit RGB, turned upright as its EXIF says.

    16-bit grey is scaled to 8 bits, not clipped; transparent pixels are laid over white; only the first frame is
    read. PictureError names the file where it is missing, damaged, truncated, of another format, or larger than
    `max_pixels` (which is checked before any pixel is decoded).
    """
    with _opened(picture, max_pixels) as image:
        image.load()
        upright = ImageOps.exif_transpose(image)
        return _to_rgb(upright)


def picture_size(picture: PictureFile) -> tuple[int, int]:
    """Width and height, upright, reading no pixel."""
    with _opened(picture, None) as image:
        turned = image.getexif().get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8)
        return (image.height, image.width) if turned else (image.width, image.height)


def resolve_inside(root: str | os.PathLike[str], relative: str) -> Path:
    """The path of `relative` below root; refused if it leaves root: absolute, with `..`, or through a link.

    The file need not exist. Names with a drive or a backslash are refused on every system, so that a dataset
    means the same files everywhere.
    """
    check_relative(relative)
    base = Path(root).resolve()
    full = (base / relative).resolve()
    if not full.is_relative_to(base):
        raise PictureError(f"path {relative!r} leads through a link out of {base}")
    return full


def check_relative(relative: str) -> None:
    """Refuse a path that is empty, absolute, or climbs with `..`, without looking at any disk."""
    posix, windows = PurePosixPath(relative), PureWindowsPath(relative)
    plain = relative and "\\" not in relative and "\0" not in relative
    if not plain or posix.is_absolute() or windows.drive or ".." in posix.parts:
        raise PictureError(f"path {relative!r} must be relative, with / between folders and without ..")


@contextmanager
def _opened(picture: PictureFile, max_pixels: int | None) -> Iterator[Image.Image]:
    name = (
        f"the picture of {len(picture)} bytes"
        if isinstance(picture, bytes)
        else f"picture {os.fspath(picture)}"
    )
    try:
        with warnings.catch_warnings():
            # Our own limit below speaks for the size; Pillow's hard one stays as a second fence.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            source = io.BytesIO(picture) if isinstance(picture, bytes) else picture
            with Image.open(source, formats=FORMATS) as image:
                if max_pixels is not None and image.width * image.height > max_pixels:
                    raise PictureError(
                        f"{name} has {image.width} x {image.height} pixels, more than the limit of {max_pixels}"
                    )
                yield image
    except PictureError:
        raise
    except FileNotFoundError:
        raise PictureError(f"{name} does not exist") from None
    except Exception as error:
        # Decoders meet hostile bytes with any exception at all; a user needs the file's name, not its kind.
        reason = str(error) or type(error).__name__
        raise PictureError(f"{name} cannot be read: {reason}") from error


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        return _deep_to_rgb(image)
    if image.mode in ("LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
    if image.mode == "RGBA":
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, image).convert("RGB")
    return image.convert("RGB")


def _deep_to_rgb(image: Image.Image) -> Image.Image:
    """Grey of more than 8 bits: whole numbers span 0 to 65535, floats 0 to 1 (or to 255 where one is larger)."""
    values = np.asarray(image).astype(np.float64)
    top = 65535.0 if image.mode != "F" else (1.0 if np.nanmax(values, initial=0.0) <= 1.0 else 255.0)
    grey = np.clip(np.nan_to_num(values) / top * 255.0, 0, 255).round().astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")
