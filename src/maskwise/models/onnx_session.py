"""Open an ONNX file for inference on the CPU."""

import os
from pathlib import Path

import onnxruntime

from maskwise.errors import MaskwiseError


def open_session(
    model: Path | bytes,
    *,
    threads: int | None = None,
    name: str | None = None,
    frugal: bool = False,
) -> onnxruntime.InferenceSession:
    """An inference session of a file or its content. name: what messages call the content.

    frugal: memory is freed after every operation. For networks whose operations are long: MobileSAM and U2-Net peak at
    0.5 GB instead of 1.3, in the same time.

    Threads sleep while they wait. Spinning took 1.4 to 1.9 times the processor time for the networks of photographs
    and 2.6 times for `tiny`, whose four sessions spin against each other.

    threads: None for the value of OMP_NUM_THREADS, which Ray sets for its actors; all cores where that is not set.
    """
    options = onnxruntime.SessionOptions()
    limit = os.environ.get("OMP_NUM_THREADS", "")
    options.intra_op_num_threads = threads or (int(limit) if limit.isdecimal() else 0)
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if frugal:
        options.enable_cpu_mem_arena = False
        options.enable_mem_pattern = False
    try:
        return onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime has no common base class for its errors
        shown = model if isinstance(model, Path) else name
        raise MaskwiseError(f"onnxruntime cannot open {shown}: {error}") from error
