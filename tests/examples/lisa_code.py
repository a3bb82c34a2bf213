"""A stand-in for the code of LISA and MMR: the modules, classes and calls that examples/lisa_adapter.py uses.

The model says "It is [SEG]." and masks the left half of the image; M2SA masks both halves. Each question is a line of
`seen.txt`; so is each run of the image encoder.
"""

from pathlib import Path

MODEL = """
from pathlib import Path
import torch

SEEN = Path(__file__).parents[1] / "seen.txt"

def note(text):
    with SEEN.open("a") as file:
        file.write(text + "\\n")

class Tower:
    def to(self, **options):
        return self

class Inner:
    config = None
    def initialize_vision_modules(self, config):
        pass
    def get_vision_tower(self):
        return Tower()

class StandIn:
    segments = 1
    class config:
        vision_tower = "clip"
    @classmethod
    def from_pretrained(cls, checkpoint, low_cpu_mem_usage, vision_tower, seg_token_idx, torch_dtype):
        assert (checkpoint, seg_token_idx) == ("tiny", 7)
        return cls()
    def get_model(self):
        return Inner()
    def to(self, device, dtype):
        return self
    def eval(self):
        return self
    def get_visual_embs(self, images):
        assert images.shape == (1, 3, 1024, 1024)
        note("encoded")
        return torch.zeros(1, 256, 64, 64)
    def evaluate(self, clip, images, tokens, resized, sizes, max_new_tokens, tokenizer):
        self.get_visual_embs(images)
        note(tokenizer.asked)
        height, width = sizes[0]
        masks = -torch.ones(self.segments, height, width)
        for number in range(self.segments):
            masks[number, :, number * width // 2 : (number + 1) * width // 2] = 1
        return torch.cat([tokens, tokens], 1), [masks]

class LISAForCausalLM(StandIn):
    pass

class M2SAForCausalLM(StandIn):
    segments = 2
"""

FILES = {
    "model/__init__.py": "",
    "model/LISA.py": MODEL,
    "model/M2SA.py": MODEL,
    "model/llava/__init__.py": "",
    "model/llava/conversation.py": """
class Talk:
    roles = ("USER", "ASSISTANT")
    messages = []
    def copy(self):
        return Talk()
    def append_message(self, role, text):
        self.messages.append(role + ": " + text)
    def get_prompt(self):
        return " ".join(self.messages)

conv_templates = {"llava_v1": Talk()}
""",
    "model/llava/mm_utils.py": """
import torch

def tokenizer_image_token(prompt, tokenizer, return_tensors):
    tokenizer.asked = prompt.replace("\\n", " ")
    return torch.zeros(3, dtype=torch.long)
""",
    "model/segment_anything/__init__.py": "",
    "model/segment_anything/utils/__init__.py": "",
    "model/segment_anything/utils/transforms.py": """
class ResizeLongestSide:
    def __init__(self, side):
        pass
    def apply_image(self, pixels):
        return pixels
""",
    "utils/__init__.py": "",
    "utils/utils.py": (
        'DEFAULT_IM_START_TOKEN, DEFAULT_IMAGE_TOKEN, DEFAULT_IM_END_TOKEN = "<im_start>", "<image>", "<im_end>"'
    ),
    "transformers.py": """
import torch

class AutoTokenizer:
    unk_token, eos_token_id, bos_token_id, pad_token_id = "<unk>", 2, 1, 0
    @classmethod
    def from_pretrained(cls, checkpoint, **options):
        return cls()
    def __call__(self, text, add_special_tokens):
        assert text == "[SEG]"
        return type("Ids", (), {"input_ids": [7]})
    def decode(self, ids, skip_special_tokens):
        return "It is [SEG]."

class CLIPImageProcessor:
    @classmethod
    def from_pretrained(cls, name):
        return cls()
    def preprocess(self, pixels, return_tensors):
        return {"pixel_values": torch.zeros(1, 3, 224, 224)}
""",
}


def write_code(folder: Path) -> Path:
    """Write the stand-in into a folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
