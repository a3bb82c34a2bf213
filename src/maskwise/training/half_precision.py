"""Weights of an ONNX file stored in half precision, which halves its size; computation stays in float32.

Every large float32 initializer becomes a float16 one followed by a Cast node. onnxruntime evaluates the casts once,
when it opens the file. Weights are rounded to the precision of bfloat16, so that files also compress.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from maskwise.arrays import Float16Array

MIN_ELEMENTS = 1024
"""Smaller tensors (biases, normalisation) stay float32: they add little to the size."""

DROPPED_BITS = 3
"""Of the 10 bits after the point of a float16; bfloat16 has 7. A wheel with the bundled networks is a tenth smaller;
the strict metrics on the bundled benchmark changed by 0.03 points at most.
"""


def halve_weights(model: onnx.ModelProto) -> None:
    """Store the large float32 initializers of a model as float16, in place. Their names stay the same."""
    casts = []
    for tensor in model.graph.initializer:
        weights = numpy_helper.to_array(tensor)
        if weights.dtype != np.float32 or weights.size < MIN_ELEMENTS:
            continue
        rounded = round_halves(weights.astype(np.float16))
        tensor.CopyFrom(numpy_helper.from_array(rounded, tensor.name))
        single = f"{tensor.name}/float32"
        for node in model.graph.node:
            for index, name in enumerate(node.input):
                if name == tensor.name:
                    node.input[index] = single
        casts.append(
            helper.make_node(
                "Cast", [tensor.name], [single], single, to=TensorProto.FLOAT
            )
        )
    for cast in reversed(casts):
        model.graph.node.insert(0, cast)


def round_halves(weights: Float16Array) -> Float16Array:
    """float16 numbers of any shape with the last DROPPED_BITS bits zero, rounded to nearest, ties to even."""
    bits = weights.view(np.uint16).astype(np.uint32)
    last_kept = (bits >> DROPPED_BITS) & 1
    nearest = bits + (1 << (DROPPED_BITS - 1)) - 1 + last_kept
    kept = (nearest >> DROPPED_BITS) << DROPPED_BITS
    return kept.astype(np.uint16).view(np.float16)
