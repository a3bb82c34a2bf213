"""Draw the image of the README: a photograph, the visible and the amodal mask of one object: `python -m docs.overview`.

Needs the weights of the model `photo` (docs/results/photo.md). The photograph, docs/images/kitchen.jpg, is
https://farm7.staticflickr.com/6116/6255196340_da26cf2c9e_z.jpg, of COCO val2017 (397133), under CC BY 2.0.
"""

from pathlib import Path

from PIL import Image

import maskwise as mw

IMAGES = Path(__file__).parent / "images"
PHOTOGRAPH = IMAGES / "kitchen.jpg"
QUESTIONS = (
    "the dining table",
    "the whole dining table, hidden part included",
)
GAP = 12
WIDTH = 1280
QUALITY = 80


def draw_overview(path: Path) -> None:
    """The photograph, the visible mask and the amodal mask, side by side, as a JPEG file."""
    with Image.open(PHOTOGRAPH) as file:
        photograph = file.convert("RGB")
    encoded = mw.load_model("photo").encode(photograph)
    panels = [photograph]
    for question in QUESTIONS:
        panels.append(encoded.ask(question).plot())
    sheet = side_by_side(panels)
    height = round(sheet.height * WIDTH / sheet.width)
    small = sheet.resize((WIDTH, height), Image.Resampling.LANCZOS)
    small.save(path, quality=QUALITY, optimize=True)


def side_by_side(panels: list[Image.Image]) -> Image.Image:
    """Panels from left to right, top edges level, on white."""
    width = sum(panel.width + GAP for panel in panels) - GAP
    sheet = Image.new("RGB", (width, max(panel.height for panel in panels)), "white")
    left = 0
    for panel in panels:
        sheet.paste(panel, (left, 0))
        left += panel.width + GAP
    return sheet


if __name__ == "__main__":
    draw_overview(IMAGES / "overview.jpg")
