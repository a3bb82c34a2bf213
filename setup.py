"""The C mask kernel. Where it cannot be built, maskwise installs without it and uses pycocotools."""

import sys

from setuptools import Extension, setup

# Fused multiply-add would move polygon edges by a pixel against pycocotools, hence -ffp-contract=off.
FLAGS = ["/O2", "/fp:precise"] if sys.platform == "win32" else ["-O3", "-ffp-contract=off", "-std=c11"]

setup(
    ext_modules=[
        Extension(
            "maskwise.masks._kernel",
            sources=["src/maskwise/masks/_kernel.c"],
            extra_compile_args=FLAGS,
            define_macros=[("Py_LIMITED_API", "0x030b0000")],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
