"""Images reach browsers in a format they show, exact where that is cheap."""

import io

import numpy as np
import pytest
from PIL import Image

from maskwise.errors import ImageError
from maskwise.server import image_uploads
from maskwise.server.browser_images import (
    THUMBNAIL_SIDE,
    content_type,
    encode_image,
    encode_thumbnail,
)
from maskwise.server.image_uploads import ImageUploads
from maskwise.server.responses import RequestRejectedError
from maskwise.store import Dataset
from maskwise.world import bundled

NOISE = Image.fromarray(
    np.random.default_rng(3).integers(0, 256, (40, 50, 3), np.uint8)
)


def encoded(image: Image.Image, format: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        ("PNG", "image/png"),
        ("JPEG", "image/jpeg"),
        ("GIF", "image/gif"),
        ("WEBP", "image/webp"),
        ("TIFF", None),
        ("BMP", None),
    ],
)
def test_what_browsers_show_is_known_by_its_first_bytes(
    format: str, kind: str | None
) -> None:
    assert content_type(encoded(NOISE, format)) == kind
    assert content_type(b"") is None


def test_small_images_are_exact_and_large_ones_nearly() -> None:
    data, kind = encode_image(NOISE)
    assert kind == "image/png"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), np.asarray(NOISE))
    smooth = NOISE.resize((400, 300), Image.Resampling.BICUBIC)
    data, kind = encode_image(smooth, lossless_pixels=1000)
    assert kind == "image/jpeg"
    shown = np.asarray(Image.open(io.BytesIO(data)), np.int16)
    assert np.abs(shown - np.asarray(smooth, np.int16)).mean() < 2


@pytest.mark.parametrize("size", [(2000, 500), (500, 2000), (20, 10)])
def test_thumbnails_are_small_and_leave_the_image_as_it_is(
    size: tuple[int, int],
) -> None:
    image = Image.new("RGB", size, "red")
    data, kind = encode_thumbnail(image)
    small = Image.open(io.BytesIO(data))
    assert kind == "image/jpeg"
    assert max(small.size) == min(THUMBNAIL_SIDE, max(size))
    assert image.size == size


# -- the memory for uploads


def test_the_same_image_is_stored_once() -> None:
    uploads = ImageUploads(max_pixels=10_000)
    data = encoded(NOISE, "PNG")
    first = uploads.add(data)
    assert uploads.add(data) == first
    assert (uploads.bytes, first.width, first.height) == (len(data), 50, 40)
    assert uploads.find(first.id) == (first, data)


def test_the_least_recently_used_image_is_forgotten_when_memory_is_full() -> None:
    images = [encoded(Image.new("RGB", (8, 6), (n, 0, 0)), "TIFF") for n in range(3)]
    uploads = ImageUploads(max_pixels=100, max_total_bytes=2 * len(images[0]))
    first, second = (uploads.add(data).id for data in images[:2])
    uploads.find(first)
    third = uploads.add(images[2]).id
    assert uploads.find(first)
    assert uploads.find(third)
    with pytest.raises(RequestRejectedError, match=r"upload it \(again\)") as caught:
        uploads.find(second)
    assert caught.value.status == 404
    assert uploads.bytes == 2 * len(images[0])


def test_an_image_larger_than_the_memory_is_kept_until_the_next() -> None:
    uploads = ImageUploads(max_pixels=10_000, max_total_bytes=10)
    stored = uploads.add(encoded(NOISE, "PNG"))
    assert uploads.find(stored.id)


def test_pixels_and_sides_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    uploads = ImageUploads(max_pixels=1999)
    with pytest.raises(RequestRejectedError, match="50 x 40 pixels"):
        uploads.add(encoded(NOISE, "PNG"))
    monkeypatch.setattr(image_uploads, "MAX_SIDE", 49)
    with pytest.raises(RequestRejectedError, match="49 per side"):
        ImageUploads(max_pixels=2000).add(encoded(NOISE, "PNG"))
    with pytest.raises(RequestRejectedError) as caught:
        uploads.add(b"no image")
    assert caught.value.status == 422
    assert not isinstance(caught.value, ImageError)


def test_examples_come_from_all_over_the_dataset_and_are_never_forgotten() -> None:
    data = Dataset.open(bundled())
    uploads = ImageUploads(max_pixels=100_000, max_total_bytes=10)
    uploads.add_examples(data, count=3)
    examples = uploads.examples
    assert len(examples) == 3
    assert all(len(example.questions) >= 2 for example in examples)
    uploads.add(encoded(NOISE, "PNG"))
    for example in examples:
        assert uploads.find(example.id)[0] == example
    assert uploads.bytes < 20_000, "examples do not count"
