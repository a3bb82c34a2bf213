"""Write MMR's JSON: images with questions, the targets of each, and answers with `{seg}` after each phrase."""

from pathlib import Path
from typing import Any

from maskwise.benchmarks.mmr import MMR, read
from maskwise.benchmarks.multi_target import TOKEN
from maskwise.formats.annotation_format import AnnotationFormat
from maskwise.formats.coco_export import to_segmentation, write_json
from maskwise.formats.exported_dataset import export_images, split_name, write_image
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.written_losses import Losses, requested_mask
from maskwise.schema import Answer, Sample
from maskwise.store import Dataset


def write(dataset: Dataset, folder: Path, *, with_images: bool) -> dict[str, int]:
    """Write `MMR_SPLIT.json` and the folder `images`."""
    losses = Losses("answers", "instances", "masks", "names")
    records: list[dict[str, Any]] = []
    for number, (file_name, exported) in enumerate(
        export_images(dataset, with_images=with_images)
    ):
        losses.note_image(exported)
        write_image(folder / "images" / file_name, exported.data)
        for sample in exported.samples:
            losses.note_sample(sample)
        records.append(
            {
                "file_name": file_name,
                "image_id": number,
                "height": exported.image.height,
                "width": exported.image.width,
                "questions": [sample.question for sample in exported.samples],
                "answers": [_to_targets(sample) for sample in exported.samples],
                "text_answers": [
                    _to_text(sample, losses) for sample in exported.samples
                ],
            }
        )
    write_json(folder / f"MMR_{split_name(dataset)}.json", records)
    return dict(losses.counts)


def _to_targets(sample: Sample) -> list[dict[str, Any]]:
    return [
        to_segmentation(requested_mask(sample, region)) | {"category_name": region.name}
        for region in sample.targets
    ]


def _to_text(sample: Sample, losses: Losses) -> str | None:
    """The answer with a token per target after the phrase that means it, in the order of the targets."""
    answer = sample.answer
    if answer is None:
        return None
    mentioned = [region for phrase in answer.phrases for region in phrase.regions]
    if mentioned != list(range(len(sample.targets))):
        # The token of a target is found by counting, so every target needs one, in order.
        losses.note("answers whose phrases do not name each target once, in order")
        return answer.text + "".join(f" {TOKEN}" for _ in sample.targets)
    losses.note("phrases, of which only the end is marked", len(answer.phrases))
    return _insert_tokens(answer)


def _insert_tokens(answer: Answer) -> str:
    parts = []
    end = 0
    for phrase in answer.phrases:
        parts.append(answer.text[end : phrase.stop])
        parts += [f" {TOKEN}"] * len(phrase.regions)
        end = phrase.stop
    return "".join([*parts, answer.text[end:]])


MMR_JSON = AnnotationFormat(
    name="mmr_json",
    title="MMR's JSON, to train with",
    layout=FileLayout(
        annotations=("MMR_{split}.json",), images=("images", *MMR.layout.images)
    ),
    read=read,
    write=write,
    lossy=True,
)
