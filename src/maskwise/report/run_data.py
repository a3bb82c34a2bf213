"""The samples and predictions of a run, opened again through its run.json, for the gallery."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from maskwise.errors import MaskError, RecordError, StoreError
from maskwise.predictions import load_predictions as load_records
from maskwise.predictions import read_predictions
from maskwise.protocols import GroundTruth, PredictionColumns
from maskwise.protocols.prediction_columns import FAILED, MISSING, UNSTATED
from maskwise.runs import Run
from maskwise.runs.files import hash_path
from maskwise.schema import Answer, Phrase, PredictedRegion, Prediction
from maskwise.store import MASK_TYPES, Dataset
from maskwise.store.folder import MANIFEST


@dataclass(frozen=True)
class RunPaths:
    """Where the dataset, the predictions and the images are now, if not where the run or the dataset says."""

    truth: Path | None = None
    predictions: Path | None = None
    images: Path | None = None


@dataclass(frozen=True)
class RunData:
    """A dataset and the predictions for its samples, in its order."""

    dataset: Dataset
    predictions: PredictionColumns

    def prediction(self, row: int) -> Prediction | None:
        """The prediction for the sample of a row; None if it is missing. One that cannot be shown has an error."""
        return prediction_at(self.predictions, row, self.dataset.samples.id[row])


def load_run_data(run: Run, paths: RunPaths) -> RunData:
    """Open what the run was scored on; StoreError if it is missing or has changed."""
    try:
        dataset = load_ground_truth(run, paths)
        return RunData(dataset, load_predictions(run, paths, dataset))
    except (OSError, ValueError) as error:
        # The paths come from a file: opening them may raise any OSError.
        raise StoreError(
            f"what {run.location} was scored on cannot be opened: {error}"
        ) from None


def load_predictions(run: Run, paths: RunPaths, dataset: Dataset) -> PredictionColumns:
    """The predictions of a run, in the dataset's order."""
    if run.predictions is not None:
        return load_records(
            run.predictions, GroundTruth.from_dataset(dataset)
        ).predictions
    facts = run.predictions_info
    return read_predictions(
        find_predictions(run, paths),
        GroundTruth.from_dataset(dataset),
        facts.format,
        options=facts.options,
    ).predictions


def find_predictions(run: Run, paths: RunPaths) -> Path:
    """The file or folder of a run's predictions; StoreError if it is missing or has changed."""
    facts = run.predictions_info
    path = paths.predictions or Path(facts.path or "")
    if not path.exists():
        raise StoreError(
            f"{path}, the predictions of {run.location}, are missing; put them back"
        )
    _check_unchanged(path, facts.sha256, "put it back, or score the run again")
    return path


def load_ground_truth(run: Run, paths: RunPaths) -> Dataset:
    """The dataset of a run, or the subset that the run was on."""
    if run.dataset is not None and paths.truth is None:
        return run.dataset
    path = paths.truth or Path(run.info.dataset.path)
    dataset = Dataset.open(path, image_root=paths.images)
    _check_unchanged(
        path / MANIFEST,
        run.info.dataset.sha256,
        "give the right one with `maskwise report RUN DATASET`",
    )
    if run.ids == dataset.samples.id:
        return dataset
    # The manifest is the same, so all ids exist: the run was on a subset of the dataset.
    return dataset.take(
        np.array([dataset.samples.row[name] for name in run.ids], np.int64)
    )


def _check_unchanged(path: Path, sha256: str, remedy: str) -> None:
    if hash_path(path) != sha256:
        raise StoreError(
            f"{path} is not what was scored: its content has changed; {remedy}"
        )


def prediction_at(
    columns: PredictionColumns, row: int, sample: str
) -> Prediction | None:
    """One prediction as a record. A mask that cannot be read makes it a failed one."""
    state = columns.state[row]
    if state == MISSING:
        return None
    if state == FAILED:
        return Prediction(sample=sample, error=columns.reasons.get(row, "failed"))
    stated = int(columns.mask_type[row])
    try:
        return Prediction(
            sample=sample,
            answer=_answer(columns, row),
            mask_type=None if stated == UNSTATED else MASK_TYPES[stated],
            regions=tuple(
                _region(columns, item)
                for item in range(*columns.offsets[row : row + 2].tolist())
            ),
            no_target=bool(columns.no_target[row]),
        )
    except (MaskError, RecordError) as error:
        return Prediction(sample=sample, error=str(error))


def _region(columns: PredictionColumns, item: int) -> PredictedRegion:
    visible, amodal = (
        column.masks[item] if column.present[item] else None
        for column in (columns.visible, columns.amodal)
    )
    name = columns.names.names[columns.names.codes[item]]
    return PredictedRegion(
        visible=visible, amodal=amodal, score=float(columns.score[item]), name=name
    )


def _answer(columns: PredictionColumns, row: int) -> Answer | None:
    """The answer; its phrases are located in the text, in order."""
    text = columns.answers[row] if len(columns.answers) else None
    if text is None:
        return None
    phrases = []
    columns_of_phrases = columns.phrases
    if columns_of_phrases is not None and columns_of_phrases.words is not None:
        cursor = 0
        for item in range(
            *np.searchsorted(columns_of_phrases.sample, [row, row + 1]).tolist()
        ):
            words = columns_of_phrases.words.names[columns_of_phrases.words.codes[item]]
            start = text.find(words, cursor) if words else -1
            if words and start >= 0:
                members = (
                    columns_of_phrases.members[
                        columns_of_phrases.offsets[item] : columns_of_phrases.offsets[
                            item + 1
                        ]
                    ]
                    - columns.offsets[row]
                )
                phrases.append(
                    Phrase(
                        start=start,
                        stop=start + len(words),
                        regions=tuple(members.tolist()),
                    )
                )
                cursor = start + len(words)
    return Answer(text=text, phrases=tuple(phrases))
