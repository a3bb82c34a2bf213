"""Open images safely: upright, 8-bit RGB, in known formats, within limits that are checked before decoding.

    open_image("a.jpg")              PIL image, RGB, upright
    image_size("a.jpg")              (width, height), upright, from the header alone
    resolve_inside(root, "b/c.jpg")  a path that cannot leave root

The source of an image is a path, encoded bytes, a PIL image or a uint8 array (height, width, channels).
"""

import contextlib
import ctypes
import functools
import io
import logging
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from PIL import ExifTags, Image, _imaging

from maskwise.arrays import Float64Array, UInt8Array
from maskwise.errors import ImageError

ImageFile = str | os.PathLike[str] | bytes
"""An encoded image: a path, or the bytes themselves."""

ImageSource = ImageFile | Image.Image | UInt8Array
"""Everything that `open_image` takes."""

FORMATS = ("GIF", "JPEG", "PNG", "TIFF", "WEBP")
"""The formats that are decoded; of several frames the first. All others are refused: EPS starts another program, a few
bytes of JPEG 2000 take gigabytes, and BMP and PPM are not worth the risk of another decoder.
"""

MAX_PIXELS = 89_478_485
"""The largest image opened unless the caller says otherwise. Pillow warns from here on and refuses twice this."""

MAX_SIDE = 65_535
"""The largest width and height: those of the largest JPEG. Decoders need memory for whole rows."""

STRIP_PIXELS = 2**22
"""Pixels that are converted at once where the conversion takes more memory than its result."""

END_MARKS = (b"\xff\xd9", b"IEND\xaeB`\x82")
"""The last bytes of a JPEG and of a PNG."""

TAIL_BYTES = 4096
"""Bytes at the end of a file in which its end mark is looked for, behind what fills it up."""

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


def open_image(source: ImageSource, *, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """The image as 8-bit RGB, turned upright according to its EXIF data.

    Grey of more than 8 bits is scaled, not clipped; transparent pixels are laid over white. An array is uint8
    (height, width), or (height, width, channels) with 1 (grey), 3 (RGB) or 4 (RGBA) channels. ImageError names the file
    if it is missing, damaged, truncated, of a format not in FORMATS, or larger than `max_pixels` or MAX_SIDE, which is
    checked before any pixel is decoded.
    """
    if isinstance(source, Image.Image):
        return _read_opened(source, "the PIL image", max_pixels)
    if isinstance(source, str | os.PathLike | bytes):
        with _opened(source) as opened:
            return _read_opened(opened, _name(source), max_pixels)
    return _read_opened(_from_array(source), "the array", max_pixels)


def image_size(image: ImageFile) -> tuple[int, int]:
    """Width and height, upright, without decoding a pixel. ImageError as `open_image`, except for limits and damage."""
    with _opened(image) as opened:
        return (
            opened.size if _orientation(opened) < 5 else (opened.height, opened.width)
        )


def check_complete(image: ImageFile) -> None:
    """ImageError for a file that was cut off. A JPEG or PNG whose last bytes are its end mark is not decoded."""
    tail = image[-TAIL_BYTES:] if isinstance(image, bytes) else _read_tail(image)
    # Some cameras and tools fill the file up.
    is_ended = tail.rstrip(b"\0\r\n ").endswith(END_MARKS)
    if not is_ended:
        open_image(image)


def _read_tail(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            return file.read()
    except FileNotFoundError:
        raise ImageError(f"{path} does not exist") from None
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error}") from error


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
    """Refuse a path that is empty, absolute, or contains `..`, without looking at any disk."""
    posix = PurePosixPath(relative)
    windows = PureWindowsPath(relative)
    plain = posix.name and "\\" not in relative and "\0" not in relative
    if not plain or posix.is_absolute() or windows.drive or ".." in posix.parts:
        raise ImageError(
            f"path {relative!r} must be relative, with / between folders and without .."
        )


_IN_MEMORY = re.compile(r" <_io\.BytesIO[^>]*>")
"""What Pillow calls a file that has no name."""


@contextlib.contextmanager
def _opened(image: ImageFile) -> Iterator[Image.Image]:
    _silence_tiff()
    try:
        source = io.BytesIO(image) if isinstance(image, bytes) else image
        with Image.open(source, formats=FORMATS) as opened:
            yield opened
    except ImageError:
        raise
    except FileNotFoundError:
        raise ImageError(f"{_name(image)} does not exist") from None
    except Exception as error:
        raise _unreadable(_name(image), error) from error


@functools.cache
def _silence_tiff() -> None:
    """Keep what Pillow and libtiff print about damaged TIFF files from the terminal; what is fatal is raised.

    libtiff has its own handlers, which write to the standard error. They are reached through Pillow's extension,
    where it is linked to libtiff as a library.
    """
    warnings.filterwarnings("ignore", module=r"PIL\.TiffImagePlugin")
    logging.getLogger("PIL").addHandler(logging.NullHandler())
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(_imaging.__file__)
        for name in ("TIFFSetWarningHandler", "TIFFSetErrorHandler"):
            set_handler = getattr(library, name)
            set_handler.argtypes = [ctypes.c_void_p]
            set_handler.restype = ctypes.c_void_p
            set_handler(None)


def _unreadable(name: str, error: Exception) -> ImageError:
    """Decoders raise any exception at all on damaged bytes; a user needs the name of the file first."""
    reason = _IN_MEMORY.sub("", str(error)) or type(error).__name__
    if "cannot identify" in reason:
        reason = f"not an image in one of the formats {', '.join(FORMATS)}"
    return ImageError(f"{name} cannot be read: {reason}")


def _read_opened(image: Image.Image, name: str, max_pixels: int) -> Image.Image:
    if image.width * image.height > max_pixels:
        raise ImageError(
            f"{name} has {image.width} x {image.height} pixels, more than the limit of {max_pixels}"
        )
    if max(image.size) > MAX_SIDE:
        raise ImageError(
            f"{name} has {image.width} x {image.height} pixels, and no side may exceed {MAX_SIDE}"
        )
    try:
        turn = TURNS.get(_orientation(image))
        image.load()
        return _to_rgb(image if turn is None else image.transpose(turn))
    except Exception as error:
        raise _unreadable(name, error) from error


def _from_array(array: Any) -> Image.Image:
    try:
        pixels = np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)
    except Exception as error:
        raise ImageError(
            f"expected an image, got {type(array).__name__}: {error}"
        ) from None
    if (
        pixels.dtype != np.uint8
        or pixels.ndim not in (2, 3)
        or pixels.shape[2:] not in ((), (1,), (3,), (4,))
    ):
        raise ImageError(
            "expected a path, bytes, a PIL image or a uint8 array (height, width, 3), "
            f"got {type(array).__name__} of {pixels.dtype} {pixels.shape}"
        )
    if not pixels.size:
        raise ImageError(f"the array has no pixels: shape {pixels.shape}")
    return Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)


