"""Open an ONNX file for inference on the CPU."""

import os
from pathlib import Path

import onnxruntime

from maskwise.errors import MaskwiseError


def open_session(path: Path, *, threads: int | None = None) -> onnxruntime.InferenceSession:
    """An inference session of a file.

    threads: None for the value of OMP_NUM_THREADS, which Ray sets for its actors; all cores where that is not set.
    """
    options = onnxruntime.SessionOptions()
    limit = os.environ.get("OMP_NUM_THREADS", "")
    options.intra_op_num_threads = threads or (int(limit) if limit.isdecimal() else 0)
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no common base class for its errors
        raise MaskwiseError(f"onnxruntime cannot open {path}: {error}") from error
