"""Every error a user can cause, as one family.

MaskwiseError                what the command line prints without a traceback
├── MaskError                a mask that is not a mask: bad counts, size, polygon
├── ImageError             an image that cannot be opened safely
├── RecordError              a record whose fields contradict each other
├── StoreError               a dataset folder or log that is missing, incomplete or changed
├── FormatError              an annotation file that does not follow its format
├── ProtocolError            a scoring rule asked for what it cannot give
├── ModelError               a model that cannot be opened, or gave what is no prediction
│   └── ModelGoneError       a model that cannot be asked any more: the run stops, and continues when it is back
└── UnknownNameError         a name that is not registered; lists the known ones
"""

from collections.abc import Iterable


class MaskwiseError(Exception):
    """Something the user can mend; the message says what, where and how."""


class MaskError(MaskwiseError):
    """A malformed mask. `item` is its position in the batch, or None for a single mask."""

    def __init__(self, message: str, item: int | None = None) -> None:
        super().__init__(message if item is None else f"mask {item}: {message}")
        self.message = message
        self.item = item


class ImageError(MaskwiseError):
    """An image that is missing, damaged, too large or of an unknown format."""


class RecordError(MaskwiseError):
    """A record that contradicts itself."""


class StoreError(MaskwiseError):
    """A dataset folder or log that cannot be used as it is."""


class FormatError(MaskwiseError):
    """An annotation file or folder that does not follow its format."""


class ProtocolError(MaskwiseError):
    """A scoring rule asked for what the data cannot give."""


class ModelError(MaskwiseError):
    """A model that cannot be opened or asked, or that replied with something else than predictions."""


class ModelGoneError(ModelError):
    """A model that cannot be started or reached, so that asking on is of no use."""


class UnknownNameError(MaskwiseError):
    """A name nobody registered."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown {kind} {name!r}; known: {', '.join(sorted(known))}")
