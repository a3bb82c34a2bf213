"""Damage to files: bytes, tokens of text, and parts of containers whose checksums are repaired afterwards."""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from random import Random

Mutation = Callable[[Random, bytes], bytes]

EDGES = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
]

TOKENS = [
    *(b"0 -1 1e999 -1e999 1e-400 NaN Infinity null true false [] {} [[]] {}{} 9223372036854775808 -9223372036854775809"
      b" 18446744073709551616 2147483648 0.5 1.5 2020-13-45 0x1F 012 1_000 ~ !!python/object:os.system &a *a <<: | > %")
    .split(),
    b'""', b'"\\ud800"', b'"\\u0000"', b"\xff\xfe", b"\xc3\x28", b'"' + b"a" * 300 + b'"', b"[" * 2000, b'{"a":' * 500,
    b"\x00", b"\r\n", b"\xef\xbb\xbf", "é漢\u202e".encode(), b"../../etc/passwd", b"1" * 400, b"\x1b[2J",
]  # fmt: skip

TOKEN = re.compile(rb'"[^"]*"|-?\d[\d.eE+-]*|[A-Za-z_]+|[\[\]{},:]')


def mutate_bytes(rng: Random, data: bytes) -> bytes:
    """One to four changes: flipped bits, edge values, cuts, repeats, insertions."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(changed):
            changed[at] = rng.randrange(256)
        elif kind == 2:
            width = rng.choice((1, 2, 4, 8))
            value = rng.choice(EDGES) % 256**width
            changed[at : at + width] = value.to_bytes(
                width, rng.choice(("little", "big"))
            )
        elif kind == 3:
            del changed[at:]
        elif kind == 4:
            del changed[at : at + rng.randrange(1, 33)]
        elif kind == 5:
            changed[at:at] = changed[at : at + rng.randrange(1, 65)]
        else:
            changed[at:at] = rng.randbytes(rng.randrange(1, 9))
    return bytes(changed)


def mutate_text(rng: Random, data: bytes) -> bytes:
    """Tokens replaced by others of the file or by awkward ones, removed or repeated; sometimes bytes."""
    if rng.random() < 0.2:
        return mutate_bytes(rng, data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        found = list(TOKEN.finditer(data))
        if not found:
            return data
        token = rng.choice(found)
        other = rng.choice(found)
        kind = rng.randrange(5)
        new = [
            rng.choice(TOKENS),
            other.group(),
            b"",
            token.group() * 2,
            rng.choice(TOKENS),
        ][kind]
        data = data[: token.start()] + new + data[token.end() :]
    return data


def mutate_same_length(rng: Random, data: bytes) -> bytes:
    """Bytes changed in place: what checks of a file's size let through."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8))):
        width = rng.choice((1, 1, 4, 8))
        at = rng.randrange(max(1, len(changed) - width))
        value = rng.choice((rng.getrandbits(8 * width), rng.choice(EDGES) % 256**width))
        changed[at : at + width] = value.to_bytes(width, "little")
    return bytes(changed[: len(data)])


def mutate_png(rng: Random, data: bytes) -> bytes:
    """A chunk changed, repeated, removed or emptied, with a correct checksum; sometimes bytes."""
    if rng.random() < 0.3:
        return mutate_bytes(rng, data)
    chunks = split_png(data)
    at = rng.randrange(len(chunks))
    name, body = chunks[at]
    kind = rng.randrange(5)
    if kind == 0:
        chunks[at] = (name, mutate_bytes(rng, body))
    elif kind == 1:
        chunks.insert(at, rng.choice(chunks))
    elif kind == 2:
        del chunks[at]
    elif kind == 3:
        bomb = zlib.compress(bytes(rng.choice((1000, 2_000_000))))
        chunks.insert(
            1,
            (
                rng.choice((b"zTXt", b"iCCP", b"iTXt", b"eXIf", b"tRNS", b"acTL")),
                b"a\0\0" + bomb,
            ),
        )
    else:
        chunks[at] = (
            name,
            zlib.compress(mutate_bytes(rng, unpack(body)))
            if name == b"IDAT"
            else body[:1],
        )
    return data[:8] + b"".join(join_chunk(*chunk) for chunk in chunks)


def unpack(body: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(body, 2**20)
    except zlib.error:
        return body


def split_png(data: bytes) -> list[tuple[bytes, bytes]]:
    chunks = []
    at = 8
    while at + 12 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    return chunks


def join_chunk(name: bytes, body: bytes) -> bytes:
    return (
        struct.pack(">I", len(body))
        + name
        + body
        + struct.pack(">I", zlib.crc32(name + body))
    )


def mutate_zip(rng: Random, data: bytes) -> bytes:
    """A member's bytes or name changed inside a valid archive; sometimes the archive's bytes."""
    if rng.random() < 0.3:
        return mutate_bytes(rng, data)
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as source,
        zipfile.ZipFile(out, "w") as target,
    ):
        names = source.namelist()
        chosen = rng.choice(names)
        for name in names:
            body = source.read(name)
            if name == chosen:
                body = (
                    mutate_header(rng, body)
                    if rng.random() < 0.7
                    else mutate_bytes(rng, body)
                )
            target.writestr(name, body)
    return out.getvalue()


def mutate_header(rng: Random, array: bytes) -> bytes:
    """The text header of a .npy changed without changing its length."""
    head = array[:10]
    rest = array[10:]
    text = mutate_text(rng, rest[:118])[:118].ljust(118)
    return head + text + rest[118:]
