"""The examples of docs/results/photo.md: question, photograph with numbered proposals, the choice and its masks.

    python -m bench.photo_examples IMAGES docs/images/photo

IMAGES: the folder of COCO's val2017 photographs.
"""

import argparse
from pathlib import Path

from PIL import Image, ImageDraw

from maskwise.builder.region_marks import draw_marks
from maskwise.masks import Mask
from maskwise.models.photo import EncodedPhoto, load
from maskwise.models.photo.model import PhotoQuestions
from maskwise.schema import Region

EXAMPLES = {
    "000000500663": "the cow on the left",
    "000000303818": "the whole bus, hidden parts included",
    "000000456496": "all the birds",
    "000000252219": "Which object would keep me dry in the rain?",
    "000000397133": "the person to the left of the oven",
    "000000565778": "the red suitcase",
}
"""Photographs under CC BY 2.0, by their COCO ids, and a question about each."""

HEIGHT = 300
LINE = 16
"""Heights of the panels and of a line of text, in pixels."""


def main() -> None:
    """Write one JPEG per example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    draw_examples(arguments.images, arguments.out)


def draw_examples(images: Path, out: Path) -> None:
    """Write one JPEG per example. images: the folder of COCO's val2017 photographs."""
    out.mkdir(parents=True, exist_ok=True)
    model = load(threads=1)
    for name, question in EXAMPLES.items():
        with Image.open(images / f"{name}.jpg") as file:
            photo = EncodedPhoto(file.convert("RGB"), model.networks, model.completion)
        (choice,) = model.chooser.choose(photo, [question])
        (prediction,) = PhotoQuestions(photo, model.chooser).answer([question])
        numbers = sorted(
            number + 1 for phrase in choice.phrases for number in phrase.regions
        )
        chosen = ", ".join(map(str, numbers)) or "none"
        lines = [
            f"Question: {question}",
            f"Chosen: {chosen} ({prediction.mask_type}). {choice.text}",
        ]
        print(name, *lines, f"{len(photo.proposals)} proposals", sep="; ")
        panels = [draw_proposals(photo), prediction.plot(photo.image)]
        add_lines(join(panels), lines).save(
            out / f"{int(name)}.jpg", quality=60, optimize=True
        )


def draw_proposals(photo: EncodedPhoto) -> Image.Image:
    """The image with all proposals outlined and numbered."""
    regions = {
        number: Region(
            id=str(number), name=str(number), visible=Mask.from_dense(one.inside)
        )
        for number, one in enumerate(photo.proposals, 1)
    }
    return draw_marks(photo.image, regions)


def join(panels: list[Image.Image]) -> Image.Image:
    """Images side by side, of one height."""
    scaled = [
        panel.resize((round(panel.width * HEIGHT / panel.height), HEIGHT))
        for panel in panels
    ]
    joined = Image.new("RGB", (sum(panel.width for panel in scaled), HEIGHT), "white")
    left = 0
    for panel in scaled:
        joined.paste(panel, (left, 0))
        left += panel.width
    return joined


def add_lines(image: Image.Image, lines: list[str]) -> Image.Image:
    """The image below lines of text."""
    band = LINE * len(lines) + 4
    framed = Image.new("RGB", (image.width, image.height + band), "white")
    framed.paste(image, (0, band))
    for row, line in enumerate(lines):
        ImageDraw.Draw(framed).text((4, 2 + row * LINE), line, fill="black")
    return framed


if __name__ == "__main__":
    main()
