"""Images that an annotation file holds itself, as in the image columns of Hugging Face datasets."""

import msgspec

from maskwise.errors import ImageError
from maskwise.formats.file_layout import Size
from maskwise.formats.read_context import ReadContext
from maskwise.images import MAX_PIXELS, image_size
from maskwise.schema import ImageInfo


class EmbeddedImage(msgspec.Struct, frozen=True):
    """The value of an image column."""

    bytes: bytes
    path: str | None = None


def locate_embedded_image(
    context: ReadContext, data: bytes, size: Size | None, *, id: str, record: str
) -> ImageInfo | None:
    """The image record of encoded bytes; None and a diagnostic if they are no image or of another size.

    size: height and width in the annotations, or None if only the image tells.
    """
    try:
        width, height = image_size(data)
    except ImageError as error:
        context.skip("unreadable image", record, expected="an image", found=str(error))
        return None
    if height * width > MAX_PIXELS:
        context.skip(
            "image size out of bounds",
            record,
            expected=f"1 to {MAX_PIXELS} pixels",
            found=f"height and width {height, width}",
        )
        return None
    if size is not None and size != (height, width):
        context.skip(
            "image of another size",
            record,
            expected=f"height and width {size}",
            found=f"{height, width}",
        )
        return None
    return ImageInfo(id=id, width=width, height=height)
