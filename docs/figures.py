"""All images of the documents, made anew in one command: `make figures-docs`.

    python -m docs.figures [--out FOLDER] [--photographs FOLDER] [--only NAME ...]

Screenshots need chromium. The image of the README and the examples of `photo` need the weights of that model
(docs/results/photo.md), the examples also COCO's val2017 photographs, `--photographs`; without them these images stay
as they are, and the command says so. `--only` names what to make.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.photo_examples import draw_examples
from docs.overview import draw_overview
from docs.screenshots import draw_probes, draw_report, draw_screenshots
from maskwise.downloads.local_files import find_weights
from maskwise.errors import DownloadError

IMAGES = Path(__file__).parent / "images"
WEIGHTS = (
    "mobile_sam_encoder.onnx",
    "mobile_sam_decoder.onnx",
    "yolox_nano.onnx",
    "u2netp.onnx",
)
"""What the model `photo` needs."""


@dataclass(frozen=True)
class Figure:
    """draw: makes the images below a folder. needs_weights: those of `photo`. needs_photographs: those of COCO."""

    draw: Callable[[Path], None]
    needs_weights: bool = False
    needs_photographs: bool = False


def list_figures(photographs: Path | None) -> dict[str, Figure]:
    """By name, what makes the images of the documents. `report` is the quickest, and a part of `web`."""

    def draw_photo_examples(out: Path) -> None:
        assert photographs is not None
        draw_examples(photographs, out / "photo")

    return {
        "overview": Figure(
            lambda out: draw_overview(out / "overview.jpg"), needs_weights=True
        ),
        "report": Figure(lambda out: draw_report(out / "web")),
        "web": Figure(lambda out: draw_screenshots(out / "web")),
        "probes": Figure(lambda out: draw_probes(out / "probes")),
        "photo": Figure(
            draw_photo_examples, needs_weights=True, needs_photographs=True
        ),
    }


def main() -> None:
    """Make the images, and name those that could not be made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=IMAGES)
    parser.add_argument("--photographs", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(list_figures(None)))
    arguments = parser.parse_args()
    for name, figure in list_figures(arguments.photographs).items():
        if name not in (arguments.only or [name]):
            continue
        reason = missing(figure, arguments.photographs)
        if reason:
            print(f"{name}: left as it is; {reason}")
            continue
        arguments.out.mkdir(parents=True, exist_ok=True)
        figure.draw(arguments.out)
        print(f"{name}: made", flush=True)


def missing(figure: Figure, photographs: Path | None) -> str:
    """Why a figure cannot be made; empty if it can."""
    if figure.needs_photographs and photographs is None:
        return "it needs --photographs FOLDER"
    if figure.needs_weights:
        try:
            for name in WEIGHTS:
                find_weights(name)
        except DownloadError as error:
            return str(error)
    return ""


if __name__ == "__main__":
    main()
