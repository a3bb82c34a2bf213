"""An image after the detector and the RoI head: questions about it only need the grounder."""

from collections.abc import Sequence

import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array
from maskwise.language.answers import write_answer
from maskwise.language.dialogue import continues_request, resolve_question
from maskwise.language.intent import RequestedMask, classify_intent
from maskwise.masks import Mask, Masks
from maskwise.models.tiny.detections import DetectedObjects
from maskwise.models.tiny.features import object_features
from maskwise.models.tiny.grounding import (
    CandidateKey,
    list_candidates,
    select_targets,
    target_probabilities,
)
from maskwise.models.tiny.networks import Networks
from maskwise.schema import (
    PredictedRegion,
    Prediction,
    continue_dialogue,
    earlier_turns,
)


class EncodedImage:
    """size: width and height of the image. objects: what was detected, at the model's resolution. candidates: the name,
    position and size of every object and part. in_domain: False if the image is unlike the training images.
    """

    def __init__(
        self,
        networks: Networks,
        objects: DetectedObjects,
        size: tuple[int, int],
        *,
        in_domain: bool = True,
    ) -> None:
        self.networks = networks
        self.objects = objects
        self.size = size
        self.in_domain = in_domain
        self.features = object_features(objects)
        self.candidates = list_candidates(objects)

    def ask(self, question: str) -> Prediction:
        """The answer to one question."""
        return self.answer([question])[0]

    def answer(self, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question, in order; `sample` is empty, for the caller to fill."""
        resolved = [self._resolve(question) for question in questions]
        texts = [text for text, _ in resolved]
        intents = classify_intent(texts)
        predictions = []
        for probabilities, intent, (_, inherited) in zip(
            self.probabilities(texts), intents, resolved
        ):
            # Words that decide about the mask type win over the turn before.
            mask_type = intent.mask_type
            decides = any(span.polarity == mask_type for span in intent.spans)
            if inherited is not None and not decides:
                mask_type = inherited
            targets = select_targets(self.candidates, probabilities)
            predictions.append(self.predict_targets(targets, mask_type, probabilities))
        return predictions

    def _resolve(self, question: str) -> tuple[str, RequestedMask | None]:
        """A question of a dialogue so that it can be read alone, and the mask type it takes over from the turn before.

        Earlier questions are answered again: their targets are what the question refers to.
        """
        turns = earlier_turns(question)
        if not turns:
            return question, None
        last = continue_dialogue(turns[-1].question, turns[:-1])
        (before,) = self.answer([last])
        names = [region.name for region in before.regions if region.name]
        text = resolve_question(question, names)
        if not continues_request(question) or before.mask_type == "both":
            return text, None
        return text, before.mask_type

    def visible_objects(self) -> list[Mask]:
        """The visible masks of all objects that are not fully occluded, at the size of the image."""
        objects = [key for key in self.candidates if key[1] == 0]
        regions = self.predict_targets(objects, "visible").regions
        return [region.visible for region in regions if region.visible is not None]

    def probabilities(self, questions: Sequence[str]) -> Float32Array:
        """float32 [q, n, 1 + MAX_PARTS]: probability that each object and part is a target."""
        return target_probabilities(self.networks, self.features, questions)

    def predict_targets(
        self,
        targets: Sequence[CandidateKey],
        mask_type: RequestedMask,
        probabilities: Float32Array | None = None,
    ) -> Prediction:
        """The prediction for known targets: answer and masks, from left to right.

        probabilities: [n, 1 + MAX_PARTS], the scores of the regions; 1 where it is None. If the visible mask is wanted,
        targets that are fully occluded are left out.
        """
        candidates = self.candidates
        ordered = sorted(targets, key=lambda key: candidates[key].center_x)
        if mask_type == "visible":
            ordered = [key for key in ordered if candidates[key].visible_area]
        named = [(candidates[key].name, candidates[key].noun) for key in ordered]
        answer = write_answer(named, amodal=mask_type == "amodal")
        if not ordered:
            return Prediction(
                sample="", answer=answer, mask_type=mask_type, no_target=True
            )
        visible, amodal = self._masks(ordered)
        regions = []
        for row, key in enumerate(ordered):
            score = 1.0 if probabilities is None else float(probabilities[key])
            region = PredictedRegion(
                visible=visible[row],
                amodal=amodal[row],
                score=score,
                name=candidates[key].name,
            )
            regions.append(region)
        return Prediction(
            sample="", answer=answer, mask_type=mask_type, regions=tuple(regions)
        )

    def _masks(self, keys: list[CandidateKey]) -> tuple[Masks, Masks]:
        """Visible and amodal masks at the size of the image."""
        amodal = [self.objects.mask(*key) for key in keys]
        visible = []
        for mask, (index, _) in zip(amodal, keys):
            visible.append(mask & self.objects.visible[index])
        # One at a time: at the size of a photograph a dense mask takes tens of megabytes, a run-length mask kilobytes.
        encoded = []
        for mask in visible + amodal:
            resized = _resize_mask(mask, self.size)
            encoded.append(Mask.from_dense(resized))
        masks = Masks.from_masks(encoded)
        return masks[: len(keys)], masks[len(keys) :]


def _resize_mask(mask: BoolArray, size: tuple[int, int]) -> BoolArray:
    """Bilinear, so that edges stay smooth."""
    if size == (mask.shape[1], mask.shape[0]):
        return mask
    gray = Image.fromarray(mask.astype(np.uint8) * 255)
    resized = gray.resize(size, Image.Resampling.BILINEAR)
    return np.asarray(resized) >= 128  # half of white
