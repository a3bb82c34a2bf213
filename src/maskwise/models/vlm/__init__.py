"""A vision-language model with visible and amodal mask decoders: AURA, R2SM and M2SA in one (extra `vlm`).

In order of the data flow; docs/results/vlm.md maps the sections of the papers to these files:

config          the settings: which networks are joined, losses, sizes
pretrained      models of a folder or of the hub, as safetensors
tokens          segmentation tokens in answers
processor       texts and images to tensors
batch           a batch of images with questions
vision_language Qwen-VL or LLaVA: images and texts to hidden states
segmenter       SAM, SAM 2 or SAM 3: images to features, prompts to masks
early_features  features of an early encoder block, for parts (M2SA)
projector       hidden state of a token to a prompt
occlusion_head  occlusion rate, and the prompt of the amodal decoder (AURA)
mask_type_head  which of the two tokens the words of a question ask for
mask_decoders   the visible and the amodal decoder
losses          text, mask, occlusion and dense losses
model           all of it in one forward
initialization  random weights for small widths
build           model and processor from a config
folder          a model in a folder; both networks are folders of transformers
adapters        LoRA adapters in a folder, not merged
generation      answers to questions, with masks
predictor       the model in `maskwise eval`, `ask` and `serve`
"""

from importlib.util import find_spec

from maskwise.errors import MissingDependencyError

if find_spec("transformers") is None:
    raise MissingDependencyError("the model vlm", "transformers", extra="vlm")