def _name(image: ImageFile) -> str:
    if isinstance(image, bytes):
        return f"the image of {len(image)} bytes"
    return f"image {os.fspath(image)}"


def _orientation(image: Image.Image) -> int:
    """EXIF orientation, 1 to 8, from the header alone; 1 if it has no valid one."""
    if image.format == "TIFF":
        return 1  # Pillow turns these itself.
    # The base method, because that of PNG decodes the whole image to look for a late chunk.
    value = Image.Image.getexif(image).get(ExifTags.Base.Orientation)
    return value if value in TURNS else 1


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return _deep_to_rgb(image)
    if image.has_transparency_data:
        return _over_white(image)
    return image.convert("RGB")


def _over_white(image: Image.Image) -> Image.Image:
    """Transparent pixels laid over white, a strip of rows at a time."""
    out = Image.new("RGB", image.size)
    for top, bottom in _strips(image):
        above = image.crop((0, top, image.width, bottom)).convert("RGBA")
        white = Image.new("RGBA", above.size, "white")
        out.paste(Image.alpha_composite(white, above).convert("RGB"), (0, top))
    return out


def _deep_to_rgb(image: Image.Image) -> Image.Image:
    """Grey of more than 8 bits. White is 65535; where a value is larger, the largest; for floats 1.0 or 255.0."""
    values = np.asarray(image)
    highest = max(
        float(_finite(values[top:bottom]).max(initial=0.0))
        for top, bottom in _strips(image)
    )
    least = 65535.0 if image.mode != "F" else 255.0 if highest > 1.0 else 1.0
    grey = np.empty(values.shape, np.uint8)
    for top, bottom in _strips(image):
        scaled = _finite(values[top:bottom]) / max(least, highest) * 255.0
        grey[top:bottom] = np.clip(scaled, 0, 255).round()
    return Image.fromarray(grey).convert("RGB")


def _finite(values: np.ndarray[Any, Any]) -> Float64Array:
    finite: Float64Array = np.nan_to_num(values.astype(np.float64))
    return finite


def _strips(image: Image.Image) -> Iterator[tuple[int, int]]:
    """First and past-the-last row of strips of about STRIP_PIXELS."""
    rows = max(1, STRIP_PIXELS // image.width)
    return (
        (top, min(top + rows, image.height)) for top in range(0, image.height, rows)
    )
