"""Images in a format that every browser shows."""

import io

from PIL import Image

LOSSLESS_PIXELS = 1_000_000
"""Larger images are sent as JPEG: a PNG of a photograph has about 1.5 bytes per pixel."""

JPEG_QUALITY = 95
"""With full color resolution: people judge masks by the edges, where coarser settings blur."""

THUMBNAIL_SIDE = 360
"""Pixels of the longer side: a card is 300 points wide."""

THUMBNAIL_QUALITY = 85
"""20 to 30 kilobytes per photograph."""

TYPES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""Content types of what every browser shows, by the first bytes of a file."""


def content_type(data: bytes) -> str | None:
    """The content type of a file that browsers show; None for other files."""
    for start, kind in TYPES.items():
        if data.startswith(start):
            return kind
    return None


def encode_image(
    image: Image.Image, *, lossless_pixels: int = LOSSLESS_PIXELS
) -> tuple[bytes, str]:
    """An image as PNG, or as JPEG if it has more pixels than `lossless_pixels`, and its content type."""
    if image.width * image.height > lossless_pixels:
        return _save_jpeg(image, JPEG_QUALITY, subsampling=0), "image/jpeg"
    buffer = io.BytesIO()
    # On photographs level 1 takes a quarter to a half of the default's time, for files of about the same size.
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue(), "image/png"


def encode_thumbnail(image: Image.Image) -> tuple[bytes, str]:
    """A small JPEG of an image, and its content type."""
    small = image.copy()
    side = (THUMBNAIL_SIDE, THUMBNAIL_SIDE)
    small.thumbnail(side, Image.Resampling.LANCZOS, reducing_gap=3.0)
    return _save_jpeg(small, THUMBNAIL_QUALITY), "image/jpeg"


def _save_jpeg(image: Image.Image, quality: int, **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, **options)
    return buffer.getvalue()
