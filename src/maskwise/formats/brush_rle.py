"""The run-length encoding of Label Studio's brush masks (the format of the JavaScript package @thi.ng/rle-pack).

The encoded data is the RGBA image of the mask in row-major order: four equal bytes per pixel, 0 outside and 255 inside.
It is a stream of bits, most significant first: 32 bits number of values; 5 bits word size - 1; four times 4 bits run
size - 1; then runs. A run is 1 bit (1: one repeated value, 0: single values), 2 bits index of the run size, that many
bits of length - 1, and the value (or values) in word-size bits. The stream is padded to whole bytes and stored as a
list of bytes. Only the fourth byte of a pixel (alpha) tells whether it is inside.
"""

import numpy as np

from maskwise.arrays import UInt8Array
from maskwise.errors import MaskError
from maskwise.formats.file_layout import Size
from maskwise.masks import Mask

CHANNELS = 4
WORD = 8
RUN_SIZES = (3, 4, 8, 16)
"""Bits of a run's length, as Label Studio writes them."""

HEADER = 32 + 5 + 4 * 4
INSIDE = 255


def encode_brush(mask: Mask) -> list[int]:
    """A mask as Label Studio's list of bytes."""
    height, width = mask.size
    pixels = mask.to_dense().ravel()
    edges = np.flatnonzero(pixels[1:] != pixels[:-1]) + 1
    starts = np.concatenate([[0], edges, [len(pixels)]])
    runs = np.diff(starts) * CHANNELS
    sizes = "".join(f"{size - 1:04b}" for size in RUN_SIZES)
    bits = [f"{height * width * CHANNELS:032b}{WORD - 1:05b}{sizes}"]
    for start, length in zip(starts.tolist(), runs.tolist()):
        bits.append(_encode_run(length, INSIDE if pixels[start] else 0))
    text = "".join(bits)
    text += "0" * (-len(text) % 8)
    return list(int(text, 2).to_bytes(len(text) // 8, "big"))


def _encode_run(length: int, value: int) -> str:
    """The bits of a run; a run that is too long for one code is divided."""
    longest = 1 << RUN_SIZES[-1]
    whole, rest = divmod(length, longest)
    bits = f"111{longest - 1:016b}{value:08b}" * whole
    if rest:
        index, size = next(
            (index, size) for index, size in enumerate(RUN_SIZES) if rest <= 1 << size
        )
        bits += f"1{index:02b}" + format(rest - 1, "b").zfill(size) + f"{value:08b}"
    return bits


def decode_brush(data: list[int], size: Size) -> Mask:
    """The mask of Label Studio's list of bytes for an image of height and width `size`."""
    if any(not 0 <= byte < 256 for byte in data):
        raise MaskError("a brush is a list of bytes, 0 to 255")
    raw = bytes(data)
    bits = "".join(f"{byte:08b}" for byte in raw)
    values = size[0] * size[1] * CHANNELS
    if len(bits) < HEADER or int(bits[:32], 2) != values:
        raise MaskError(
            f"a brush of another size; expected {values} values for height and width {size}"
        )
    word = int(bits[32:37], 2) + 1
    sizes = [int(bits[37 + 4 * index : 41 + 4 * index], 2) + 1 for index in range(4)]
    out = np.zeros(values, np.uint8)
    try:
        _decode_runs(bits, out, word, sizes=sizes)
    except ValueError:
        raise MaskError("a brush that ends too early") from None
    return Mask.from_dense(out.reshape(*size, CHANNELS)[:, :, 3] > 0)


def _decode_runs(bits: str, out: UInt8Array, word: int, *, sizes: list[int]) -> None:
    """Fill `out` run by run; ValueError if the bits end too early."""
    at = HEADER
    filled = 0
    while filled < len(out):
        repeated = bits[at : at + 1] == "1"
        width = sizes[int(bits[at + 1 : at + 3], 2)]
        at += 3
        length = int(bits[at : at + width], 2) + 1
        at += width
        count = 1 if repeated else length
        values = [
            int(bits[at + word * k : at + word * (k + 1)], 2) for k in range(count)
        ]
        at += word * count
        if at > len(bits):
            raise ValueError
        out[filled : filled + length] = np.minimum(values, INSIDE)[: len(out) - filled]
        filled += length
