"""D2SA: amodal masks of supermarket goods, in the fields of COCOA-cls; `occlude_rate` is not needed."""

from maskwise.formats.annotation_format import AnnotationFormat, PublishedCount
from maskwise.formats.cocoa_cls import read
from maskwise.formats.file_layout import FileLayout

COUNTED = "counted from the files by third parties; together the 5,600 images and 28,720 objects of the D2SA paper"

D2SA = AnnotationFormat(
    name="d2sa",
    title="D2SA: visible and amodal masks of 60 kinds of supermarket goods",
    layout=FileLayout(
        annotations=(
            "d2s_amodal_annotations_v1/D2S_amodal_{split}.json",
            "annotations/D2S_amodal_{split}.json",
            "D2S_amodal_{split}.json",
        ),
        images=("d2s_amodal_images_v1/images", "images", "."),
        splits=("training_rot0", "augmented", "validation"),
        notes="D2S_amodal_test_info.json has no annotations and is not read.",
    ),
    read=read,
    published=(
        PublishedCount("training_rot0", "images", 438, COUNTED),
        PublishedCount("training_rot0", "regions", 690, COUNTED),
        PublishedCount("augmented", "images", 1_562, COUNTED),
        PublishedCount("augmented", "regions", 12_376, COUNTED),
        PublishedCount("validation", "images", 3_600, COUNTED),
        PublishedCount("validation", "regions", 15_654, COUNTED),
    ),
    facts={"license": "CC BY-NC-SA 4.0 (MVTec)", "download": "mvtec.com, MVTec D2S"},
)
