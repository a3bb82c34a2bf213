"""Validation of the bundled model: the strict protocol on images that training does not use.

validation = Validation(Dataset.open(folder))
validation.score_detector(model)                       # the detector alone, with a perfect grounder
validation.score(networks, validation.encode(model))   # the whole model
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from maskwise.harness.scoring import compute_scores
from maskwise.models.tiny.encoded_image import EncodedImage
from maskwise.models.tiny.greedy_matching import match_targets
from maskwise.models.tiny.model import Tiny
from maskwise.models.tiny.networks import Networks
from maskwise.schema import Prediction
from maskwise.store import Dataset, Log
from maskwise.training.validation import select_metrics


class Validation:
    """A dataset with ground truth."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def encode(self, model: Tiny) -> list[EncodedImage]:
        """Every image with a question, encoded by the model's detector."""
        return [
            model.encode(self.dataset.open_image(image.id))
            for image, _ in self.dataset.groups()
        ]

    def score_detector(self, model: Tiny) -> dict[str, float]:
        """Metrics with the ground-truth targets and mask types among the model's detections."""
        predictions = {}
        for encoded, (_, samples) in zip(self.encode(model), self.dataset.groups()):
            for sample in samples:
                targets = match_targets(encoded, sample.targets)
                amodal = sample.mask_type == "amodal"
                predictions[sample.id] = encoded.predict_targets(
                    targets, "amodal" if amodal else "visible"
                )
        return self._metrics(predictions)

    def score(self, networks: Networks, images: list[EncodedImage]) -> dict[str, float]:
        """Metrics of the whole model: images encoded before, questions answered by the grounder of `networks`."""
        predictions: dict[str, Prediction] = {}
        for encoded, (_, samples) in zip(images, self.dataset.groups()):
            current = EncodedImage(networks, encoded.objects, encoded.size)
            answers = current.answer([sample.question for sample in samples])
            for sample, answer in zip(samples, answers):
                predictions[sample.id] = answer
        return self._metrics(predictions)

    def _metrics(self, predictions: Mapping[str, Prediction]) -> dict[str, float]:
        """Metrics of predictions by sample id."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "predictions.jsonl"
            with Log(path, Prediction) as log:
                for sample, prediction in predictions.items():
                    log.append(msgspec.structs.replace(prediction, sample=sample))
            result = compute_scores(path, self.dataset, ["strict"])
        metrics = result.scores["strict"].metrics
        return select_metrics(
            {name: metric.value() for name, metric in metrics.items()}
        )
