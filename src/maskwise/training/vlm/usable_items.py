"""Items of a stage without those that cannot be used, which are counted and logged."""

import json
import logging
from pathlib import Path

from maskwise.errors import MaskwiseError
from maskwise.models.vlm.batch import ImageQuestions
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.schema import Sample
from maskwise.training.vlm.sources import TrainingItems

logger = logging.getLogger(__name__)

SUBSTITUTES = 100
"""Items that are tried in place of one: with a share of 1 in 100 unusable, all fail once in 10^200."""

MIN_DRAWN = 100
"""Samples that are drawn before the share of skipped ones is compared with the limit: one at the start is no sign."""


class UsableItems:
    """The items of `TrainingItems` by position, each with the samples that can be used.

    An item that cannot be used at all is replaced by one from beyond the positions of the stage, so what is drawn
    depends on the position alone, and an interrupted run continues with the same items. Each process counts the samples
    that it draws and skips.
    """

    def __init__(
        self,
        items: TrainingItems,
        processor: VlmProcessor,
        *,
        positions: int,
        max_skipped: float,
        log: Path,
    ) -> None:
        self.items = items
        self.processor = processor
        self.positions = positions
        self.max_skipped = max_skipped
        self.log = log
        self.drawn = 0
        self.skipped = 0

    def __getitem__(self, position: int) -> ImageQuestions:
        """The item at a position, or its substitute. MaskwiseError if too many samples cannot be used."""
        for attempt in range(SUBSTITUTES):
            usable = self._read(position + attempt * self.positions)
            self._check_share()
            if usable is not None:
                return usable
        raise MaskwiseError(
            f"{SUBSTITUTES} images in a row cannot be used for training; {self.log} names them"
        )

    def _read(self, position: int) -> ImageQuestions | None:
        """The usable part of an item; None if nothing of it can be used."""
        try:
            item = self.items[position]
        except (MaskwiseError, OSError) as error:
            self.drawn += 1
            self._skip(self.items.name_of(position), str(error))
            return None
        self.drawn += len(item.samples)
        usable = tuple(sample for sample in item.samples if self._is_usable(sample))
        if item.samples and not usable:
            return None
        return ImageQuestions(item.image, usable, item.regions)

    def _is_usable(self, sample: Sample) -> bool:
        try:
            self.processor.check_sample(sample)
        except MaskwiseError as error:
            self._skip(sample.id, str(error))
            return False
        return True

    def _skip(self, name: str, reason: str) -> None:
        self.skipped += 1
        logger.warning("skipped: %s", reason)
        # One short line per call, so that processes can share the file.
        with self.log.open("a") as file:
            file.write(json.dumps({"item": name, "reason": reason}) + "\n")

    def _check_share(self) -> None:
        if self.drawn >= MIN_DRAWN and self.skipped > self.max_skipped * self.drawn:
            raise MaskwiseError(
                f"{self.skipped:,} of {self.drawn:,} drawn samples cannot be used, more than max_skipped = "
                f"{self.max_skipped:g}; {self.log} names them with the reasons. Repair them, or raise max_skipped"
            )
