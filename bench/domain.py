"""Error rates of the bundled model's out-of-domain detector: python bench/domain.py

Images of the world should be accepted, at any size and JPEG quality; photographs should be rejected. Photographs are
read from $MASKWISE_SHARED/data or ../shared/data; without them only false alarms are measured. With --fit the detector
is fitted again and written to the package.
"""

import argparse
import io
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from maskwise.images import open_image
from maskwise.models.tiny import load
from maskwise.models.tiny.domain import domain_features, read_domain
from maskwise.models.tiny.model import BUNDLED_WEIGHTS, DOMAIN_FILE
from maskwise.models.tiny.preprocess import resize_image, to_network_input
from maskwise.training.tiny.fit_domain import fit_domain, write_domain
from maskwise.world import make_scene

SHARED = Path(os.environ.get("MASKWISE_SHARED", Path(__file__).parents[2] / "shared"))
PHOTOS = ("coco128", "tiny_coco", "reasonseg_val", "ade20k", "cocoa")
SIZES = (96, 128, 160, 160, 160, 200, 256, 320, 480)
QUALITIES = (0, 0, 0, 95, 75, 50, 30)
"""Sizes and JPEG qualities (0: not compressed) of the images that the detector is fitted to, drawn at random."""

FALSE_ALARM_RATE = 0.01
TRAIN = {"default": (101, 1200), "easy": (111, 300)}
HELD_OUT = {"default": (102, 500), "easy": (112, 125)}
"""Seed and number of scenes, by preset."""

TESTS: dict[str, dict[str, int | str]] = {
    "world test, 96 px": {"seed": 199, "size": 96},
    "world test, 160 px": {"seed": 263},
    "world test, 320 px": {"seed": 423, "size": 320},
    "world test, 640 px": {"seed": 743, "size": 640},
    "world test, JPEG quality 95": {"seed": 995, "quality": 95},
    "world test, JPEG quality 75": {"seed": 975, "quality": 75},
    "world test, JPEG quality 50": {"seed": 950, "quality": 50},
    "world test, JPEG quality 30": {"seed": 930, "quality": 30},
    "world test, JPEG quality 10": {"seed": 910, "quality": 10},
    "world test, preset easy": {"seed": 301, "preset": "easy"},
}


def main() -> None:
    """Print a table of rejected images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--scenes", type=int, default=150, help="scenes per kind of world image"
    )
    parser.add_argument("--fit", action="store_true")
    given = parser.parse_args()
    path = BUNDLED_WEIGHTS / DOMAIN_FILE
    if given.fit:
        training = [
            _features(_varied(preset, *scenes, "train"))
            for preset, scenes in TRAIN.items()
        ]
        held_out = [
            _features(_varied(preset, *scenes, "val"))
            for preset, scenes in HELD_OUT.items()
        ]
        write_domain(
            fit_domain(training, np.concatenate(held_out), FALSE_ALARM_RATE), path
        )
    domain = read_domain(path)
    assert domain is not None
    images = {name: _world(given.scenes, **options) for name, options in TESTS.items()}  # type: ignore[arg-type]
    images |= {
        f"photographs, {name}": _photos(SHARED / "data" / name) for name in PHOTOS
    }
    print("| images | number | rejected |\n|---|--:|--:|")
    for name, found in images.items():
        distances = [domain.distance(features) for features in _features(found)]
        if distances:
            print(
                f"| {name} | {len(distances)} | {np.mean(np.array(distances) > domain.threshold):.1%} |"
            )


def _features(images: Iterator[Image.Image]) -> np.ndarray:
    networks = load().networks
    found = [
        domain_features(networks.detect(to_network_input(resize_image(image))))
        for image in images
    ]
    return np.array(found)


def _varied(preset: str, seed: int, count: int, split: str) -> Iterator[Image.Image]:
    random = np.random.default_rng(seed)
    for index in range(count):
        size = int(random.choice(SIZES))
        quality = int(random.choice(QUALITIES))
        shown = make_scene(seed, index, split, size, questions=0, preset=preset)
        yield _compress(Image.fromarray(shown.image), quality)


def _world(
    count: int, seed: int, size: int = 160, quality: int = 0, preset: str = "default"
) -> Iterator[Image.Image]:
    for index in range(count):
        shown = make_scene(seed, index, "test", size, questions=0, preset=preset)
        yield _compress(Image.fromarray(shown.image), quality)


def _photos(folder: Path) -> Iterator[Image.Image]:
    for path in sorted(
        path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg")
    ):
        yield open_image(path)


def _compress(image: Image.Image, quality: int) -> Image.Image:
    if not quality:
        return image
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(io.BytesIO(buffer.getvalue())).convert("RGB")


if __name__ == "__main__":
    main()
