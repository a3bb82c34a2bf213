"""The model for photographs: proposals, a chooser, a visible mask and an amodal one; each stage can be replaced.

    model = load()                                   # chooser="match"; or "vlm:anthropic/MODEL", "vlm:openai/MODEL"
    encoded = model.encode(image)                    # MobileSAM and the detector, once per image
    encoded.answer(["the red cup on the left"])      # one prediction per question

Inference needs numpy and onnxruntime, and pretrained weights that `maskwise get` downloads. In order of the data flow:

weights         the pretrained networks, opened
box             a rectangle of an image
sam             MobileSAM: image to embedding, prompt to mask
detector        YOLOX: boxes of the 80 COCO categories
saliency        what stands out
proposals       masks of whatever can be found in an image
encoded_photo   an image with its embedding and proposals; visible and amodal masks on demand
clip            CLIP: images and texts as vectors; clip_tokenizer makes tokens of texts
open_labels     proposals labelled with any words, an optional stage
choice          the interface of choosers
match           the offline chooser; vocabulary, relations and colors are what it knows
question        what a question asks for; remarks, clause, nouns and modifiers are its steps
vlm             the chooser that asks a vision-language model
morphology      masks grown, and depths in them
window          the part of an image that the completion network sees
completion      amodal masks
model           the predictor
click_refiner   a mask from clicks, for the review page
"""

from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.model import Photo, load

__all__ = ["EncodedPhoto", "Photo", "load"]
