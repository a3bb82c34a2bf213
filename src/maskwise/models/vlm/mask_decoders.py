"""The two mask decoders: one for visible masks, one for amodal masks (AURA)."""

import copy

import torch
from torch import nn
from transformers import PreTrainedModel

from maskwise.models.vlm.occlusion_head import OcclusionHead, unite_masks
from maskwise.models.vlm.occlusion_map import OcclusionMapHead
from maskwise.models.vlm.segmenter import Segmenter, SegmenterFeatures

UNUSED_HEADS = ("iou_prediction_head", "pred_obj_score_head")
"""Heads of a mask decoder that no loss trains: they rate the mask."""


class MaskDecoders(nn.Module):
    """The segmenter's mask decoder, and a copy of it for amodal masks.

    Prompts of the amodal decoder pass the occlusion head, and get the dense prompt of the occlusion map, if there are
    these parts.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        occlusion_head: OcclusionHead | None,
        occlusion_map: OcclusionMapHead | None = None,
        *,
        visible_inside_amodal: bool,
    ) -> None:
        super().__init__()
        self.visible = model.mask_decoder
        # In evaluation this option would replace a mask by one of the multimask outputs, which are not trained.
        self.visible.dynamic_multimask_via_stability = False
        for name in UNUSED_HEADS:
            if hasattr(self.visible, name):
                getattr(self.visible, name).requires_grad_(requires_grad=False)
        self.amodal = copy.deepcopy(self.visible)
        self.occlusion_head = occlusion_head
        self.occlusion_map = occlusion_map
        self.visible_inside_amodal = visible_inside_amodal

    def forward(
        self,
        segmenter: Segmenter,
        features: SegmenterFeatures,
        image_index: torch.Tensor,
        *,
        prompts: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Visible and amodal logits [n, h, w]; occlusion rates [n] and class logits [n, 3, h, w] where there are such
        parts.
        """
        amodal_prompts = prompts
        rates = None
        if self.occlusion_head is not None:
            amodal_prompts, rates = self.occlusion_head(prompts)
        visible = segmenter.decode(self.visible, features, image_index, prompts=prompts)
        dense = None
        classes = None
        if self.occlusion_map is not None:
            embedding = features.embedding[image_index]
            dense, classes = self.occlusion_map(embedding, prompts, visible)
        amodal = segmenter.decode(
            self.amodal, features, image_index, prompts=amodal_prompts, dense=dense
        )
        if self.visible_inside_amodal:
            amodal = unite_masks(visible, amodal)
        return visible, amodal, rates, classes
