"""Images open upright, whole and within bounds, or not at all."""

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from maskwise.errors import ImageError
from maskwise.images import check_relative, image_size, open_image, resolve_inside

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL")
"""Pillow remarks on damaged EXIF; these tests damage it on purpose."""


def corners() -> Image.Image:
    """Six by four, red top left, green top right, blue bottom left, white bottom right."""
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[:2, :3], pixels[:2, 3:], pixels[2:, :3], pixels[2:, 3:] = (
        (255, 0, 0),
        (0, 255, 0),
        (0, 0, 255),
        (255, 255, 255),
    )
    return Image.fromarray(pixels).resize((48, 32), Image.Resampling.NEAREST)


def encode(image: Image.Image, form: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def smooth(height: int = 40, width: int = 60) -> Image.Image:
    down, right = np.mgrid[:height, :width]
    return Image.fromarray(np.stack([down * 6, right * 4, down + right], 2).astype(np.uint8))


# What each orientation must look like when upright: the corner colours of the stored image, read clockwise from
# the top left, are red, green, white, blue; EXIF says where stored row 0 and column 0 belong.
UPRIGHT = {
    1: "rgwb",
    2: "grbw",
    3: "wbrg",
    4: "bwgr",
    5: "rbwg",
    6: "brgw",
    7: "wgrb",
    8: "gwbr",
}


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_every_orientation_is_turned_upright(form: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encode(corners(), form, exif=exif, **({"lossless": True} if form == "WEBP" else {}))
    image = open_image(data)
    size = (48, 32) if orientation < 5 else (32, 48)
    assert image.size == size
    assert image_size(data) == size
    colours = {"r": (255, 0, 0), "g": (0, 255, 0), "b": (0, 0, 255), "w": (255, 255, 255)}
    right, bottom = size[0] - 4, size[1] - 4
    for spot, letter in zip([(3, 3), (right, 3), (right, bottom), (3, bottom)], UPRIGHT[orientation]):
        assert np.abs(np.subtract(image.getpixel(spot), colours[letter])).max() < 40


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_senseless_orientation_counts_as_upright(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encode(corners(), "JPEG", exif=exif)
    assert open_image(data).size == image_size(data) == (48, 32)


def test_orientation_agrees_with_pillow_on_a_jpeg() -> None:
    exif = Image.Exif()
    exif[0x0112] = 7
    data = encode(smooth(), "JPEG", exif=exif)
    reference = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    assert np.array_equal(np.asarray(open_image(data)), np.asarray(reference))


def test_sixteen_bits_are_scaled_not_clipped() -> None:
    values = np.array([[0, 257, 32768, 65535]], np.uint16)
    grey = np.asarray(open_image(encode(Image.fromarray(values), "PNG")))
    assert grey[0].tolist() == [[0, 0, 0], [1, 1, 1], [128, 128, 128], [255, 255, 255]]


def test_sixteen_bit_tiff_and_pgm_are_scaled() -> None:
    values = np.array([[0, 32768, 65535]], np.uint16)
    tiff = encode(Image.fromarray(values), "TIFF")
    pgm = b"P5 3 1 65535\n" + values.astype(">u2").tobytes()
    for data in (tiff, pgm):
        assert np.asarray(open_image(data))[0, :, 0].tolist() == [0, 128, 255]


def test_floats_from_zero_to_one_span_black_to_white() -> None:
    values = np.array([[0.0, 0.5, 1.0, np.nan]], np.float32)
    assert np.asarray(open_image(encode(Image.fromarray(values), "TIFF")))[0, :, 0].tolist() == [
        0,
        128,
        255,
        0,
    ]


def test_palette_transparency_is_laid_over_white() -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putpixel((1, 0), 1)
    pixels = np.asarray(open_image(encode(image, "PNG", transparency=1)))
    assert pixels[0].tolist() == [[10, 20, 30], [255, 255, 255]]


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_alpha_is_laid_over_white(mode: str) -> None:
    black = (0,) * (len(mode) - 1)
    image = Image.new(mode, (3, 1))
    for x, alpha in enumerate((0, 51, 255)):
        image.putpixel((x, 0), (*black, alpha))
    pixels = np.asarray(open_image(encode(image, "PNG")))
    assert pixels[0].tolist() == [[255] * 3, [204] * 3, [0] * 3]


def test_transparent_colour_of_an_rgb_png_is_laid_over_white() -> None:
    image = Image.new("RGB", (2, 1), (1, 2, 3))
    image.putpixel((1, 0), (9, 9, 9))
    pixels = np.asarray(open_image(encode(image, "PNG", transparency=(1, 2, 3))))
    assert pixels[0].tolist() == [[255, 255, 255], [9, 9, 9]]


@pytest.mark.parametrize(
    ("mode", "form"), [("CMYK", "JPEG"), ("L", "JPEG"), ("1", "PNG"), ("P", "GIF"), ("YCbCr", "TIFF")]
)
def test_other_modes_become_rgb(mode: str, form: str) -> None:
    data = encode(Image.new("RGB", (16, 16), (255, 255, 255)).convert(mode), form)
    image = open_image(data)
    assert image.mode == "RGB"
    assert np.asarray(image).min() >= 250


def test_first_frame_of_an_animation() -> None:
    red, blue = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    data = encode(red, "GIF", save_all=True, append_images=[blue])
    assert open_image(data).getpixel((4, 4)) == (255, 0, 0)


ENCODINGS = [
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("PNG", {}),
    ("GIF", {}),
    ("BMP", {}),
    ("WEBP", {"lossless": True}),
    ("TIFF", {}),
    ("TIFF", {"compression": "tiff_lzw"}),
    ("PPM", {}),
]


@pytest.mark.parametrize(("form", "options"), ENCODINGS)
def test_truncated_anywhere_it_opens_whole_or_not_at_all(form: str, options: dict[str, object]) -> None:
    data = encode(smooth(), form, **options)
    whole = np.asarray(open_image(data))
    for stop in range(0, len(data), max(1, len(data) // 200)):
        try:
            part = open_image(data[:stop])
        except ImageError:
            continue
        assert stop > len(data) - 200
        assert np.array_equal(np.asarray(part), whole)


def test_truncated_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "half.jpg"
    data = encode(smooth(400, 600), "JPEG")
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ImageError, match=r"half\.jpg cannot be read: .*truncated"):
        open_image(path)


def test_missing_and_empty_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"absent\.png does not exist"):
        open_image(tmp_path / "absent.png")
    (tmp_path / "empty.png").touch()
    with pytest.raises(ImageError, match=r"empty\.png cannot be read"):
        open_image(tmp_path / "empty.png")
    with pytest.raises(ImageError, match="cannot be read"):
        open_image(tmp_path)


def png_with_header(width: int, height: int) -> bytes:
    """A tiny file that claims to be large: the pixels behind it are a few bytes."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 99))
        + chunk(b"IEND", b"")
    )


def test_a_bomb_is_refused_from_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    def decoded(*_: object) -> None:
        raise AssertionError("pixels were decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", decoded)
    with pytest.raises(ImageError, match="9000 x 9000 pixels, more than the limit of 1000000"):
        open_image(png_with_header(9000, 9000), max_pixels=1_000_000)
    with pytest.raises(ImageError, match="cannot be read"):
        open_image(png_with_header(2**30, 2**30))


def test_the_limit_counts_inclusively() -> None:
    data = encode(smooth(40, 60), "PNG")
    assert open_image(data, max_pixels=2400).size == (60, 40)
    with pytest.raises(ImageError, match="limit of 2399"):
        open_image(data, max_pixels=2399)


def test_size_is_read_without_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = {form: encode(corners(), form, exif=exif) for form in ("JPEG", "PNG", "TIFF")}

    def decoded(*_: object) -> None:
        raise AssertionError("pixels were decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", decoded)
    assert {image_size(each) for each in data.values()} == {(32, 48)}


def test_formats_that_start_programs_are_refused() -> None:
    with pytest.raises(ImageError, match="cannot be read"):
        open_image(encode(smooth(), "EPS"))
    with pytest.raises(ImageError, match="cannot be read"):
        open_image(encode(smooth(), "PDF"))


@given(st.binary(max_size=300))
def test_any_bytes_open_or_are_refused(data: bytes) -> None:
    for head in (b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"II*\0", b"RIFF", b"BM", b"P6 "):
        try:
            open_image(head + data, max_pixels=10_000)
        except ImageError:
            continue


@given(st.data())
def test_changed_bytes_open_or_are_refused(data: st.DataObject) -> None:
    form, options = data.draw(st.sampled_from(ENCODINGS))
    damaged = bytearray(encode(smooth(8, 8), form, **options))
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        image = open_image(bytes(damaged), max_pixels=10_000)
    except ImageError:
        return
    assert image.mode == "RGB"


# -- paths -------------------------------------------------------------------------------------------------------------


def test_paths_below_the_root_resolve(tmp_path: Path) -> None:
    assert resolve_inside(tmp_path, "a/b.jpg") == tmp_path.resolve() / "a" / "b.jpg"
    assert resolve_inside(tmp_path, "a/..b/c..jpg") == tmp_path.resolve() / "a" / "..b" / "c..jpg"


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "/etc/passwd",
        "../x.jpg",
        "a/../../x.jpg",
        "a/../b.jpg",
        "C:/x.jpg",
        "C:x.jpg",
        "a\\b.jpg",
        "x\0.jpg",
    ],
)
def test_paths_that_may_leave_the_root_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ImageError, match="must be relative"):
        resolve_inside(tmp_path, path)
    with pytest.raises(ImageError):
        check_relative(path)


def test_links_out_of_the_root_are_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret.png").write_bytes(encode(smooth(), "PNG"))
    os.symlink(tmp_path / "secret.png", tmp_path / "root" / "file.png")
    os.symlink(tmp_path, tmp_path / "root" / "folder")
    os.symlink("inside.png", tmp_path / "root" / "fine.png")
    for path in ("file.png", "folder/secret.png"):
        with pytest.raises(ImageError, match="link out of"):
            resolve_inside(tmp_path / "root", path)
    assert resolve_inside(tmp_path / "root", "fine.png").name == "inside.png"
