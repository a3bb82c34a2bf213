"""A photograph after the pretrained networks: its embedding and proposals. Masks are made when they are asked for."""

from collections.abc import Collection
from functools import cached_property

import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array
from maskwise.masks import Mask
from maskwise.models.photo.box import Box
from maskwise.models.photo.completion import (
    CONTACT,
    CompletionNetwork,
    complete_mask,
    hides,
    order_probability,
)
from maskwise.models.photo.morphology import dilate
from maskwise.models.photo.open_labels import OpenLabeler, select_labelled
from maskwise.models.photo.proposals import (
    Proposal,
    ProposalNetworks,
    add_detection,
    add_parts,
    add_points,
    add_small,
    box_proposal,
    enlarge,
    find_hiding,
    mask_iou,
    propose,
    salient_logits,
)

MIN_AGREEMENT = 0.6
"""A refined mask that agrees less with the proposal, in IoU, shows something else and is not used."""

MAX_SHARED = 0.3
"""A proposal that shares more of the smaller of two masks with an object is no other object."""


class EncodedPhoto:
    """An image that was encoded once. Questions about it need no further encoding.

    labeler: labels proposals with any words; None where that is not wanted.
    """

    def __init__(
        self,
        image: Image.Image,
        networks: ProposalNetworks,
        completion: CompletionNetwork,
        labeler: OpenLabeler | None = None,
    ) -> None:
        self.image = image
        self.labeler = labeler
        self.networks = networks
        self.completion = completion
        self.embedding = networks.sam.encode(image)
        self.detections = networks.detector.detect(image)
        self.saliency = networks.saliency.predict(image)
        self.proposals, self._prompts = propose(
            networks.sam, self.embedding, self.detections, self.saliency
        )
        self._has_points = False
        self._looked_inside: set[int] = set()
        self._front: dict[tuple[int, int], float | None] = {}
        self._masks: dict[tuple[int, ...], tuple[Mask, Mask]] = {}
        self._vectors: list[Float32Array] = []

    def look_around(self) -> None:
        """Add small objects and the proposals of a grid of points, once.

        Choosers call it that choose among all that can be found.
        """
        if self._has_points:
            return
        self._has_points = True
        sam = self.networks.sam
        small = self.networks.detector.detect_small(self.image)
        add_small(self.proposals, sam, self.embedding, small)
        add_points(self.proposals, sam, self.embedding, self._prompts)

    def look_for(
        self, categories: Collection[str], count: int, *, at_least: int = 1
    ) -> None:
        """Make proposals of the best detections of these categories, whatever their scores, if there are fewer than
        at_least. count: how many detections are tried.
        """
        existing = [
            proposal
            for proposal in self.proposals
            if not proposal.labels.keys().isdisjoint(categories)
        ]
        if len(existing) >= at_least:
            return
        names = self.detections.names()
        rows = [row for row, name in enumerate(names) if name in categories]
        for row in rows[:count]:
            add_detection(
                self.proposals, self.networks.sam, self.embedding, self.detections, row
            )

    def add_box(self, box: Box) -> int:
        """Prompt MobileSAM with a box, in pixels of the image; returns the position of the new proposal."""
        self.proposals.append(box_proposal(self.networks.sam, self.embedding, box))
        return len(self.proposals) - 1

    def look_inside(self, region: int) -> None:
        """Prompt MobileSAM at points inside a proposal, for its parts; once per proposal."""
        if region not in self._looked_inside:
            self._looked_inside.add(region)
            add_parts(self.proposals, self.networks.sam, self.embedding, region)

    def label(
        self, name: str, among: Collection[int] | None = None
    ) -> dict[int, float]:
        """The positions of the proposals that the labeler calls by a name, with its probability; empty without one.

        among: the positions that may have the label; None for all.
        """
        if self.labeler is None or not self.proposals:
            return {}
        # Proposals are only ever appended: what was embedded before keeps its position.
        boxes = [proposal.box for proposal in self.proposals[len(self._vectors) :]]
        if boxes:
            self._vectors += list(self.labeler.embed_boxes(self.image, boxes))
        rows = list(range(len(self.proposals)) if among is None else among)
        if not rows:
            return {}
        vectors = np.stack([self._vectors[row] for row in rows])
        probabilities = self.labeler.probabilities(vectors, name)
        masks = [self.proposals[row].inside for row in rows]
        labelled = select_labelled(probabilities, masks)
        return {rows[place]: probability for place, probability in labelled.items()}

    def masks(self, regions: tuple[int, ...]) -> tuple[Mask, Mask]:
        """The refined visible mask of a proposal, or of several as one region, and the completed amodal one, which
        contains it. They are made once.
        """
        if regions not in self._masks:
            refined = [self.refined(self.proposals[region]) for region in regions]
            visible = np.any(refined, 0)
            amodal = self.complete(visible)
            self._masks[regions] = (Mask.from_dense(visible), Mask.from_dense(amodal))
        return self._masks[regions]

    def complete(self, visible: BoolArray) -> BoolArray:
        """The amodal mask of an object with this visible mask, bool [height, width] of the image."""
        return complete_mask(
            self.completion,
            self.image,
            self.embedding,
            visible,
            self.neighbours(visible),
        )

    def refined(self, proposal: Proposal) -> BoolArray:
        """The mask of a proposal, decoded again from its own box and mask, at the size of the image."""
        logits = proposal.logits
        if proposal.raw is not None:
            decoded = self.networks.sam.decode(
                self.embedding, box=proposal.box, mask=proposal.raw
            )
            if mask_iou(decoded.logits > 0, proposal.inside) >= MIN_AGREEMENT:
                logits = decoded.logits
        return enlarge(logits, self.image.size)

    def neighbours(self, visible: BoolArray) -> list[BoolArray]:
        """Proposals other than the object with this mask, and what is found beside it, bool [h, w] each, at the
        resolution of the proposals.
        """
        size = self.networks.sam.logits_size(self.embedding)
        own = np.asarray(Image.fromarray(visible).resize(size))
        masks = [proposal.inside for proposal in self.proposals]
        others = [mask for mask in masks if not _is_same(mask, own)]
        hiding = find_hiding(self.networks.sam, self.embedding, own, others)
        return others + [proposal.inside for proposal in hiding]

    def front_probability(self, front: int, back: int) -> float | None:
        """The probability that one proposal hides a part of another, not the other way round; None if they do not
        touch. It is asked for once per pair.
        """
        pair = (front, back)
        if pair not in self._front:
            self._front[pair] = self._ask_order(front, back)
        return self._front[pair]

    def _ask_order(self, front: int, back: int) -> float | None:
        first = self.proposals[front].inside
        second = self.proposals[back].inside
        near = dilate(first, CONTACT)
        if not (near & second).any():
            return None
        size = self.image.size
        hidden_by_first = hides(
            self.completion,
            self.image,
            self.embedding,
            self.proposals[front].mask(size),
            second,
        )
        hidden_by_second = hides(
            self.completion,
            self.image,
            self.embedding,
            self.proposals[back].mask(size),
            first,
        )
        return order_probability(hidden_by_first, hidden_by_second)

    @cached_property
    def salient(self) -> BoolArray:
        """bool [h, w] at the resolution of the proposals: what stands out."""
        size = self.networks.sam.logits_size(self.embedding)
        return salient_logits(self.saliency, size) > 0

    @cached_property
    def pixels(self) -> Float32Array:
        """float32 [h, w, 3] in 0..1: the image at the resolution of the proposals."""
        width, height = self.networks.sam.logits_size(self.embedding)
        resized = self.image.resize((width, height), Image.Resampling.BOX)
        return np.asarray(resized, np.float32) / np.float32(255)


def _is_same(mask: BoolArray, own: BoolArray) -> bool:
    """Whether a mask shows the object itself or a part of it."""
    shared = int((mask & own).sum())
    return shared > MAX_SHARED * min(int(mask.sum()), int(own.sum()))
