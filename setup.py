"""The C mask kernel. Where it cannot be built, maskwise installs without it and uses numpy."""

import os
import sys

from setuptools import Extension, setup

FOLDER = "src/maskwise/masks"

# Fused multiply-add would move polygon edges by a pixel against pycocotools, hence -ffp-contract=off.
# -g0: Python's own flags ask for debugging information, which would double the file.
GCC_FLAGS = ["-O3", "-ffp-contract=off", "-std=c11", "-fvisibility=hidden", "-g0"]
FLAGS = ["/O2", "/fp:precise", "/std:c11"] if sys.platform == "win32" else GCC_FLAGS

# `make fuzz`: slower, and every stray read, overflow or shift ends the process with a report.
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
SANITIZE = bool(os.environ.get("MASKWISE_SANITIZE"))
if SANITIZE:
    FLAGS += [*SANITIZERS, "-fno-omit-frame-pointer", "-O1", "-g"]

# `make release-check`: a wheel without the kernel, for platforms that have no wheel of their own and no compiler.
PURE = bool(os.environ.get("MASKWISE_PURE"))

setup(
    ext_modules=[]
    if PURE
    else [
        Extension(
            "maskwise.masks._kernel",
            sources=[f"{FOLDER}/{name}.c" for name in ("rle", "rle_avx2", "module")],
            depends=[f"{FOLDER}/rle.h", f"{FOLDER}/rle_loops.h"],
            extra_compile_args=FLAGS,
            extra_link_args=SANITIZERS if SANITIZE else [],
            define_macros=[("Py_LIMITED_API", "0x030b0000")],
            py_limited_api=True,
            optional=not SANITIZE,
        )
    ],
    options={} if PURE else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
