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
from maskwise.schema import Answer, Prediction

SIDE = 840
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
"""Coordinates beyond this are no coordinates."""


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
        part = Pretrained(name=checkpoint)
        found = find_vision_language_class(read_architecture(part).model_type)
        language = load_complete(found, checkpoint, checkpoint).to(device)
        sam = load_complete(Sam2Model, segmenter, segmenter).to(device)
        settings = VlmConfig(
            vision_language=part,
            segmenter=Pretrained(name=segmenter),
            image_size=sam.config.prompt_encoder_config.image_size,
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
        written = self.model.write(
            encoded, [write_prompt(question) for question in questions]
        )
        replies = [self.model.processor.decode(one.tokens) for one in written]
        return [self._to_prediction(encoded, reply) for reply in replies]

    def _to_prediction(self, image: QwenSam2Image, reply: str) -> Prediction:
        objects = parse_reply(reply)
        regions = (
            self.model.draw(image, self._prompts(objects, image.size))
            if objects
            else ()
        )
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
        boxes = torch.tensor(
            [to_input_pixels(one.bbox_2d, size, side) for one in objects], device=device
        )
        points = torch.tensor(
            [to_input_pixels(one.point_2d, size, side) for one in objects],
            device=device,
        )
        vectors, _ = sam.prompt_encoder(
            input_points=points[None, :, None],
            input_labels=torch.ones(
                (1, len(objects), 1), dtype=torch.int32, device=device
            ),
            input_boxes=boxes[None],
            input_masks=None,
        )
        found: torch.Tensor = vectors[0]
        return found


def write_prompt(question: str) -> str:
    """The authors' prompt for a question."""
    return PROMPT.format(question=question.lower().strip('."?!'))


def parse_reply(reply: str) -> list[BoxAndPoint]:
    """The objects of a reply. Those without a box or a point are left out; a list that is not JSON has none."""
    found = ANSWER.search(reply)
    try:
        items = msgspec.json.decode(found[1].strip()) if found else []
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    objects = [_to_object(item) for item in items] if isinstance(items, list) else []
    return [one for one in objects if one is not None]


def _to_object(item: object) -> BoxAndPoint | None:
    try:
        found = msgspec.convert(item, BoxAndPoint)
    except msgspec.ValidationError:
        return None
    inside = all(abs(one) <= FARTHEST for one in (*found.bbox_2d, *found.point_2d))
    return found if inside else None


def to_input_pixels(
    values: Sequence[float], size: tuple[int, int], side: int
) -> list[float]:
    """Coordinates x, y, ... of SIDE x SIDE in SAM 2's input of side x side.

    As in the authors' code they are rounded to whole pixels of the image between the two. size: width and height.
    """
    lengths = [size[place % 2] for place in range(len(values))]
    return [
        round(one * length / SIDE) * side / length
        for one, length in zip(values, lengths)
    ]


def remove_tags(reply: str) -> str:
    """The thinking of a reply, without its list of objects."""
    return re.sub(r"</?(think|answer)>", "", ANSWER.sub("", reply)).strip()
