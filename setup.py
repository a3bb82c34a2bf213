"""The C mask kernel. Where it cannot be built, maskwise installs without it and uses numpy."""

import os
import sys

from setuptools import Extension, setup

# Fused multiply-add would move polygon edges by a pixel against pycocotools, hence -ffp-contract=off.
FLAGS = ["/O2", "/fp:precise"] if sys.platform == "win32" else ["-O3", "-ffp-contract=off", "-std=c11"]

# `make fuzz`: slower, and every stray read, overflow or shift ends the process with a report.
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
SANITIZE = bool(os.environ.get("MASKWISE_SANITIZE"))
if SANITIZE:
    FLAGS += [*SANITIZERS, "-fno-omit-frame-pointer", "-O1", "-g"]

setup(
    ext_modules=[
        Extension(
            "maskwise.masks._kernel",
            sources=["src/maskwise/masks/_kernel.c"],
            extra_compile_args=FLAGS,
            extra_link_args=SANITIZERS if SANITIZE else [],
            define_macros=[("Py_LIMITED_API", "0x030b0000")],
            py_limited_api=True,
            optional=not SANITIZE,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
