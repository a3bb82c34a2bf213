"""The model: a vision-language model writes an answer with segmentation tokens, and each token prompts mask decoders.

    output = model(batch)                    one forward for training: all losses that are on
    features = model.encode_images(batch)    both encoders, once per image
    masks = model.decode(features, ...)      mask logits of hidden states

Each token's hidden state is that of the token itself, as in Sa2VA; LISA takes the state before it.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from maskwise.models.vlm.batch import IGNORED, MaskTargets, VlmBatch
from maskwise.models.vlm.config import VlmConfig
from maskwise.models.vlm.losses import (
    alignment_loss,
    bce_loss,
    dice_loss,
    mask_type_loss,
    occlusion_loss,
    occlusion_map_loss,
    prompt_alignment_loss,
    region_words_loss,
    text_loss,
)
from maskwise.models.vlm.mask_decoders import MaskDecoders
from maskwise.models.vlm.mask_type_head import MaskTypeHead, shift_mask_type
from maskwise.models.vlm.occlusion_map import occlusion_map_targets
from maskwise.models.vlm.projector import PromptProjector
from maskwise.models.vlm.segmenter import Segmenter, SegmenterFeatures
from maskwise.models.vlm.vision_language import ImageFeatures, VisionLanguage


class DecodedMasks(NamedTuple):
    """visible, amodal: logits [n, h, w]. occlusion_rate: [n], or None without an occlusion head. occlusion_map: class
    logits [n, 3, h, w], or None without that head.
    """

    visible: torch.Tensor
    amodal: torch.Tensor
    occlusion_rate: torch.Tensor | None
    occlusion_map: torch.Tensor | None = None

    def part(self, chosen: slice) -> "DecodedMasks":
        """Some of the masks."""
        rates = None if self.occlusion_rate is None else self.occlusion_rate[chosen]
        classes = None if self.occlusion_map is None else self.occlusion_map[chosen]
        return DecodedMasks(self.visible[chosen], self.amodal[chosen], rates, classes)


@dataclass(frozen=True)
class VlmOutput:
    """loss: the weighted sum of `losses`, each a scalar. masks: of the segmentation tokens, row by row; None without
    images.
    """

    loss: torch.Tensor
    losses: dict[str, torch.Tensor] = field(default_factory=dict)
    masks: DecodedMasks | None = None


class VlmModel(nn.Module):
    """A vision-language model, a segmenter with two mask decoders, and the projector between them."""

    def __init__(
        self,
        config: VlmConfig,
        vision_language: VisionLanguage,
        segmenter: Segmenter,
        *,
        decoders: MaskDecoders,
        projector: PromptProjector,
        mask_type_head: MaskTypeHead | None,
        seg_token_ids: tuple[int, ...],
    ) -> None:
        super().__init__()
        self.config = config
        self.seg_token_ids = seg_token_ids
        self.vision_language = vision_language
        self.segmenter = segmenter
        self.decoders = decoders
        self.projector = projector
        self.mask_type_head = mask_type_head

    def forward(self, batch: VlmBatch) -> VlmOutput:
        """All losses of a batch made by `collate` with answers."""
        weights = self.config.losses
        language, segmenter = self.encode_images(
            batch,
            masks=bool(
                weights.bce
                or weights.dice
                or weights.occlusion
                or weights.occlusion_map
            ),
        )
        states = self._encode_text(batch, language)
        losses = self._text_losses(batch, states)
        prompted, images = self._prompting_states(batch, states)
        masks = None
        if segmenter is not None:
            masks = self._mask_losses(
                batch, prompted, segmenter, image_index=images, losses=losses
            )
        if language is not None:
            self._dense_losses(batch, prompted, language, losses=losses)
        loss = sum(
            (getattr(weights, name) * loss for name, loss in losses.items()),
            states.new_zeros(()),
        )
        return VlmOutput(loss, losses, masks)

    def encode_images(
        self, batch: VlmBatch, *, masks: bool = True
    ) -> tuple[ImageFeatures, SegmenterFeatures | None]:
        """The images of a batch after both encoders; without `masks` only that of the vision-language model.

        Both are None for a batch without images.
        """
        if batch.pixel_values is None or batch.segmenter_pixels is None:
            return None, None
        language = self.vision_language.encode_images(
            batch.pixel_values, batch.image_grid_thw
        )
        if not masks:
            return language, None
        pixels = batch.segmenter_pixels.to(next(self.segmenter.parameters()).dtype)
        return language, self.segmenter.encode(pixels)

    def _encode_text(self, batch: VlmBatch, features: ImageFeatures) -> torch.Tensor:
        """Last hidden states [q, tokens, width]; images without questions have none and train by dense supervision."""
        if not len(batch):
            return self.vision_language.embeddings.new_zeros(
                (0, 0, self.vision_language.width)
            )
        return self.vision_language.encode_text(
            batch.text_inputs(), features, batch.image_index
        )

    def decode(
        self,
        features: SegmenterFeatures,
        states: torch.Tensor,
        image_index: torch.Tensor,
    ) -> DecodedMasks:
        """Masks of hidden states [n, width]; image_index: [n]. n may be 0.

        The decoders run even then, on one prompt, so that every process of a distributed run has gradients for them.
        """
        n = len(states)
        if not n:
            states = states.new_zeros((1, states.shape[1]))
            image_index = image_index.new_zeros(1)
        prompts = self.projector(states)
        return DecodedMasks(
            *self.decoders(self.segmenter, features, image_index, prompts=prompts)
        ).part(slice(n))

    def seg_positions(self, batch: VlmBatch) -> torch.Tensor:
        """True where a segmentation token stands in a question about an image: bool [q, tokens]."""
        ids = torch.tensor(self.seg_token_ids, device=batch.input_ids.device)
        has_image = (
            torch.tensor(batch.image_index, dtype=torch.long, device=ids.device) >= 0
        )
        return torch.isin(batch.input_ids, ids) & has_image[:, None]

    def mask_type_log_odds(self, batch: VlmBatch) -> torch.Tensor | None:
        """How far each question asks for the amodal token rather than the visible one, [q]; None without a head."""
        if self.mask_type_head is None:
            return None
        embeddings = self.vision_language.embed(batch.input_ids)
        log_odds: torch.Tensor = self.mask_type_head(
            batch.input_ids, embeddings, batch.asked
        )
        return log_odds

    def _text_losses(
        self, batch: VlmBatch, states: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        weights = self.config.losses
        losses = dict[str, torch.Tensor]()
        if (
            not (weights.text or weights.mask_type)
            or batch.labels is None
            or not len(batch)
        ):
            return losses
        labels = batch.labels[:, 1:]
        answered = labels != IGNORED
        # The logits of a large vocabulary are computed only where an answer is.
        logits = self.vision_language.logits(states[:, :-1][answered])
        labels = labels[answered]
        log_odds = self.mask_type_log_odds(batch)
        if log_odds is not None:
            log_odds = log_odds[answered.nonzero()[:, 0]]
            logits = shift_mask_type(logits, log_odds, self.seg_token_ids)
        if weights.text:
            losses["text"] = text_loss(logits, labels)
        if weights.mask_type:
            losses["mask_type"] = self._mask_type_loss(logits, labels, log_odds)
        return losses

    def _mask_type_loss(
        self, logits: torch.Tensor, labels: torch.Tensor, log_odds: torch.Tensor | None
    ) -> torch.Tensor:
        """Of the two segmentation tokens where one of them stands. log_odds: of the mask-type head, [n]."""
        visible, amodal = self.seg_token_ids
        chosen = (labels == visible) | (labels == amodal)
        kinds = (labels[chosen] == amodal).long()
        loss = mask_type_loss(logits[chosen][:, [visible, amodal]], kinds)
        if log_odds is None:
            return loss
        # The head also by itself: the language model learns the wordings of the training by heart.
        return loss + mask_type_loss(
            functional.pad(log_odds[chosen].unsqueeze(1), (1, 0)), kinds
        )

    def _prompting_states(
        self, batch: VlmBatch, states: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The hidden states of the segmentation tokens [n, width], row by row, and their images [n]."""
        positions = self.seg_positions(batch)
        asked = torch.tensor(batch.image_index, dtype=torch.long, device=states.device)
        return states[positions], asked[positions.nonzero()[:, 0]]

    def _mask_losses(
        self,
        batch: VlmBatch,
        states: torch.Tensor,
        features: SegmenterFeatures,
        *,
        image_index: torch.Tensor,
        losses: dict[str, torch.Tensor],
    ) -> DecodedMasks:
        """Add the losses of the masks of segmentation tokens and, with dense supervision, of named regions."""
        n = len(states)
        dense = batch.dense if self.config.losses.name_prompt else None
        if dense is not None:
            states = torch.cat([states, self.name_vectors(dense.names)])
            image_index = torch.cat([image_index, dense.image_index])
        masks = self.decode(features, states, image_index)
        if batch.masks is not None:
            losses |= self._losses_of_masks(masks.part(slice(n)), batch.masks)
        if dense is not None:
            named = self._losses_of_masks(masks.part(slice(n, None)), dense.masks)
            weighted = [
                getattr(self.config.losses, name) * loss for name, loss in named.items()
            ]
            losses["name_prompt"] = torch.stack(weighted).sum()
        return masks.part(slice(n))

    def _losses_of_masks(
        self, masks: DecodedMasks, targets: MaskTargets
    ) -> dict[str, torch.Tensor]:
        weights = self.config.losses
        losses = {}
        pairs = [
            (
                masks.visible[targets.visible_known],
                targets.visible[targets.visible_known],
            ),
            (masks.amodal[targets.amodal_known], targets.amodal[targets.amodal_known]),
        ]
        if weights.bce:
            losses["bce"] = sum(
                (bce_loss(*pair, self.config.positive_weight) for pair in pairs),
                masks.visible.new_zeros(()),
            )
        if weights.dice:
            losses["dice"] = sum(
                (dice_loss(*pair) for pair in pairs), masks.visible.new_zeros(())
            )
        if weights.occlusion and masks.occlusion_rate is not None:
            known = targets.visible_known & targets.amodal_known
            losses["occlusion"] = occlusion_loss(
                masks.occlusion_rate[known], targets.occlusion_rate[known]
            )
        if weights.occlusion_map and masks.occlusion_map is not None:
            known = targets.visible_known & targets.amodal_known
            logits = masks.occlusion_map[known]
            _, _, height, width = logits.shape
            shares = occlusion_map_targets(
                targets.visible[known], targets.amodal[known], (height, width)
            )
            losses["occlusion_map"] = occlusion_map_loss(logits, shares)
        return losses

    def name_vectors(self, names: torch.Tensor) -> torch.Tensor:
        """The mean embedding of the words of each name, [n, width]. names: [n, words], padded with -1."""
        known = (names >= 0).unsqueeze(-1)
        vectors = self.vision_language.embeddings[names.clamp(min=0)] * known
        return vectors.sum(1) / known.sum(1).clamp(min=1)

    def _dense_losses(
        self,
        batch: VlmBatch,
        states: torch.Tensor,
        features: ImageFeatures,
        *,
        losses: dict[str, torch.Tensor],
    ) -> None:
        """Add the losses that compare image tokens and segmentation tokens with the words of names."""
        weights = self.config.losses
        if (
            weights.name_alignment or weights.prompt_alignment
        ) and batch.token_names is not None:
            names = self.name_vectors(batch.token_names).detach()
            if weights.name_alignment:
                losses["name_alignment"] = alignment_loss(states, names)
            if weights.prompt_alignment:
                prompts = self.projector(states), self.projector(names).detach()
                losses["prompt_alignment"] = prompt_alignment_loss(*prompts)
        if weights.region_words and batch.dense is not None:
            tokens = torch.cat(tuple(features.pooler_output))
            logits = (
                functional.layer_norm(tokens, tokens.shape[-1:])
                @ self.vision_language.embeddings.T
            )
            losses["region_words"] = region_words_loss(
                logits, batch.dense.words, batch.dense.word_weights
            )
