"""The images that a model process has encoded: a bounded cache, so that further questions about an image are cheap."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from maskwise.errors import ModelError
from maskwise.harness.predictor import Predictor, domain_warning, encode_image
from maskwise.images import open_image
from maskwise.schema import Prediction

# Limits of the cache; the least recently used images are dropped.
MAX_IMAGES = 64
MAX_TOTAL_PIXELS = 100_000_000
"""300 MB where a model keeps the pixels themselves."""


class ImageNeededError(ModelError):
    """The image is not in the cache: the request has to contain it."""


@dataclass(frozen=True)
class ServedEncoding:
    """An encoded image. answer: predictions for questions about it. warning: if it is out of the model's domain."""

    answer: Callable[[Sequence[str]], Sequence[Prediction]]
    pixels: int
    warning: str | None


class EncodingCache:
    """Encoded images of one model by id, the least recently used first.

    max_pixels: of one image, checked before it is decoded.
    """

    def __init__(self, model: Predictor, max_pixels: int) -> None:
        self.model = model
        self.max_pixels = max_pixels
        self._known: OrderedDict[str, ServedEncoding] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, id: str) -> bool:
        return id in self._known

    def find(self, id: str, image: bytes | None) -> ServedEncoding:
        """The encoding of an image, made from its bytes if it is not known; ImageNeededError without them."""
        if id not in self._known:
            if image is None:
                raise ImageNeededError(f"image {id} is not encoded")
            self._known[id] = encode_for_serving(self.model, image, self.max_pixels)
            self._drop_oldest()
        self._known.move_to_end(id)
        return self._known[id]

    def _drop_oldest(self) -> None:
        # The last one stays, however large it is: its question is being asked.
        while len(self) > 1 and self._is_full():
            self._known.popitem(last=False)

    def _is_full(self) -> bool:
        pixels = sum(encoding.pixels for encoding in self._known.values())
        return len(self) > MAX_IMAGES or pixels > MAX_TOTAL_PIXELS


def encode_for_serving(
    model: Predictor, data: bytes, max_pixels: int
) -> ServedEncoding:
    """Encode an image, if the model can do that apart from predicting; else keep it for the questions."""
    image = open_image(data, max_pixels=max_pixels)
    encoding = encode_image(model, image)
    return ServedEncoding(
        encoding.answer, image.width * image.height, domain_warning(model, image)
    )
