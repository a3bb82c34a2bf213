"""Open an ONNX file for inference on the CPU."""

import os
from pathlib import Path

import onnxruntime

from maskwise.errors import MaskwiseError


def open_session(
    model: Path | bytes, *, threads: int | None = None, name: str | None = None
) -> onnxruntime.InferenceSession:
    """An inference session of a file or its content. name: what messages call the content.

    threads: None for the value of OMP_NUM_THREADS, which Ray sets for its actors; all cores where that is not set.
    """
    options = onnxruntime.SessionOptions()
    limit = os.environ.get("OMP_NUM_THREADS", "")
    options.intra_op_num_threads = threads or (int(limit) if limit.isdecimal() else 0)
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime has no common base class for its errors
        shown = model if isinstance(model, Path) else name
        raise MaskwiseError(f"onnxruntime cannot open {shown}: {error}") from error
