"""A LISA checkpoint as a maskwise model: reads requests as JSON lines, writes one response per line.

    maskwise eval reasonseg_val --out runs/lisa --model \
        "command: /envs/lisa/bin/python examples/lisa_adapter.py --code /src/LISA --checkpoint xinlai/LISA-7B-v1"

It runs in LISA's own environment (torch, transformers, pillow) with LISA's code (github.com/dvlab-research/LISA) and
does not need maskwise. `--architecture m2sa` runs M2SA with the code of MMR (github.com/jdg900/MMR), which is called in
the same way. For PixelLM, GSVA and similar models only the class `Lisa` changes. docs/guides/adapters.md describes
requests and responses. `--echo` answers every question with the whole image and loads nothing, to test the exchange:

    maskwise eval world --limit 5 --out runs/echo --model "command: python examples/lisa_adapter.py --echo"
"""

from __future__ import annotations

import argparse
import base64
import importlib
import io
import json
import os
import sys
import traceback

from PIL import Image

QUESTION = "{question} Please output segmentation mask."
PIXEL_MEAN = (123.675, 116.28, 103.53)
PIXEL_STD = (58.395, 57.12, 57.375)
SIDE = 1024
CLASSES = {
    "lisa": ("model.LISA", "LISAForCausalLM"),
    "m2sa": ("model.M2SA", "M2SAForCausalLM"),
}


class Lisa:
    """A checkpoint, loaded by the first request: maskwise waits longer for the first response."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.loaded = False

    def predict(self, image: Image.Image, questions: list[str]) -> list[dict]:
        """One prediction per question; both encoders process the image once for all of them."""
        import numpy as np  # noqa: PLC0415
        import torch  # noqa: PLC0415

        if not self.loaded:
            self.load()
        pixels = np.asarray(image)
        resized = self.resize.apply_image(pixels)
        with torch.inference_mode():
            clip = self.clip.preprocess(pixels, return_tensors="pt")["pixel_values"].to(
                self.device, self.dtype
            )
            embedding = self.encode(self.prepare(resized))
            # LISA would encode the image again for every question; it gets the embedding instead.
            self.model.get_visual_embs = lambda images: embedding
            return [
                self.answer(question, clip, resized.shape[:2], pixels.shape[:2])
                for question in questions
            ]

    def answer(
        self, question: str, clip, resized: tuple[int, int], size: tuple[int, int]
    ) -> dict:
        """Generate freely, then take the masks of all [SEG] tokens."""
        talk = self.conversations.conv_templates[self.options.conversation].copy()
        talk.messages = []
        image = (
            self.words.DEFAULT_IM_START_TOKEN
            + self.words.DEFAULT_IMAGE_TOKEN
            + self.words.DEFAULT_IM_END_TOKEN
        )
        talk.append_message(
            talk.roles[0], image + "\n" + QUESTION.format(question=question)
        )
        talk.append_message(talk.roles[1], "")
        tokens = (
            self.to_tokens(talk.get_prompt(), self.tokenizer, return_tensors="pt")
            .unsqueeze(0)
            .to(self.device)
        )
        # Only its shape is used: the embedding exists already.
        blank = tokens.new_zeros((1, 3, SIDE, SIDE), dtype=self.dtype)
        said, masks = self.model.evaluate(
            clip,
            blank,
            tokens,
            [resized],
            [size],
            max_new_tokens=512,
            tokenizer=self.tokenizer,
        )
        text = self.tokenizer.decode(
            said[0, tokens.shape[1] :], skip_special_tokens=True
        )
        inside = (masks[0] > 0).cpu().numpy()
        regions = [{self.options.mask_type: mask_to_rle(mask)} for mask in inside]
        return {
            "answer": {"text": " ".join(text.replace("[SEG]", "").split())},
            "regions": regions,
        }

    def load(self) -> None:
        """Tokenizer, language model, CLIP and SAM, assembled as in LISA's chat.py."""
        sys.path.insert(0, self.options.code)
        import torch  # noqa: PLC0415
        from model.llava import conversation  # noqa: PLC0415
        from model.llava.mm_utils import tokenizer_image_token  # noqa: PLC0415
        from model.segment_anything.utils.transforms import ResizeLongestSide  # noqa: PLC0415
        from transformers import AutoTokenizer, CLIPImageProcessor  # noqa: PLC0415
        from utils import utils  # noqa: PLC0415

        self.device = torch.device(self.options.device)
        self.dtype = torch.bfloat16
        self.words = utils
        self.conversations = conversation
        self.to_tokens = tokenizer_image_token
        self.tokenizer = AutoTokenizer.from_pretrained(
            self.options.checkpoint,
            model_max_length=2048,
            padding_side="right",
            use_fast=False,
        )
        self.tokenizer.pad_token = self.tokenizer.unk_token
        module, name = CLASSES[self.options.architecture]
        self.model = getattr(importlib.import_module(module), name).from_pretrained(
            self.options.checkpoint,
            low_cpu_mem_usage=True,
            vision_tower=self.options.vision_tower,
            seg_token_idx=self.tokenizer("[SEG]", add_special_tokens=False).input_ids[
                0
            ],
            torch_dtype=self.dtype,
        )
        for name in ("eos_token_id", "bos_token_id", "pad_token_id"):
            setattr(self.model.config, name, getattr(self.tokenizer, name))
        self.model.get_model().initialize_vision_modules(self.model.get_model().config)
        self.model.get_model().get_vision_tower().to(
            device=self.device, dtype=self.dtype
        )
        self.model = self.model.to(self.device, self.dtype).eval()
        self.encode = self.model.get_visual_embs
        self.clip = CLIPImageProcessor.from_pretrained(self.model.config.vision_tower)
        self.resize = ResizeLongestSide(SIDE)
        self.loaded = True

    def prepare(self, resized):
        """Pixels (height, width, 3) as input of SAM: normalised, padded to a square on the right and at the bottom."""
        import torch  # noqa: PLC0415

        mean, std = (
            torch.tensor(values).view(-1, 1, 1) for values in (PIXEL_MEAN, PIXEL_STD)
        )
        planes = (torch.from_numpy(resized).permute(2, 0, 1).float() - mean) / std
        missing = (0, SIDE - planes.shape[2], 0, SIDE - planes.shape[1])
        return (
            torch.nn.functional.pad(planes, missing)
            .unsqueeze(0)
            .to(self.device, self.dtype)
        )


