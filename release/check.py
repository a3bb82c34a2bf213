"""Build the wheels and the source distribution, check them, and use them as a stranger would: `make release-check`.

    .cache/release/bin/python -m release.check --out dist [--tag v0.1.0] [--newest]

It runs in the environment of `release.environment`. Distributions: the source distribution, a wheel with the compiled
kernel for this platform and every Python from 3.11 on, and a wheel without it for platforms that have neither a wheel
of their own nor a compiler. Each is installed without a compiler into a clean environment, and evaluates the bundled
model outside the repository, with equal scores. `--newest` takes the newest versions of the dependencies in place of
the pins of constraints.txt. Nothing is published.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent

MAX_BYTES = 15_000_000
"""Of each file. A package index accepts 100 MB; half a dozen small networks should not take a newcomer's patience."""

LICENSE_FILES = ("LICENSE", "NOTICE")

WHEEL_FILES = (
    "maskwise/py.typed",
    "maskwise/models/tiny/weights/grounder.onnx",
    "maskwise/server/static/js/ask.js",
    "maskwise/world/bundled/samples.arrow",
)
"""A file of each kind of package data."""

EVALUATION = ("eval", "world", "--model", "tiny", "--out", "run")


class ReleaseError(Exception):
    """What is wrong with the release, in one sentence."""


@dataclass(frozen=True)
class Distributions:
    """The files of a release."""

    source: Path
    kernel_wheel: Path
    pure_wheel: Path

    def paths(self) -> list[Path]:
        """All files."""
        return [self.source, self.kernel_wheel, self.pure_wheel]


@dataclass(frozen=True)
class Evaluation:
    """metrics: by protocol and name, as in scores.json. kernel: `c` or `numpy`."""

    metrics: dict[str, dict[str, Any]]
    kernel: str


@dataclass(frozen=True)
class Tools:
    """folder: the environment of `release.environment`. pins: options of pip for dependencies."""

    folder: Path
    pins: Sequence[str]

    def run(
        self, program: str, *arguments: object, env: Mapping[str, str] | None = None
    ) -> str:
        """What a program of the environment prints; an error if it fails."""
        return run([self.folder / "bin" / program, *arguments], env=env)


def main() -> None:
    """Build and check, one line per step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tag", default="")
    parser.add_argument("--newest", action="store_true")
    arguments = parser.parse_args()
    pins = [] if arguments.newest else ["--constraint", str(ROOT / "constraints.txt")]
    tools = Tools(Path(sys.prefix), pins)
    try:
        check_release(tools, arguments.out.absolute(), arguments.tag)
    except ReleaseError as error:
        sys.exit(f"failed: {error}")


def check_release(tools: Tools, out: Path, tag: str) -> None:
    """Everything that has to hold before a tag is pushed."""
    tools.run("hadolint", ROOT / "deploy" / "Containerfile")
    version = check_versions(ROOT, tag)
    print(
        f"version {version}, tag v{version}: changelog and citation agree; the container file has no fault"
    )
    distributions = build(tools, out)
    for path in distributions.paths():
        check_size(path)
        print(f"built {path.name}, {path.stat().st_size / 1e6:.1f} MB")
    check_contents(distributions)
    print("licenses and data are in the files, tests and documents are not")
    tools.run("twine", "check", "--strict", *distributions.paths())
    wheels = [distributions.kernel_wheel, distributions.pure_wheel]
    tools.run("check-wheel-contents", *wheels)
    print("twine and check-wheel-contents find no fault")
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        venv.create(environment, with_pip=False)
        check_installations(tools, distributions, environment)
        bill = write_bill_of_materials(tools, environment, out)
    print(f"wrote {bill.name}: what an installation consists of")
    print(f"nothing was published; to publish push the tag v{version}")


def check_versions(root: Path, tag: str) -> str:
    """The version, if pyproject.toml, the package, CITATION.cff, the changelog and the tag agree on it."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    version = str(project["project"]["version"])
    package = (root / "src" / "maskwise" / "__init__.py").read_text(encoding="utf-8")
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## \[(\d[^\]]*)\] - (\d{4}-\d\d-\d\d)$", changelog, re.M)
    stated = {
        "src/maskwise/__init__.py": re.findall(
            r'^__version__ = "(.*)"$', package, re.M
        ),
        "CITATION.cff": [str(citation["version"])],
        "the newest dated section of CHANGELOG.md": [name for name, _ in sections[:1]],
    }
    for place, versions in stated.items():
        if versions != [version]:
            raise ReleaseError(
                f"pyproject.toml has version {version}, {place} has {versions}"
            )
    date = sections[0][1]
    if str(citation["date-released"]) != date:
        raise ReleaseError(
            f"CHANGELOG.md dates {version} {date}, CITATION.cff {citation['date-released']}"
        )
    if tag and tag != f"v{version}":
        raise ReleaseError(f"the tag of version {version} is v{version}, not {tag}")
    return version


def build(tools: Tools, out: Path) -> Distributions:
    """The source distribution, and both wheels made from it."""
    shutil.rmtree(out, ignore_errors=True)
    tools.run("python", "-m", "build", "--outdir", out, ROOT)
    source = the_only(out, "*.tar.gz")
    kernel_wheel = the_only(out, "*-abi3-*.whl")
    if sys.platform == "linux":
        kernel_wheel = name_systems(tools, kernel_wheel)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        (unpacked,) = Path(folder).iterdir()
        environment = os.environ | {"MASKWISE_PURE": "1"}
        tools.run(
            "python",
            *("-m", "build", "--wheel", "--outdir", out, unpacked),
            env=environment,
        )
    return Distributions(source, kernel_wheel, the_only(out, "*-none-any.whl"))


