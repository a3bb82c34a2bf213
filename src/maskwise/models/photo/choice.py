"""What a chooser decides: the words of an answer, and the proposals that its phrases refer to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.schema import MaskType


@dataclass(frozen=True)
class ChosenPhrase:
    """text: a phrase of the answer. regions: positions among the proposals. merged: all of them are one region."""

    text: str
    regions: tuple[int, ...]
    merged: bool = False


@dataclass(frozen=True)
class Choice:
    """The answer to one question. No phrase with a region: nothing in the image is meant. mask_type: None to leave it
    to the intent classifier.
    """

    text: str
    phrases: tuple[ChosenPhrase, ...] = ()
    mask_type: MaskType | None = None


class Chooser(Protocol):
    """Chooses among the proposals of an image. It may add proposals to the photo: boxes that none of them covers."""

    @property
    def name(self) -> str:
        """How runs refer to it."""

    def choose(self, photo: EncodedPhoto, questions: Sequence[str]) -> list[Choice]:
        """One choice per question, in order."""
