"""Images open upright, whole and within bounds, or not at all."""

import io
import os
import struct
import subprocess
import sys
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
    pixels[:2, :3] = (255, 0, 0)
    pixels[:2, 3:] = (0, 255, 0)
    pixels[2:, :3] = (0, 0, 255)
    pixels[2:, 3:] = (255, 255, 255)
    return Image.fromarray(pixels).resize((48, 32), Image.Resampling.NEAREST)


def encode(image: Image.Image, form: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def smooth(height: int = 40, width: int = 60) -> Image.Image:
    down, right = np.mgrid[:height, :width]
    return Image.fromarray(
        np.stack([down * 6, right * 4, down + right], 2).astype(np.uint8)
    )


# What each orientation must look like when upright: the corner colors of the stored image, read clockwise from
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
    data = encode(
        corners(), form, exif=exif, **({"lossless": True} if form == "WEBP" else {})
    )
    image = open_image(data)
    size = (48, 32) if orientation < 5 else (32, 48)
    assert image.size == size
    assert image_size(data) == size
    colors = {
        "r": (255, 0, 0),
        "g": (0, 255, 0),
        "b": (0, 0, 255),
        "w": (255, 255, 255),
    }
    right = size[0] - 4
    bottom = size[1] - 4
    for spot, letter in zip(
        [(3, 3), (right, 3), (right, bottom), (3, bottom)], UPRIGHT[orientation]
    ):
        assert np.abs(np.subtract(image.getpixel(spot), colors[letter])).max() < 40


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_invalid_orientation_counts_as_upright(orientation: int) -> None:
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


def test_sixteen_bit_tiff_is_scaled() -> None:
    values = np.array([[0, 32768, 65535]], np.uint16)
    tiff = encode(Image.fromarray(values), "TIFF")
    assert np.asarray(open_image(tiff))[0, :, 0].tolist() == [0, 128, 255]


def test_floats_from_zero_to_one_span_black_to_white() -> None:
    values = np.array([[0.0, 0.5, 1.0, np.nan]], np.float32)
    assert np.asarray(open_image(encode(Image.fromarray(values), "TIFF")))[
        0, :, 0
    ].tolist() == [
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


def test_transparent_color_of_an_rgb_png_is_laid_over_white() -> None:
    image = Image.new("RGB", (2, 1), (1, 2, 3))
    image.putpixel((1, 0), (9, 9, 9))
    pixels = np.asarray(open_image(encode(image, "PNG", transparency=(1, 2, 3))))
    assert pixels[0].tolist() == [[255, 255, 255], [9, 9, 9]]


@pytest.mark.parametrize(
    ("mode", "form"),
    [("CMYK", "JPEG"), ("L", "JPEG"), ("1", "PNG"), ("P", "GIF"), ("YCbCr", "TIFF")],
)
def test_other_modes_become_rgb(mode: str, form: str) -> None:
    data = encode(Image.new("RGB", (16, 16), (255, 255, 255)).convert(mode), form)
    image = open_image(data)
    assert image.mode == "RGB"
    assert np.asarray(image).min() >= 250


def test_first_frame_of_an_animation() -> None:
    red = Image.new("RGB", (8, 8), "red")
    blue = Image.new("RGB", (8, 8), "blue")
    data = encode(red, "GIF", save_all=True, append_images=[blue])
    assert open_image(data).getpixel((4, 4)) == (255, 0, 0)


ENCODINGS = [
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("PNG", {}),
    ("GIF", {}),
    ("WEBP", {"lossless": True}),
    ("TIFF", {}),
    ("TIFF", {"compression": "tiff_lzw"}),
]


@pytest.mark.parametrize(("form", "options"), ENCODINGS)
def test_truncated_files_open_completely_or_not_at_all(
    form: str, options: dict[str, object]
) -> None:
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
    with pytest.raises(
        ImageError, match="9000 x 9000 pixels, more than the limit of 1000000"
    ):
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
    data = {
        form: encode(corners(), form, exif=exif) for form in ("JPEG", "PNG", "TIFF")
    }

    def decoded(*_: object) -> None:
        raise AssertionError("pixels were decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", decoded)
    assert {image_size(each) for each in data.values()} == {(32, 48)}


@pytest.mark.parametrize("form", ["EPS", "PDF", "JPEG2000", "BMP", "PPM", "ICO", "TGA"])
def test_other_formats_are_refused(form: str) -> None:
    with pytest.raises(
        ImageError,
        match="not an image in one of the formats GIF, JPEG, PNG, TIFF, WEBP",
    ):
        open_image(encode(smooth(), form))
    with pytest.raises(ImageError, match="cannot be read"):
        image_size(encode(smooth(), form))


# -- sources -----------------------------------------------------------------------------------------------------------


def test_pil_images_are_turned_and_converted(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encode(corners(), "JPEG", exif=exif)
    (tmp_path / "a.jpg").write_bytes(data)
    reference = np.asarray(open_image(data))
    with Image.open(tmp_path / "a.jpg") as opened:
        assert np.array_equal(np.asarray(open_image(opened)), reference)
    assert open_image(Image.new("RGBA", (3, 2), (0, 0, 0, 0))).getpixel((0, 0)) == (
        255,
        255,
        255,
    )
    assert open_image(corners()).mode == "RGB"


def test_arrays_are_images() -> None:
    pixels = np.asarray(smooth())
    assert np.array_equal(np.asarray(open_image(pixels)), pixels)
    assert np.array_equal(np.asarray(open_image(np.asfortranarray(pixels))), pixels)
    grey = pixels[..., 0]
    for array in (grey, grey[..., None]):
        assert np.array_equal(
            np.asarray(open_image(array)), np.repeat(grey[..., None], 3, 2)
        )
    clear = np.zeros((2, 3, 4), np.uint8)
    assert np.asarray(open_image(clear)).min() == 255


@pytest.mark.parametrize(
    "source",
    [
        None,
        3,
        [1, 2],
        object(),
        np.zeros((4, 4, 3)),
        np.zeros((3, 5, 6), np.uint8),
        np.zeros(5, np.uint8),
    ],
)
def test_objects_that_are_not_images_are_refused(source: object) -> None:
    with pytest.raises(ImageError, match="expected"):
        open_image(source)  # type: ignore[arg-type]


def test_limits_hold_for_every_source() -> None:
    with pytest.raises(
        ImageError, match="the array has 60 x 40 pixels, more than the limit of 100"
    ):
        open_image(np.asarray(smooth()), max_pixels=100)
    with pytest.raises(ImageError, match="the PIL image has 60 x 40 pixels"):
        open_image(smooth(), max_pixels=100)
    with pytest.raises(ImageError, match="no pixels"):
        open_image(np.zeros((0, 4, 3), np.uint8))


# -- bombs -------------------------------------------------------------------------------------------------------------


def test_no_side_may_be_longer_than_that_of_a_jpeg() -> None:
    assert open_image(encode(Image.new("1", (65_535, 2)), "PNG")).size == (65_535, 2)
    for size in ((65_536, 1), (1, 65_536)):
        with pytest.raises(ImageError, match="no side may exceed 65535"):
            open_image(encode(Image.new("1", size), "PNG"))


def chunk(kind: bytes, body: bytes) -> bytes:
    return (
        struct.pack(">I", len(body))
        + kind
        + body
        + struct.pack(">I", zlib.crc32(kind + body))
    )


@pytest.mark.parametrize(
    "inserted",
    [
        chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(80_000_000))),
        chunk(b"iTXt", b"a\0\1\0\0\0" + zlib.compress(bytes(80_000_000))),
        chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(80_000_000))),
        chunk(b"tEXt", b"a\0" + bytes(70_000_000)),
    ],
    ids=["zTXt", "iTXt", "iCCP", "tEXt"],
)
def test_oversized_png_chunks_are_refused(inserted: bytes) -> None:
    data = encode(smooth(), "PNG")
    for read in (open_image, image_size):
        with pytest.raises(ImageError, match=r"cannot be read: .*MAX_TEXT"):
            read(data[:33] + inserted + data[33:])


