"""Every mask test runs on both kernels; on the C one with and without the instructions it would choose here."""

import importlib
from collections.abc import Iterator
from types import ModuleType

import pytest

from maskwise.masks import batch, mask, measure, polygons

KERNELS = {
    "c": "maskwise.masks._kernel",
    "c-plain": "maskwise.masks._kernel",
    "numpy": "maskwise.masks.numpy_kernel",
}


@pytest.fixture(autouse=True, scope="module", params=sorted(KERNELS))
def kernel(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The kernel in use. Module-wide, as hypothesis runs a test many times within one fixture."""
    try:
        chosen = importlib.import_module(KERNELS[request.param])
    except ImportError:
        pytest.skip("the C kernel is not built here")
    with pytest.MonkeyPatch.context() as patch:
        for module in (mask, batch, measure, polygons):
            patch.setattr(module, "kernel", chosen)
        if request.param == "c-plain":
            chosen.use_instructions(True)
        yield chosen
    if request.param == "c-plain":
        chosen.use_instructions(False)
