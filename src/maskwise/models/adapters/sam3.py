"""SAM 3 (Carion et al. 2025) of transformers: a noun phrase to the masks of all its instances, or none.

SAM 3 understands short noun phrases. A question is reduced to its phrase ("Segment the red cup." to "red cup"). One
that needs reasoning is passed on as it is and answered badly: SAM 3 alone does not reason.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn import functional
from transformers import AutoTokenizer, Sam3Model

from maskwise.errors import ModelError
from maskwise.language.requests import to_noun_phrase
from maskwise.masks import Mask
from maskwise.schema import PredictedRegion, Prediction

MIN_SCORE = 0.5
"""Lowest score of an instance, as in the authors' code; transformers' default is 0.3."""

TEXT_LENGTH = 32
"""Tokens of a phrase, as in training."""


class Sam3Predictor:
    """A SAM 3 checkpoint. checkpoint: a folder or a hub name."""

    name = "sam3"

    def __init__(
        self, checkpoint: str, min_score: float = MIN_SCORE, device: str | None = None
    ) -> None:
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            self.model = (
                Sam3Model.from_pretrained(checkpoint, use_safetensors=True)
                .to(self.device)
                .eval()
            )
            self.tokenizer = AutoTokenizer.from_pretrained(
                checkpoint, trust_remote_code=False
            )
        except OSError as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelError(
                f"sam3: {checkpoint} cannot be loaded ({reason}). Expected a folder with its weights: get access at "
                "https://huggingface.co/facebook/sam3, run `hf download facebook/sam3 --local-dir FOLDER`, and give "
                "--model-option checkpoint=FOLDER"
            ) from None
        self.min_score = min_score
        self.config = {"checkpoint": checkpoint, "min_score": min_score}

    @torch.inference_mode()
    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question; the image is encoded once."""
        features = self.model.get_vision_features(pixel_values=self._pixels(image))
        return [
            self._answer(features, to_noun_phrase(question), image.size)
            for question in questions
        ]

    def _pixels(self, image: Image.Image) -> torch.Tensor:
        """float32 [1, 3, s, s] in -1..1: resized without keeping the proportions."""
        side = self.model.config.vision_config.image_size
        size = (side, side) if isinstance(side, int) else (side[1], side[0])
        resized = image.resize(size, Image.Resampling.BILINEAR)
        pixels = np.asarray(resized, np.float32) / 127.5 - 1
        return torch.from_numpy(pixels.transpose(2, 0, 1)[None]).to(self.device)

    def _answer(self, features: Any, phrase: str, size: tuple[int, int]) -> Prediction:
        """The instances of a phrase. size: width and height of the image."""
        words = self.tokenizer(
            [phrase],
            padding="max_length",
            max_length=TEXT_LENGTH,
            truncation=True,
            return_tensors="pt",
        ).to(self.device)
        output = self.model(
            vision_embeds=features,
            input_ids=words["input_ids"],
            attention_mask=words["attention_mask"],
        )
        # An instance counts as far as it fits, and as far as the image shows the phrase at all.
        presence = output.presence_logits[0].sigmoid()
        scores = output.pred_logits[0].sigmoid() * presence
        kept = torch.nonzero(scores > self.min_score)[:, 0]
        if not len(kept):
            return Prediction(sample="", mask_type="visible", no_target=True)
        logits = functional.interpolate(
            output.pred_masks[:, kept], size[::-1], mode="bilinear"
        )
        masks = (logits[0] > 0).cpu().numpy()
        regions = []
        for mask, score in zip(masks, scores[kept].tolist()):
            visible = Mask.from_dense(mask)
            regions.append(PredictedRegion(visible=visible, score=score, name=phrase))
        return Prediction(sample="", mask_type="visible", regions=tuple(regions))
