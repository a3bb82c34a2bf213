"""Images that questions refer to by id: uploaded ones, in a bounded memory, and the bundled examples."""

import hashlib
from collections import OrderedDict

import msgspec

from maskwise.errors import ImageError
from maskwise.images import MAX_SIDE, image_size
from maskwise.server.responses import RequestRejectedError
from maskwise.store import Dataset

# Limits of the memory; the least recently used images are forgotten.
MAX_TOTAL_BYTES = 2**28
MAX_IMAGES = 1024

EXAMPLES = 8
"""Images on the ask page: one row on a wide screen."""

MIN_QUESTIONS = 2
"""An example shows that an image can be asked more than once."""


class StoredImage(msgspec.Struct, frozen=True, kw_only=True):
    """What responses say about an image."""

    id: str
    width: int
    height: int


class ExampleImage(StoredImage, frozen=True, kw_only=True):
    """A bundled image with questions about it."""

    questions: list[str]


class ImageUploads:
    """Images by id, a hash of their bytes.

    An upload is the file itself, whatever its format; `browser_copies` has those that a browser can show.
    """

    def __init__(self, max_pixels: int, max_total_bytes: int = MAX_TOTAL_BYTES) -> None:
        self.max_pixels = max_pixels
        self.max_total_bytes = max_total_bytes
        self._uploaded: OrderedDict[str, tuple[StoredImage, bytes]] = OrderedDict()
        self._examples: dict[str, tuple[ExampleImage, bytes]] = {}
        self.bytes = 0

    def add(self, data: bytes) -> StoredImage:
        """Keep an image; 422 if it is not one or has too many pixels, which its header tells."""
        info = self._describe(data)
        if info.id not in self._uploaded:
            self._uploaded[info.id] = (info, data)
            self.bytes += len(data)
        self._uploaded.move_to_end(info.id)
        # The last one stays, however large it is: it was just uploaded.
        while len(self._uploaded) > 1 and self._is_full():
            _, (_, dropped) = self._uploaded.popitem(last=False)
            self.bytes -= len(dropped)
        return info

    def _is_full(self) -> bool:
        return self.bytes > self.max_total_bytes or len(self._uploaded) > MAX_IMAGES

    def add_examples(self, dataset: Dataset, count: int = EXAMPLES) -> None:
        """Offer images of a dataset that embeds them, from all over it."""
        groups = [
            (info, samples)
            for info, samples in dataset.groups()
            if len(samples) >= MIN_QUESTIONS
        ]
        # Every n-th image: neighbors in a dataset often look alike.
        step = max(1, len(groups) // count)
        for info, samples in groups[::step][:count]:
            data = dataset.images.table["data"][dataset.images.row[info.id]].as_py()
            stored = self._describe(data)
            example = ExampleImage(
                id=stored.id,
                width=stored.width,
                height=stored.height,
                questions=[sample.question for sample in samples],
            )
            self._examples[stored.id] = (example, data)

    @property
    def examples(self) -> list[ExampleImage]:
        """The bundled images with their questions."""
        return [example for example, _ in self._examples.values()]

    def find(self, id: str) -> tuple[StoredImage, bytes]:
        """An image by id; 404 if it was never uploaded or is forgotten."""
        entry = self._examples.get(id) or self._uploaded.get(id)
        if entry is None:
            raise RequestRejectedError(
                404, f"no image {id[:64]!r}: upload it (again) with POST /v1/images"
            )
        if id in self._uploaded:
            self._uploaded.move_to_end(id)
        return entry

    def _describe(self, data: bytes) -> StoredImage:
        try:
            width, height = image_size(data)
        except ImageError as error:
            raise RequestRejectedError(422, str(error)) from None
        if width * height > self.max_pixels or max(width, height) > MAX_SIDE:
            limits = f"{self.max_pixels} pixels and {MAX_SIDE} per side"
            message = (
                f"the image has {width} x {height} pixels; the limits are {limits}"
            )
            raise RequestRejectedError(422, message)
        return StoredImage(
            id=hashlib.sha256(data).hexdigest()[:32], width=width, height=height
        )
