"""Array types with the dtype in the name; docstrings give the shape, for example "int64 [samples]"."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
UInt8Array = NDArray[np.uint8]
Int8Array = NDArray[np.int8]
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
UInt64Array = NDArray[np.uint64]
Float16Array = NDArray[np.float16]
Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
NumberArray = NDArray[Any]
"""int64 or float64: sums of integers stay exact."""
