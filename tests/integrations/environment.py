"""An environment of its own for lmms-eval and trackers: what clashes with our pins, beside what we have.

    python -m tests.integrations.environment .cache/integrations

It sees all packages of the environment that makes it, maskwise included, and adds to them.
"""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

ALONE = ["gradio_client==2.7.2", "lmms-eval==0.7.3", "trackio==0.43.0"]
"""Without their dependencies: lmms-eval pins a wandb that needs another protobuf than ours, and brings torchvision;
trackio wants an older Pillow, and imports gradio_client only.
"""

PACKAGES = [
    "aiohttp",
    "bitsandbytes",
    "evaluate",
    "jsonlines",
    "loguru",
    "mlflow-skinny",
    "numexpr",
    "pytablewriter",
    "sacrebleu",
    "scikit-learn",
    "tenacity",
    "wandb",
]
"""What lmms-eval imports for its model `dummy`, the trackers that fit our pins, and bitsandbytes for weights in 4 bits,
which writes to standard error wherever accelerate is imported.
"""


def make_environment(folder: Path) -> None:
    """Make the environment, or add to it what it lacks."""
    venv.create(folder, with_pip=True)
    program = folder / "bin" / "python"
    ours = sysconfig.get_paths()["purelib"]
    (site_packages,) = folder.glob("lib/python*/site-packages")
    # addsitedir also reads the .pth files there, one of which is that of an editable maskwise.
    line = f"import site; site.addsitedir({ours!r})\n"
    (site_packages / "beside.pth").write_text(line)
    install = [str(program), "-m", "pip", "install", "--disable-pip-version-check"]
    pins = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*install, "--no-deps", *ALONE], check=True)
    subprocess.run([*install, *pins, *PACKAGES], check=True)


if __name__ == "__main__":
    make_environment(Path(sys.argv[1]).absolute())
