"""The predictions of a run as a job that an engine can spread over machines."""

import socket
from dataclasses import dataclass

import msgspec

from maskwise.engines import Job
from maskwise.errors import ModelError, StoreError
from maskwise.harness.plan import PlannedImage
from maskwise.harness.worker import PredictedImage, Worker, WorkerConfig
from maskwise.runs.files import hash_path
from maskwise.store.folder import MANIFEST

_DECODER = msgspec.json.Decoder(PredictedImage)


@dataclass(frozen=True)
class PredictionJob(Job[PlannedImage, PredictedImage]):
    """An item is an image with its questions, a result the predictions for them.

    manifest_hash: SHA-256 of the dataset's manifest. weights_hash: of the model, if
    known. Both have to be equal on all machines.
    """

    config: WorkerConfig
    manifest_hash: str
    weights_hash: str | None

    @classmethod
    def of(cls, worker: Worker) -> "PredictionJob":
        """The job of which an open worker does a part."""
        return cls(worker.config, _hash_manifest(worker), _hash_weights(worker))

    @property
    def name(self) -> str:
        return f"model {self.config.model!r}"

    def key(self, item: PlannedImage) -> int:
        """The image's row in the dataset."""
        return item.image

    def open_worker(self) -> Worker:
        """StoreError or ModelError if this machine has another dataset or weights."""
        worker = Worker(self.config)
        host = socket.gethostname()
        if _hash_manifest(worker) != self.manifest_hash:
            raise StoreError(
                f"{self.config.dataset} on {host} differs from the dataset where the "
                "run was started"
            )
        weights = _hash_weights(worker)
        if weights != self.weights_hash:
            raise ModelError(
                f"{self.name} on {host} has weights {weights}, not {self.weights_hash}"
            )
        return worker

    def encode(self, result: PredictedImage) -> bytes:
        return msgspec.json.encode(result)

    def decode(self, content: bytes) -> PredictedImage:
        return _DECODER.decode(content)


def _hash_manifest(worker: Worker) -> str:
    return hash_path(worker.dataset.path / MANIFEST)


def _hash_weights(worker: Worker) -> str | None:
    weights: str | None = getattr(worker.model, "weights_hash", None)
    return weights
