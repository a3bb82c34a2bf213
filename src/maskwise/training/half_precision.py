"""Weights of an ONNX file stored in half precision, which halves its size; computation stays in float32.

Every large float32 initializer becomes a float16 one followed by a Cast node. onnxruntime evaluates the casts once,
when it opens the file.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MIN_ELEMENTS = 1024
"""Smaller tensors (biases, normalisation) stay float32: they add little to the size."""


def halve_weights(model: onnx.ModelProto) -> None:
    """Store the large float32 initializers of a model as float16, in place. Their names stay the same."""
    casts = []
    for tensor in model.graph.initializer:
        weights = numpy_helper.to_array(tensor)
        if weights.dtype != np.float32 or weights.size < MIN_ELEMENTS:
            continue
        tensor.CopyFrom(
            numpy_helper.from_array(weights.astype(np.float16), tensor.name)
        )
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
