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
"""Red, green, blue and alpha."""

WORD = 8
"""Bits of a value."""

RUN_SIZES = (3, 4, 8, 16)
"""Bits of a run's length, as Label Studio writes them."""

HEADER = 32 + 5 + 4 * 4
"""Bits before the first run: number of values, word size, four run sizes."""

INSIDE = 255


def encode_brush(mask: Mask) -> list[int]:
    """A mask as Label Studio's list of bytes."""
    height, width = mask.size
    pixels = mask.to_dense().ravel()
    changes = pixels[1:] != pixels[:-1]
    edges = np.flatnonzero(changes) + 1
    bounds = np.concatenate([[0], edges, [len(pixels)]])
    lengths = np.diff(bounds) * CHANNELS
    value_count = height * width * CHANNELS
    run_sizes = "".join(f"{size - 1:04b}" for size in RUN_SIZES)
    codes = [f"{value_count:032b}{WORD - 1:05b}{run_sizes}"]
    for start, length in zip(bounds.tolist(), lengths.tolist()):
        value = INSIDE if pixels[start] else 0
        codes.append(_encode_run(length, value))
    bits = "".join(codes)
    padding = -len(bits) % 8
    bits += "0" * padding
    byte_count = len(bits) // 8
    data = int(bits, 2).to_bytes(byte_count, "big")
    return list(data)


def _encode_run(length: int, value: int) -> str:
    """The bits of a run; a run that is too long for one code is divided."""
    value_bits = f"{value:08b}"
    longest = 1 << RUN_SIZES[-1]
    longest_count, rest = divmod(length, longest)
    # 1: repeated value; 11: the last run size.
    longest_code = f"111{longest - 1:016b}{value_bits}"
    bits = longest_code * longest_count
    if not rest:
        return bits
    for index, size in enumerate(RUN_SIZES):
        if rest <= 1 << size:
            length_bits = format(rest - 1, "b").zfill(size)
            return bits + f"1{index:02b}{length_bits}{value_bits}"
    raise AssertionError("a rest is shorter than the longest run")


def decode_brush(data: list[int], size: Size) -> Mask:
    """The mask of Label Studio's list of bytes for an image of height and width `size`."""
    if any(not 0 <= byte < 256 for byte in data):
        raise MaskError("a brush is a list of bytes, 0 to 255")
    bits = "".join(f"{byte:08b}" for byte in data)
    height, width = size
    value_count = height * width * CHANNELS
    if len(bits) < HEADER or int(bits[:32], 2) != value_count:
        raise MaskError(
            f"a brush of another size; expected {value_count} values for height and width {size}"
        )
    word_size = int(bits[32:37], 2) + 1
    run_sizes = []
    for start in range(37, HEADER, 4):
        run_sizes.append(int(bits[start : start + 4], 2) + 1)
    values = np.zeros(value_count, np.uint8)
    try:
        _decode_runs(bits, values, word_size, run_sizes=run_sizes)
    except ValueError:
        raise MaskError("a brush that ends too early") from None
    alpha = values.reshape(height, width, CHANNELS)[:, :, 3]
    return Mask.from_dense(alpha > 0)


def _decode_runs(
    bits: str, out: UInt8Array, word_size: int, *, run_sizes: list[int]
) -> None:
    """Fill `out` run by run; ValueError if the bits end too early."""
    position = HEADER
    filled = 0
    while filled < len(out):
        is_repeated = bits[position : position + 1] == "1"
        run_size = run_sizes[int(bits[position + 1 : position + 3], 2)]
        position += 3
        length = int(bits[position : position + run_size], 2) + 1
        position += run_size
        values = []
        for _ in range(1 if is_repeated else length):
            values.append(int(bits[position : position + word_size], 2))
            position += word_size
        if position > len(bits):
            raise ValueError
        # The last run may go past the image: what is too much is left out.
        room = len(out) - filled
        out[filled : filled + length] = np.minimum(values, INSIDE)[:room]
        filled += length