BOMBS = """
import io, resource, struct, sys, zlib
from PIL import Image
from maskwise.errors import ImageError
from maskwise.images import image_size, open_image
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000, used + 200_000_000))
for line in sys.stdin:
    data = bytes.fromhex(line)
    for read in (open_image, image_size):
        try:
            read(data)
        except ImageError as error:
            print(error)
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="limits the memory of a child with RLIMIT_AS"
)
def test_small_files_cannot_take_much_memory() -> None:
    """Each of these took a gigabyte or more, or would, if it was decoded."""
    jpeg2000 = encode(Image.new("L", (16, 16)), "JPEG2000", no_jp2=True)
    size = struct.pack(">II", 16, 16)
    bombs = [
        jpeg2000.replace(size, struct.pack(">II", 12_000, 12_000)),
        png_with_header(1, 50_000_000),
        png_with_header(50_000_000, 1),
        png_with_header(2**31 - 1, 1),
        encode(Image.new("1", (1, 3)), "TIFF").replace(
            struct.pack("<I", 3), struct.pack("<I", 2**31), 1
        ),
    ]
    run = subprocess.run(
        [sys.executable, "-c", BOMBS],
        input="\n".join(data.hex() for data in bombs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert (
        run.stdout.count("cannot be read") + run.stdout.count("no side may exceed") >= 5
    ), run.stdout


@given(st.binary(max_size=300))
def test_any_bytes_open_or_are_refused(data: bytes) -> None:
    for head in (
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0",
        b"GIF89a",
        b"II*\0",
        b"RIFF",
    ):
        try:
            open_image(head + data, max_pixels=10_000)
        except ImageError:
            continue


@given(st.data())
def test_changed_bytes_open_or_are_refused(data: st.DataObject) -> None:
    form, options = data.draw(st.sampled_from(ENCODINGS))
    damaged = bytearray(encode(smooth(8, 8), form, **options))
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(
            st.integers(0, 255)
        )
    try:
        image = open_image(bytes(damaged), max_pixels=10_000)
    except ImageError:
        return
    assert image.mode == "RGB"


# -- paths -------------------------------------------------------------------------------------------------------------


def test_paths_below_the_root_resolve(tmp_path: Path) -> None:
    assert resolve_inside(tmp_path, "a/b.jpg") == tmp_path.resolve() / "a" / "b.jpg"
    assert (
        resolve_inside(tmp_path, "a/..b/c..jpg")
        == tmp_path.resolve() / "a" / "..b" / "c..jpg"
    )


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


@pytest.mark.posix
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