class Echo:
    """Answers with the whole image."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.mask_type = options.mask_type

    def predict(self, image: Image.Image, questions: list[str]) -> list[dict]:
        """One prediction per question."""
        mask = {
            "size": [image.height, image.width],
            "counts": runs_to_counts([0, image.height * image.width]),
        }
        return [
            {"answer": {"text": question}, "regions": [{self.mask_type: mask}]}
            for question in questions
        ]


def mask_to_rle(mask) -> dict:
    """A bool array (height, width) as COCO run lengths: column by column, background first."""
    import numpy as np  # noqa: PLC0415

    flat = np.concatenate([[False], mask.T.ravel()])
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    runs = np.diff([0, *edges, mask.size])
    return {"size": list(mask.shape), "counts": runs_to_counts(runs.tolist())}


def runs_to_counts(runs: list[int]) -> str:
    """Run lengths as COCO's text: from the fourth on the difference to the one two before, five bits per character."""
    signs = []
    for place, run in enumerate(runs):
        value = run - runs[place - 2] if place > 2 else run
        more = True
        while more:
            low = value & 31
            value = value >> 5
            more = value != (-1 if low & 16 else 0)
            signs.append(chr(48 + low + (32 if more else 0)))
    return "".join(signs)


def open_image(sent: dict) -> Image.Image:
    """The image of a request: raw pixels, a file, or the bytes of a PNG."""
    if "rgb" in sent:
        height, width = sent["size"]
        return Image.frombytes("RGB", (width, height), base64.b64decode(sent["rgb"]))
    source = (
        sent["path"] if "path" in sent else io.BytesIO(base64.b64decode(sent["png"]))
    )
    with Image.open(source) as image:
        return image.convert("RGB")


def answer(model: Lisa | Echo, line: str) -> dict:
    """The response to a request; a failure becomes its error, and the next request is processed."""
    request = json.loads(line)
    try:
        predictions = model.predict(open_image(request["image"]), request["questions"])
        return {"id": request["id"], "predictions": predictions}
    except Exception as error:
        traceback.print_exc()
        return {"id": request["id"], "error": f"{type(error).__name__}: {error}"}


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description="A LISA checkpoint that answers JSON lines."
    )
    parser.add_argument("--architecture", default="lisa", choices=[*CLASSES])
    parser.add_argument("--checkpoint", default="xinlai/LISA-7B-v1")
    parser.add_argument(
        "--code", default=".", help="the folder of LISA's or MMR's code"
    )
    parser.add_argument("--vision-tower", default="openai/clip-vit-large-patch14")
    parser.add_argument(
        "--conversation", default="llava_v1", choices=["llava_v1", "llava_llama_2"]
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--mask-type",
        default="visible",
        choices=["visible", "amodal"],
        help="what it was trained on",
    )
    parser.add_argument(
        "--echo", action="store_true", help="answer with the whole image, load nothing"
    )
    return parser.parse_args()


def main() -> None:
    """Respond until standard input ends."""
    options = parse_arguments()
    # Standard output is for responses only: whatever libraries print goes to standard error.
    responses = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    print(json.dumps({"accepts": ["rgb"]}), file=responses, flush=True)
    model = Echo(options) if options.echo else Lisa(options)
    for line in sys.stdin:
        print(json.dumps(answer(model, line)), file=responses, flush=True)


if __name__ == "__main__":
    main()
