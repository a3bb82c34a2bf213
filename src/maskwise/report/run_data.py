"""The samples and replies behind a run, found again through its run.json: what a gallery shows."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from maskwise.errors import MaskError, RecordError, StoreError
from maskwise.harness.predictions import load_predictions as load_records
from maskwise.harness.predictions import read_predictions
from maskwise.protocols import GroundTruth, PredictionColumns
from maskwise.protocols.prediction_columns import FAILED, MISSING, UNSTATED
from maskwise.runs import Run
from maskwise.runs.files import hash_path
from maskwise.schema import Answer, Phrase, PredictedRegion, Prediction
from maskwise.store import MASK_TYPES, Dataset
from maskwise.store.folder import MANIFEST


@dataclass(frozen=True)
class RunPaths:
    """Where truth, predictions and images lie now, if not where the run or the dataset says."""

    truth: Path | None = None
    predictions: Path | None = None
    images: Path | None = None


@dataclass(frozen=True)
class RunData:
    """A dataset and the replies to its samples, in its order."""

    dataset: Dataset
    replies: PredictionColumns

    def reply(self, row: int) -> Prediction | None:
        """What was said to the sample of a row; None where nobody replied. One that cannot be shown has an error."""
        return prediction_at(self.replies, row, self.dataset.samples.id[row])


def load_run_data(run: Run, paths: RunPaths) -> RunData:
    """Open what the run was scored on; StoreError where it is gone or is not what it was."""
    try:
        dataset = load_ground_truth(run, paths)
        return RunData(dataset, load_predictions(run, paths, dataset))
    except (OSError, ValueError) as error:
        # The paths come from a file: a disk may refuse them in any way.
        raise StoreError(f"what {run.location} was scored on cannot be opened: {error}") from None


def load_predictions(run: Run, paths: RunPaths, dataset: Dataset) -> PredictionColumns:
    """The predictions of a run, in the dataset's order."""
    if run.predictions is not None:
        return load_records(run.predictions, GroundTruth.from_dataset(dataset)).predictions
    facts = run.predictions_info
    path = paths.predictions or Path(facts.path or "")
    if not path.exists():
        raise StoreError(
            f"{path}, the predictions of {run.location}, are gone; say where they lie: --predictions"
        )
    _check_unchanged(path, facts.sha256, "--predictions")
    return read_predictions(
        path, GroundTruth.from_dataset(dataset), facts.format, options=facts.options
    ).predictions


def load_ground_truth(run: Run, paths: RunPaths) -> Dataset:
    """The dataset of a run, or the part of it that the run was on."""
    if run.dataset is not None and paths.truth is None:
        return run.dataset
    path = paths.truth or Path(run.info.dataset.path)
    dataset = Dataset.open(path, image_root=paths.images)
    _check_unchanged(path / MANIFEST, run.info.dataset.sha256, "--dataset")
    if run.ids == dataset.samples.id:
        return dataset
    # The manifest is the same, so every id is there: the run was on a part of the dataset.
    return dataset.take(np.array([dataset.samples.row[name] for name in run.ids], np.int64))


def _check_unchanged(path: Path, sha256: str, option: str) -> None:
    if hash_path(path) != sha256:
        raise StoreError(f"{path} is not what was scored: it changed, or another lies there now ({option})")


def prediction_at(replies: PredictionColumns, row: int, sample: str) -> Prediction | None:
    """One reply as a record. A mask that cannot be read makes it a failed one."""
    state = replies.state[row]
    if state == MISSING:
        return None
    if state == FAILED:
        return Prediction(sample=sample, error=replies.reasons.get(row, "failed"))
    said = int(replies.mask_type[row])
    try:
        return Prediction(
            sample=sample,
            answer=_answer(replies, row),
            mask_type=None if said == UNSTATED else MASK_TYPES[said],
            regions=tuple(_region(replies, item) for item in range(*replies.offsets[row : row + 2].tolist())),
            no_target=bool(replies.no_target[row]),
        )
    except (MaskError, RecordError) as error:
        return Prediction(sample=sample, error=str(error))


def _region(replies: PredictionColumns, item: int) -> PredictedRegion:
    visible, amodal = (
        column.masks[item] if column.present[item] else None for column in (replies.visible, replies.amodal)
    )
    name = replies.names.names[replies.names.codes[item]]
    return PredictedRegion(visible=visible, amodal=amodal, score=float(replies.score[item]), name=name)


def _answer(replies: PredictionColumns, row: int) -> Answer | None:
    """The words said; phrases are found again in them, in order."""
    text = replies.answers[row] if len(replies.answers) else None
    if text is None:
        return None
    phrases, found = [], replies.phrases
    if found is not None and found.words is not None:
        cursor = 0
        for item in range(*np.searchsorted(found.sample, [row, row + 1]).tolist()):
            words = found.words.names[found.words.codes[item]]
            start = text.find(words, cursor) if words else -1
            if words and start >= 0:
                members = found.members[found.offsets[item] : found.offsets[item + 1]] - replies.offsets[row]
                phrases.append(Phrase(start=start, stop=start + len(words), regions=tuple(members.tolist())))
                cursor = start + len(words)
    return Answer(text=text, phrases=tuple(phrases))
