"""Reads the nodes of an ONNX file, and adds tensors inside the graph to its outputs, without the package onnx.

An ONNX file is a protobuf message: ModelProto.graph is field 7; GraphProto.node is field 1 and .output field 12;
NodeProto.input is field 1, .output field 2 and .op_type field 4; ValueInfoProto.name is field 1.
"""

from collections.abc import Iterator, Sequence

from maskwise.errors import MaskwiseError

GRAPH = 7
NODE = 1
GRAPH_OUTPUT = 12
NODE_INPUT = 1
NODE_OUTPUT = 2
OP_TYPE = 4
NAME = 1

VARINT = 0
FIXED_64 = 1
BYTES = 2
FIXED_32 = 5
"""Wire types of protobuf."""


Node = tuple[str, tuple[str, ...]]
"""The type of an operation, such as "Gather", and the names of its input tensors."""


def read_nodes(model: bytes) -> dict[str, Node]:
    """The nodes of the graph by the names of their outputs."""
    nodes = {}
    for graph in _parts(memoryview(model), GRAPH):
        for part in _parts(graph, NODE):
            op_type = "".join(_texts(part, OP_TYPE))
            inputs = tuple(_texts(part, NODE_INPUT))
            node = (op_type, inputs)
            nodes.update(dict.fromkeys(_texts(part, NODE_OUTPUT), node))
    return nodes


def add_outputs(model: bytes, names: Sequence[str]) -> bytes:
    """The file with these tensors among its outputs, after its own ones.

    Protobuf merges messages that follow each other, so that a second graph with nothing but outputs is enough.
    """
    outputs = b"".join(
        _encode(GRAPH_OUTPUT, _encode(NAME, name.encode())) for name in names
    )
    return model + _encode(GRAPH, outputs) if names else model


def _parts(message: memoryview, wanted: int) -> Iterator[memoryview]:
    """The fields of a message with a number, for fields that hold bytes."""
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        if key & 7 == BYTES:
            length, place = _read_varint(message, place)
            if key >> 3 == wanted:
                yield message[place : place + length]
            place += length
        elif key & 7 == VARINT:
            _, place = _read_varint(message, place)
        elif key & 7 in (FIXED_64, FIXED_32):
            place += 8 if key & 7 == FIXED_64 else 4
        else:
            raise MaskwiseError("this is no ONNX file: it is not a protobuf message")


def _texts(message: memoryview, wanted: int) -> Iterator[str]:
    return (bytes(part).decode("utf-8", "replace") for part in _parts(message, wanted))


def _read_varint(message: memoryview, place: int) -> tuple[int, int]:
    """A number and the place after it."""
    value = shift = 0
    while place < len(message):
        byte = message[place]
        value = value | (byte & 0x7F) << shift
        shift = shift + 7
        place = place + 1
        if byte < 0x80:
            return value, place
    raise MaskwiseError("this is no ONNX file: it ends inside a number")


def _encode(number: int, content: bytes) -> bytes:
    """A field that holds bytes."""
    return _encode_varint(number << 3 | BYTES) + _encode_varint(len(content)) + content


def _encode_varint(value: int) -> bytes:
    low = value & 0x7F
    return (
        bytes([low])
        if value < 0x80
        else bytes([low | 0x80]) + _encode_varint(value >> 7)
    )
