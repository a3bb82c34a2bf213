"""A drawn photograph of rectangles and networks that find them, in place of the pretrained ones."""

from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from maskwise.models.photo.box import Box
from maskwise.models.photo.detector import Detections
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.proposals import Proposal, ProposalNetworks
from maskwise.models.photo.sam import (
    FEATURE_CHANNELS,
    GRID_SIZE,
    LOGITS_SIZE,
    ImageEmbedding,
    MaskLogits,
)
from maskwise.models.photo.vocabulary import COCO_CATEGORIES
from maskwise.models.photo.window import CROP_SIZE

SIZE = (320, 240)

Objects = tuple[tuple[str, str, Box, float], ...]
"""Name, color, box and score of each; an object without a score is not detected, only found by points."""

OBJECTS: Objects = (
    ("cup", "red", Box(20, 100, 60, 150), 0.9),
    ("cup", "blue", Box(240, 90, 290, 150), 0.8),
    ("dog", "saddlebrown", Box(120, 60, 200, 140), 0.9),
    ("dining table", "white", Box(10, 140, 310, 220), 0.7),
    ("kite", "yellow", Box(220, 10, 250, 40), 0.12),
    ("cat", "black", Box(130, 10, 150, 40), 0.09),
)


def draw_scene(objects: Objects = OBJECTS) -> Image.Image:
    image = Image.new("RGB", SIZE, "green")
    draw = ImageDraw.Draw(image)
    for _, color, (left, top, right, bottom), _ in sorted(
        objects, key=lambda one: -one[2][2] + one[2][0]
    ):
        draw.rectangle((left, top, right - 1, bottom - 1), fill=color)
    return image


class FakeSam:
    """The mask of a box is the box; that of a point is the smallest object there, or else the whole image."""

    def __init__(self, objects: Objects = OBJECTS) -> None:
        self.objects = objects
        self.encoded = self.decoded = 0

    def encode(self, image: Image.Image) -> ImageEmbedding:
        self.encoded += 1
        return ImageEmbedding(
            np.zeros((1, FEATURE_CHANNELS, GRID_SIZE, GRID_SIZE), np.float32),
            image.size,
        )

    def decode(
        self,
        embedding: ImageEmbedding,
        *,
        box: Box | None = None,
        points: Any = None,
        mask: Any = None,
    ) -> MaskLogits:
        self.decoded += 1
        width, height = self.logits_size(embedding)
        scale = width / embedding.size[0]
        if box is None:
            x, y = points[0]
            inside = [
                one[2]
                for one in self.objects
                if one[2][0] <= x < one[2][2] and one[2][1] <= y < one[2][3]
            ]
            box = min(
                inside, key=lambda one: one[2] - one[0], default=(0, 0, *embedding.size)
            )
        left, top, right, bottom = (round(side * scale) for side in box)
        logits = np.full((height, width), -5, np.float32)
        logits[top:bottom, left:right] = 5
        raw = np.full((1, 1, LOGITS_SIZE, LOGITS_SIZE), -5, np.float32)
        raw[0, 0, :height, :width] = logits
        return MaskLogits(logits, raw, 0.9)

    def decode_levels(
        self, embedding: ImageEmbedding, point: tuple[float, float]
    ) -> list[MaskLogits]:
        return [self.decode(embedding, points=np.array([point], np.float32))]

    def logits_size(self, embedding: ImageEmbedding) -> tuple[int, int]:
        longest = max(embedding.size)
        width, height = (round(side / longest * LOGITS_SIZE) for side in embedding.size)
        return width, height


class FakeDetector:
    def __init__(self, objects: Objects = OBJECTS) -> None:
        self.objects = [one for one in objects if one[3] > 0]

    def detect_small(self, image: Image.Image) -> Detections:
        return self.detect(image)

    def detect(self, image: Image.Image) -> Detections:
        return Detections(
            np.array([one[2] for one in self.objects], np.float32),
            np.array([one[3] for one in self.objects], np.float32),
            np.array([COCO_CATEGORIES.index(one[0]) for one in self.objects], np.int64),
        )


class FakeSaliency:
    def predict(self, image: Image.Image) -> Any:
        found = np.zeros((320, 320), np.float32)
        found[100:200, 120:200] = 1
        return found


class FakeCompletion:
    """Says that every neighbour is in front with a probability, and that the object fills the whole window."""

    hash = "fake"

    def __init__(self, front: float = 0.9) -> None:
        self.front = front
        self.seen: list[Any] = []

    def complete(self, crops: Any, features: Any) -> tuple[np.ndarray, np.ndarray]:
        self.seen.append(crops)
        amodal = np.ones((len(crops), CROP_SIZE, CROP_SIZE), np.float32)
        return amodal, np.full(len(crops), self.front, np.float32)


class FrontByColor(FakeCompletion):
    """Says that what is red is in front of everything else, whatever the boxes say."""

    def complete(self, crops: Any, features: Any) -> tuple[np.ndarray, np.ndarray]:
        amodal = np.zeros((len(crops), CROP_SIZE, CROP_SIZE), np.float32)
        front = np.array([_redness(crop) > 0.5 for crop in crops], np.float32)
        return amodal, front * 0.9 + 0.05


def _redness(crop: Any) -> float:
    """How much more red than green the neighbour in a crop is."""
    neighbour = crop[5] > 0
    if not neighbour.any():
        return -1.0
    return float(crop[0][neighbour].mean() - crop[1][neighbour].mean())


def fake_networks(objects: Objects = OBJECTS) -> ProposalNetworks:
    networks: Any = (FakeSam(objects), FakeDetector(objects), FakeSaliency())
    return ProposalNetworks(*networks)


def find_proposals(networks: ProposalNetworks) -> list[Proposal]:
    """All proposals of the drawn scene, as EncodedPhoto makes them."""
    photo = EncodedPhoto(draw_scene(), networks, FakeCompletion(0.0))
    photo.look_around()
    return photo.proposals


def encoded_scene(
    front: float = 0.0,
    objects: Objects = OBJECTS,
    completion: FakeCompletion | None = None,
) -> EncodedPhoto:
    return EncodedPhoto(
        draw_scene(objects), fake_networks(objects), completion or FakeCompletion(front)
    )
