"""Trackio: an SQLite file per project in TRACKIO_DIR. No extra brings it: it needs an older Pillow than ours."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trackio

from maskwise.integrations.tracked_run import PROJECT


class TrackioTracker:
    """One run of Trackio per stage, in the project TRACKIO_PROJECT or `maskwise`."""

    def __init__(
        self, folder: Path, stage: str, step: int, config: Mapping[str, Any]
    ) -> None:
        self.run = trackio.init(
            project=os.environ.get("TRACKIO_PROJECT", PROJECT),
            name=f"{folder.absolute().name}-{stage}",
            config=dict(config),
            # A run that is continued goes on in the same place.
            resume="allow",
        )

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Log the values."""
        trackio.log(dict(values), step=step)

    def close(self) -> None:
        """Write what is left."""
        trackio.finish()
