"""VisionReasoner (Liu et al. 2025): a fine-tuned Qwen2.5-VL thinks and gives boxes and points, SAM 2 draws the masks.

Prompt and geometry are those of the authors' code. The language model sees the image at 840 x 840. Its reply holds a
JSON list of boxes and points in these pixels; each box with its point prompts SAM 2. A reply without a usable list
means no target.
"""

import re
from collections.abc import Sequence

import msgspec
import torch
from PIL import Image
from transformers import Sam2Model

from maskwise.models.adapters.qwen_sam2 import (
    QwenSam2,
    QwenSam2Image,
    choose_device,
    load_complete,
)
from maskwise.models.vlm.build import build_processor
from maskwise.models.vlm.config import Pretrained, VlmConfig
from maskwise.models.vlm.pretrained import read_architecture
from maskwise.models.vlm.vision_language import find_vision_language_class
from maskwise.schema import Answer, PredictedRegion, Prediction

SIDE = 840
"""Side of the image that the language model sees, as in training."""

PROMPT = (
    'Please find "{question}" with bboxs and points.'
    "Compare the difference between object(s) and find the most closely matched object(s)."
    "Output the thinking process in <think> </think> and final answer in <answer> </answer> tags."
    "Output the bbox(es) and point(s) inside the interested object(s) in JSON format."
    "i.e., <think> thinking process here </think>"
    '<answer>[{{"bbox_2d": [10,100,200,210], "point_2d": [30,110]}}, '
    '{{"bbox_2d": [225,296,706,786], "point_2d": [302,410]}}]</answer>'
)
ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
FARTHEST = 1e6
"""Coordinates beyond this are no coordinates, and would overflow."""


class BoxAndPoint(msgspec.Struct, frozen=True):
    """One object of a reply: left, top, right, bottom, and a point inside, in pixels of SIDE x SIDE."""

    bbox_2d: tuple[float, float, float, float]
    point_2d: tuple[float, float]


class VisionReasoner:
    """checkpoint: the language model; segmenter: SAM 2. Both are folders or hub names."""

    name = "visionreasoner"

    def __init__(
        self,
        checkpoint: str,
        segmenter: str = "facebook/sam2-hiera-large",
        max_new_tokens: int = 2048,
        batch_size: int = 4,
        device: str | None = None,
    ) -> None:
        device = choose_device(device)
        pretrained = Pretrained(name=checkpoint)
        model_type = read_architecture(pretrained).model_type
        language_class = find_vision_language_class(model_type)
        language = load_complete(language_class, checkpoint, checkpoint).to(device)
        sam = load_complete(Sam2Model, segmenter, segmenter).to(device)
        settings = VlmConfig(
            vision_language=pretrained,
            segmenter=Pretrained(name=segmenter),
            max_new_tokens=max_new_tokens,
        )
        self.model = QwenSam2(
            language, sam, build_processor(settings), batch_size=batch_size
        )
        self.config = {
            "checkpoint": checkpoint,
            "segmenter": segmenter,
            "max_new_tokens": max_new_tokens,
        }

    @torch.inference_mode()
    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question; both networks encode the image once."""
        shown = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        encoded = self.model.encode(image, shown)
        prompts = [write_prompt(question) for question in questions]
        predictions = []
        for answer in self.model.write(encoded, prompts):
            reply = self.model.processor.decode(answer.tokens)
            predictions.append(self._to_prediction(encoded, reply))
        return predictions

    def _to_prediction(self, image: QwenSam2Image, reply: str) -> Prediction:
        objects = parse_reply(reply)
        regions: tuple[PredictedRegion, ...] = ()
        if objects:
            regions = self.model.draw(image, self._prompts(objects, image.size))
        return Prediction(
            answer=Answer(text=remove_tags(reply)),
            mask_type="visible",
            regions=regions,
            no_target=not regions,
        )

    def _prompts(
        self, objects: Sequence[BoxAndPoint], size: tuple[int, int]
    ) -> torch.Tensor:
        """SAM 2's prompt vectors [n, k, width] of each box with its point."""
        sam = self.model.sam
        side = sam.config.prompt_encoder_config.image_size
        device = next(sam.parameters()).device
        boxes = []
        points = []
        for target in objects:
            boxes.append(to_input_pixels(target.bbox_2d, size, side))
            points.append(to_input_pixels(target.point_2d, size, side))
        # 1: the point lies inside the object.
        labels = torch.ones((1, len(objects), 1), dtype=torch.int32, device=device)
        vectors, _ = sam.prompt_encoder(
            input_points=torch.tensor(points, device=device)[None, :, None],
            input_labels=labels,
            input_boxes=torch.tensor(boxes, device=device)[None],
            input_masks=None,
        )
        prompts: torch.Tensor = vectors[0]
        return prompts


def write_prompt(question: str) -> str:
    """The authors' prompt for a question."""
    return PROMPT.format(question=question.lower().strip('."?!'))


def parse_reply(reply: str) -> list[BoxAndPoint]:
    """The objects of a reply. Those without a box or a point are left out; a list that is not JSON has none."""
    answer = ANSWER.search(reply)
    if answer is None:
        return []
    try:
        items = msgspec.json.decode(answer[1].strip())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    if not isinstance(items, list):
        return []
    objects = [_to_object(item) for item in items]
    return [target for target in objects if target is not None]


def _to_object(item: object) -> BoxAndPoint | None:
    """An item of a reply; None if it has another form or impossible coordinates."""
    try:
        target = msgspec.convert(item, BoxAndPoint)
    except msgspec.ValidationError:
        return None
    coordinates = (*target.bbox_2d, *target.point_2d)
    if any(abs(coordinate) > FARTHEST for coordinate in coordinates):
        return None
    return target


def to_input_pixels(
    values: Sequence[float], size: tuple[int, int], side: int
) -> list[float]:
    """Coordinates x, y, ... of SIDE x SIDE in SAM 2's input of side x side.

    As in the authors' code they are rounded to whole pixels of the image between the two. size: width and height.
    """
    pixels = []
    for place, value in enumerate(values):
        length = size[place % 2]
        image_pixel = round(value * length / SIDE)
        pixels.append(image_pixel * side / length)
    return pixels


def remove_tags(reply: str) -> str:
    """The thinking of a reply, without its list of objects."""
    without_list = ANSWER.sub("", reply)
    return re.sub(r"</?(think|answer)>", "", without_list).strip()
