"""The bundled model: a detector finds every object of an image once, a grounder selects the targets of each question.

    model = load()
    encoded = model.encode(image)                    # detector and RoI head, once per image
    encoded.ask("What could I drink from?")          # grounder only: one prediction
    model.predict(image, questions)                  # both: one prediction per question

Inference needs numpy and onnxruntime. In order of the data flow:

spec            categories, colors, sizes and thresholds, shared with training
preprocess      image to detector input
networks        the four ONNX networks: detector, RoI head, mask head, grounder
flip            optional: outputs averaged with those of the mirrored image
postprocess     heatmap peaks to boxes, RoI masks pasted into the image, NMS
detections      the objects of one image
features        unary and pairwise features of the detected objects
tokenizer       question to hashed tokens
grounding       which objects and parts a question means
object_names    names that tell objects apart
domain          is an image like those the model was trained on?
encoded_image   an image after the detector, ready for questions
model           the predictor
"""

from maskwise.models.tiny.encoded_image import EncodedImage
from maskwise.models.tiny.model import Tiny, load

__all__ = ["EncodedImage", "Tiny", "load"]
