"""TensorBoard events in events/STAGE of the folder of a run (extra `train`, `vlm` or `track`); torch is not needed."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.event_file_writer import EventFileWriter

QUEUE_SIZE = 10
FLUSH_SECONDS = 30
"""Events that wait to be written, and for how long at most: a killed run loses no more."""


class TensorBoardTracker:
    """A scalar per value, and the config as text."""

    def __init__(
        self, folder: Path, stage: str, step: int, config: Mapping[str, Any]
    ) -> None:
        path = folder / "events" / stage
        self.events = EventFileWriter(str(path), QUEUE_SIZE, FLUSH_SECONDS)
        if step:
            # TensorBoard then ignores the later steps that an interrupted run left behind.
            restart = SessionLog(status=SessionLog.START)
            self._add(Event(step=step + 1, session_log=restart))
        elif config:
            self._add(Event(step=0, summary=Summary(value=[_to_text(config)])))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Add a scalar per value."""
        scalars = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in values.items()
        ]
        self._add(Event(step=step, summary=Summary(value=scalars)))

    def close(self) -> None:
        """Flush the events."""
        self.events.close()

    def _add(self, event: Event) -> None:
        event.wall_time = time.time()
        self.events.add_event(event)


def _to_text(config: Mapping[str, Any]) -> Any:
    """The config as a block of Markdown for the text dashboard."""
    lines = json.dumps(config, indent=2, default=str).splitlines()
    markdown = "\n".join("    " + line for line in lines)
    plugin = SummaryMetadata.PluginData(plugin_name="text")
    tensor = TensorProto(
        dtype=DT_STRING,
        string_val=[markdown.encode()],
        tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
    )
    return Summary.Value(
        tag="config/text_summary",
        metadata=SummaryMetadata(plugin_data=plugin),
        tensor=tensor,
    )