def name_systems(tools: Tools, wheel: Path) -> Path:
    """The wheel with the oldest Linux systems on which it runs in its name, as a package index demands."""
    programs = os.environ | {
        "PATH": f"{tools.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    }
    repaired = wheel.parent / "repaired"
    tools.run("auditwheel", "repair", "--wheel-dir", repaired, wheel, env=programs)
    renamed = the_only(repaired, "*manylinux*.whl")
    wheel.unlink()
    renamed = renamed.rename(wheel.parent / renamed.name)
    repaired.rmdir()
    return renamed


def check_size(path: Path) -> None:
    """At most MAX_BYTES."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise ReleaseError(f"{path.name} has {size:,} bytes, at most {MAX_BYTES:,}")


def check_contents(distributions: Distributions) -> None:
    """Licenses, all package data, no tests and documents."""
    for wheel in (distributions.kernel_wheel, distributions.pure_wheel):
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        (metadata,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        wanted = [f"{metadata}/licenses/{name}" for name in LICENSE_FILES]
        require(wheel, names, [*wanted, *WHEEL_FILES])
        strays = {name.split("/")[0] for name in names} - {"maskwise", metadata}
        if strays:
            raise ReleaseError(f"{wheel.name} contains {sorted(strays)}")
        has_kernel = any(re.search(r"/_kernel\..*(so|pyd)$", name) for name in names)
        if has_kernel != (wheel == distributions.kernel_wheel):
            raise ReleaseError(
                f"{wheel.name} has {'a' if has_kernel else 'no'} compiled kernel"
            )
    with tarfile.open(distributions.source) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    sources = [f"src/{name}" for name in WHEEL_FILES]
    kernel = ["src/maskwise/masks/rle.c", "src/maskwise/masks/rle_loops.h"]
    require(
        distributions.source,
        names,
        [*LICENSE_FILES, "CHANGELOG.md", "CITATION.cff", *sources, *kernel],
    )


def require(path: Path, names: Sequence[str], wanted: Sequence[str]) -> None:
    """An error if a distribution lacks a file."""
    missing = sorted(set(wanted) - set(names))
    if missing:
        raise ReleaseError(f"{path.name} lacks {missing}")


def check_installations(
    tools: Tools, distributions: Distributions, environment: Path
) -> None:
    """Install each file without a compiler and evaluate; the first brings the dependencies."""
    kernels = {
        distributions.kernel_wheel: "c",
        distributions.pure_wheel: "numpy",
        distributions.source: "numpy",
    }
    first: Evaluation | None = None
    for path, kernel in kernels.items():
        install(tools, path, environment, dependencies=first is None)
        evaluation = evaluate(environment)
        first = first or evaluation
        if evaluation.kernel != kernel:
            raise ReleaseError(
                f"{path.name} brings the mask kernel `{evaluation.kernel}`, not `{kernel}`"
            )
        if evaluation.metrics != first.metrics:
            raise ReleaseError(f"{path.name} gives other scores than the first wheel")
        giou = evaluation.metrics["strict"]["giou"]["value"]
        print(
            f"installed {path.name} without a compiler: kernel {kernel}, strict gIoU {giou:.3f}"
        )


def install(tools: Tools, path: Path, environment: Path, *, dependencies: bool) -> None:
    """Install a distribution as `pip install maskwise` would, where no program but Python is found."""
    # Only the environment's own programs are on the path, and a compiler named by the system fails.
    alone = os.environ | {"PATH": str(environment / "bin"), "CC": "/bin/false"}
    alone.pop("PYTHONPATH", None)
    options = ["--quiet", "--disable-pip-version-check", "--force-reinstall"]
    if dependencies:
        options += ["--only-binary", ":all:", *tools.pins]
    else:
        options.append("--no-deps")
    interpreter = environment / "bin" / "python"
    tools.run(
        "python",
        *("-m", "pip", "--python", interpreter, "install", *options, path),
        env=alone,
    )


def evaluate(environment: Path) -> Evaluation:
    """`maskwise eval world --model tiny` in an empty folder."""
    program = environment / "bin" / "maskwise"
    alone = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MASKWISE_", "PYTHON"))
    }
    with tempfile.TemporaryDirectory() as folder:
        run([program, *EVALUATION], env=alone, cwd=Path(folder))
        output = Path(folder) / "run"
        if not (output / "report.html").exists():
            raise ReleaseError("`maskwise eval` wrote no report")
        scores = json.loads((output / "scores.json").read_text(encoding="utf-8"))
        state = json.loads((output / "run.json").read_text(encoding="utf-8"))
    metrics = {name: part["metrics"] for name, part in scores["protocols"].items()}
    return Evaluation(metrics, str(state["kernel"]))


def write_bill_of_materials(tools: Tools, environment: Path, out: Path) -> Path:
    """A software bill of materials (CycloneDX) of the environment that maskwise was installed into."""
    path = out / "sbom" / "maskwise.cdx.json"
    path.parent.mkdir()
    tools.run(
        "cyclonedx-py",
        *("environment", "--output-reproducible", "--of", "JSON", "--output-file"),
        *(path, "--pyproject", ROOT / "pyproject.toml"),
        environment / "bin" / "python",
    )
    names = {part["name"] for part in json.loads(path.read_text())["components"]}
    if "numpy" not in names:
        raise ReleaseError(f"{path.name} lists {sorted(names)}")
    return path


def the_only(folder: Path, pattern: str) -> Path:
    """The file of a folder with this name."""
    paths = list(folder.glob(pattern))
    if len(paths) != 1:
        raise ReleaseError(f"expected one file {pattern} in {folder}, found {paths}")
    return paths[0]


def run(
    command: Sequence[object],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """What a command prints; an error with its output if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, env=env, cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
