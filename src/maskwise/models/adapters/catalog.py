"""What `maskwise adapters` prints: models that people already use, and how each is called."""

from typing import NamedTuple

VLM = "pip install 'maskwise[vlm]'"
OWN = "the model's own environment; nothing of maskwise in it"
RANDOM = "random weights of the same layout"
STAND_IN = "--echo and a stand-in with the classes and calls of the authors' code"


class Adapter(NamedTuple):
    """weights: where they are published; license: of the weights; checked: what the adapter was run with here."""

    title: str
    weights: str
    license: str
    install: str
    call: str
    checked: str


ADAPTERS = {
    "sam3": Adapter(
        "SAM 3: a noun phrase to the masks of all its instances; does not reason",
        "facebook/sam3 (gated)",
        "SAM License",
        VLM,
        "--model sam3 --model-option checkpoint=FOLDER",
        RANDOM,
    ),
    "visionreasoner": Adapter(
        "VisionReasoner: Qwen2.5-VL thinks and gives boxes and points, SAM 2 draws the masks",
        "Ricky06662/VisionReasoner-7B, facebook/sam2-hiera-large",
        "SAM 2 and the base Qwen2.5-VL-7B: Apache-2.0; of the fine-tuned weights see their page",
        VLM,
        "--model visionreasoner --model-option checkpoint=FOLDER --model-option segmenter=FOLDER",
        RANDOM,
    ),
    "sa2va": Adapter(
        "Sa2VA: Qwen-VL answers with [SEG] tokens, each of which prompts SAM 2",
        "ByteDance/Sa2VA-Qwen3-VL-4B, ByteDance/Sa2VA-Qwen2_5-VL-3B, ByteDance/Sa2VA-Qwen2_5-VL-7B",
        "4B: Apache-2.0; 3B: its base Qwen2.5-VL-3B is for research only; 7B: see its page",
        VLM,
        "--model sa2va --model-option checkpoint=FOLDER",
        f"{RANDOM}; the names of the weights were read in the authors' code, not in a published file",
    ),
    "lisa": Adapter(
        "LISA: LLaVA answers with a [SEG] token, which prompts SAM",
        "xinlai/LISA-* (pickles), Senqiao/LISA_Plus_7b",
        "none stated; derived from LLaMA",
        OWN,
        '--model "command: PYTHON examples/lisa_adapter.py --code FOLDER --checkpoint FOLDER"',
        STAND_IN,
    ),
    "m2sa": Adapter(
        "M2SA: LISA with early features and several [SEG] tokens",
        "none published",
        "none published",
        OWN,
        '--model "command: PYTHON examples/lisa_adapter.py --architecture m2sa --code FOLDER --checkpoint FOLDER"',
        STAND_IN,
    ),
}
