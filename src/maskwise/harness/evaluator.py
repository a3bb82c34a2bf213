"""`Evaluator`: a streaming metric for training loops, in the manner of torchmetrics.

    evaluator = Evaluator("world", protocol="strict")
    for batch in loader:
        evaluator.update(batch["ids"], model(batch["images"]))
    evaluator.gather()                  # only if several processes share the work
    evaluator.compute()["giou"]
    evaluator.reset()

It keeps one prediction per sample, with masks as run lengths, and scores all of them when it is asked to. So the result
is that of `maskwise.score`, digit for digit: pixels are counted in integers, and sums are made in the order of the
dataset, whatever the order of the updates and however they were split over processes. An update only encodes masks:
scoring many samples at once is faster than scoring batch after batch.

A sample that is updated twice counts once, as when a sampler repeats samples to fill the last batch of every process.
If the two predictions differ, the one with the smaller JSON text counts, so that the order does not matter.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from PIL import Image

from maskwise.datasets import load_dataset
from maskwise.errors import MaskError, ProtocolError, RecordError
from maskwise.harness.run_record import result_to_run
from maskwise.harness.score import list_rules
from maskwise.harness.scoring import compute_scores
from maskwise.predictions import load_predictions
from maskwise.predictions.conversion import to_prediction
from maskwise.protocols import GroundTruth, Protocol, ScoringInput, find_protocol
from maskwise.protocols.mask_selection import MaskSelector
from maskwise.protocols.scoring_input import measure_targets
from maskwise.runs import Run
from maskwise.schema import Prediction
from maskwise.store import Dataset

PADDING = -100
"""What transformers.Trainer fills arrays of different lengths with."""

_DECODER = msgspec.json.Decoder(Prediction)
_STATE = msgspec.msgpack.Decoder(dict[str, bytes])


class Evaluator:
    """Predictions that arrive in any order, and their metrics.

    data: as for `load_dataset`. protocol: one protocol or a list, as for `evaluate`. options: by name of the protocol.
    mask_type: of masks that do not say. threads: for scoring.
    """

    def __init__(
        self,
        data: str | os.PathLike[str] | Dataset,
        *,
        protocol: str | Protocol | Sequence[str | Protocol] = "strict",
        options: Mapping[str, Mapping[str, Any]] | None = None,
        mask_type: Literal["visible", "amodal"] = "visible",
        threads: int = 1,
    ) -> None:
        self.dataset = load_dataset(data)
        rules = list_rules(protocol) or ()
        self.protocols = [find_protocol(rule) for rule in rules]
        self.options = dict(options or {})
        self.mask_type = mask_type
        self.threads = threads
        self._is_single = isinstance(protocol, str | Protocol)
        self._predictions: dict[str, bytes] = {}
        self._measured: tuple[list[str], GroundTruth, MaskSelector] | None = None

    def __len__(self) -> int:
        """How many samples have a prediction."""
        return len(self._predictions)

    @property
    def failed(self) -> int:
        """How many of them say that the model failed."""
        records = map(_DECODER.decode, self._predictions.values())
        return sum(record.error is not None for record in records)

    def __repr__(self) -> str:
        names = ", ".join(protocol.name for protocol in self.protocols)
        return f"Evaluator({self.dataset.name!r}, {names}: {len(self)} of {len(self.dataset)} samples)"

    def update(self, ids: Any, predictions: Iterable[Any]) -> None:
        """Add the predictions for some samples, one per id.

        ids: sample ids, or rows of the dataset as integers, in a list, array or tensor. predictions: in any form that
        `predict` may return. ProtocolError names the sample of a prediction that is invalid; then none is added.
        """
        names = self._find_ids(ids)
        items = list(predictions)
        if len(items) != len(names):
            raise ProtocolError(
                f"{len(items)} predictions for {len(names)} ids; expected one per id"
            )
        encoded = [self._encode(name, item) for name, item in zip(names, items)]
        for name, text in zip(names, encoded):
            self._add(name, text)

    def compute(self) -> dict[str, float | None]:
        """Every metric over the samples that have a prediction; None where it is undefined.

        The keys are names of metrics, for several protocols `protocol/metric`. ProtocolError if there is no prediction.
        """
        rows, records = self._collect()
        truth, targets = self._measure(rows)
        loaded = load_predictions(records, truth)
        inputs = ScoringInput(
            truth, loaded.predictions, threads=self.threads, targets=targets
        )
        values: dict[str, float | None] = {}
        for protocol in self.protocols:
            scores = protocol.score(inputs, **self.options.get(protocol.name, {}))
            prefix = "" if self._is_single else f"{protocol.name}/"
            for name, value in scores.headline().items():
                values[f"{prefix}{name}"] = value
        return values

    def run(self) -> Run:
        """The same scores as a run in memory: with intervals, slices, tables and reports."""
        rows, records = self._collect()
        result = compute_scores(
            records,
            self._view(rows),
            self.protocols,
            options=self.options,
            threads=self.threads,
        )
        return result_to_run(result)

    def merge(self, other: "Evaluator") -> None:
        """Add the predictions of another evaluator of the same dataset."""
        if other.dataset.samples.id != self.dataset.samples.id:
            raise ProtocolError(
                f"{other!r} is about other samples than {self!r}; merge evaluators of one dataset"
            )
        for name, text in other._predictions.items():
            self._add(name, text)

    def reset(self) -> None:
        """Forget all predictions."""
        self._predictions.clear()

    def gather(self) -> None:
        """Merge the predictions of all processes of torch.distributed, in each of them; every process has to call it.

        Nothing happens where there is no process group.
        """
        # A process with a process group has loaded torch; without torch there is nothing to do.
        torch = sys.modules.get("torch")
        if torch is None or not torch.distributed.is_initialized():
            return
        states: list[bytes] = [b""] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(states, self.state())
        for state in states:
            self.load_state(state)

    def state(self) -> bytes:
        """All predictions, for another process or a checkpoint."""
        return msgspec.msgpack.encode(self._predictions)

    def load_state(self, state: bytes) -> None:
        """Add the predictions of `state`."""
        for name, text in _STATE.decode(state).items():
            self._add(name, text)

    def compute_metrics(
        self, evaluated: Any, compute_result: bool = True
    ) -> dict[str, float]:
        """For `transformers.Trainer(compute_metrics=evaluator.compute_metrics)`.

        evaluated: `predictions`, an array (n, height, width) or (n, regions, height, width) of booleans, or of logits
        that are cut at 0; masks of another size than the image are scaled to it, logits bilinearly. `label_ids`: the
        row of each sample in the dataset, int [n]: labels of the training dataset have to be that. compute_result:
        False for all but the last call if the trainer has `batch_eval_metrics`. Metrics without a value are left out.
        """
        rows = np.asarray(_to_numpy(evaluated.label_ids)).reshape(-1)
        is_sample = rows != PADDING
        masks = _to_numpy(evaluated.predictions)
        ids = self._find_ids(rows[is_sample])
        for name, planes in zip(ids, masks[is_sample]):
            size = self._size(name)
            regions = planes[None] if planes.ndim == 2 else planes
            self.update([name], [[_fit(region, size) for region in regions]])
        if not compute_result:
            return {}
        values = self.compute()
        self.reset()
        return {name: value for name, value in values.items() if value is not None}

    def _find_ids(self, ids: Any) -> list[str]:
        """Sample ids from ids or rows."""
        known = self.dataset.samples
        names = []
        for item in [ids] if isinstance(ids, str) else _to_numpy(ids):
            if isinstance(item, str) and item in known.row:
                names.append(str(item))
            elif isinstance(item, int | np.integer) and 0 <= item < len(known.id):
                names.append(known.id[int(item)])
            else:
                raise ProtocolError(
                    f"{self.dataset.name} has no sample {item!r}; expected sample ids, or rows from 0 to "
                    f"{len(known.id) - 1}"
                )
        return names

    def _size(self, name: str) -> tuple[int, int]:
        height, width = self.dataset.samples.size[self.dataset.samples.row[name]]
        return int(height), int(width)

    def _encode(self, name: str, item: Any) -> bytes:
        try:
            prediction = to_prediction(
                item, size=self._size(name), mask_type=self.mask_type
            )
        except (MaskError, RecordError) as error:
            raise ProtocolError(f"sample {name!r}: {error}") from None
        return msgspec.json.encode(msgspec.structs.replace(prediction, sample=name))

    def _add(self, name: str, text: bytes) -> None:
        """Add an encoded prediction; of two different ones for a sample the smaller counts, in any order."""
        known = self._predictions.get(name)
        if known is None or text < known:
            self._predictions[name] = text

    def _collect(self) -> tuple[list[int], list[Prediction]]:
        """The rows of the samples with a prediction, ascending, and their predictions."""
        if not self._predictions:
            raise ProtocolError("there is no prediction to score; call update first")
        row_of = self.dataset.samples.row
        names = sorted(self._predictions, key=row_of.__getitem__)
        records = [_DECODER.decode(self._predictions[name]) for name in names]
        return [row_of[name] for name in names], records

    def _view(self, rows: list[int]) -> Dataset:
        if len(rows) == len(self.dataset):
            return self.dataset
        return self.dataset.take(np.array(rows, np.int64))

    def _measure(self, rows: list[int]) -> tuple[GroundTruth, MaskSelector]:
        """The ground truth of some samples, measured once for the same samples: those of every epoch."""
        names = [self.dataset.samples.id[row] for row in rows]
        if self._measured is None or self._measured[0] != names:
            truth = GroundTruth.from_dataset(self._view(rows))
            self._measured = (names, truth, measure_targets(truth, self.threads))
        return self._measured[1], self._measured[2]


def _to_numpy(values: Any) -> Any:
    """An array from a tensor or array; a list as it is."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        is_half = "float16" in str(values.dtype)  # numpy has no bfloat16
        return (values.float() if is_half else values).numpy()
    return values


def _fit(plane: Any, size: tuple[int, int]) -> Any:
    """A mask (height, width) as booleans of the size of the image."""
    height, width = size
    if plane.dtype == np.bool_:
        if plane.shape == size:
            return plane
        scaled = Image.fromarray(plane).resize(
            (width, height), Image.Resampling.NEAREST
        )
        return np.asarray(scaled)
    if plane.shape == size:
        return plane > 0
    logits = Image.fromarray(plane.astype(np.float32))
    return np.asarray(logits.resize((width, height), Image.Resampling.BILINEAR)) > 0
