"""A package imports only the packages above it, and the core stays light.

The rules are data: a new package, extra or import inside a function is added here on purpose.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sys import stdlib_module_names

import pytest

from maskwise.cli.commands import list_commands

PACKAGE = Path(__file__).parent.parent / "src" / "maskwise"

PACKAGES = [
    "errors",
    "arrays",
    "arrow",
    "terminal",
    "console",
    "progress_bars",
    "registry",
    "yaml_files",
    "logs",
    "masks",
    "images",
    "schema",
    "language",
    "store",
    "formats",
    "benchmarks",
    "downloads",
    "world",
    "datasets",
    "protocols",
    "runs",
    "predictions",
    "report",
    "engines",
    "harness",
    "auditing",
    "writers",
    "builder",
    "judging",
    "review",
    "models",
    "probes",
    "training",
    "integrations",
    "server",
    "cli",
    "__main__",
]
"""In layers: a package (a folder or module of src/maskwise) imports itself and those listed before it."""

CORE = {
    "jinja2",
    "msgspec",
    "numpy",
    "onnxruntime",
    "PIL",
    "pyarrow",
    "rich",
    "scipy",
    "typer",
    "yaml",
}
"""What `pip install maskwise` brings: any package may import these anywhere."""

EXTRAS = {
    "accelerate": ["models", "training"],
    "anthropic": ["writers"],
    "datasets": ["downloads", "training"],
    "huggingface_hub": ["builder", "integrations", "models", "training"],
    "litestar": ["server"],
    "onnx": ["models", "training"],
    "openai": ["writers"],
    "peft": ["models", "training"],
    "prometheus_client": ["server"],
    "psutil": ["training"],
    "ray": ["engines"],
    "safetensors": ["models", "training"],
    "shapely": ["masks"],
    "sqlalchemy": ["review", "server"],
    "tensorboard": ["integrations"],
    "tokenizers": ["models", "training"],
    "torch": ["models", "training"],
    "transformers": ["models", "training"],
    "trl": ["training"],
    "uvicorn": ["server"],
    "wandb": ["integrations"],
}
"""What an extra brings, and the packages that may import it."""

LAZY_PACKAGES = ["models", "review", "server", "training", "writers"]
"""Packages whose modules may need an extra: others import them inside a function."""

COMMAND_MODULES = [
    "maskwise.cli.hints",
    "maskwise.cli.language_models",
    "maskwise.cli.options",
    *(command.location.partition(":")[0] for command in list_commands()),
]
"""Modules of commands, and what they share: they import inside functions, so that the help appears at once."""

LIGHT = {"maskwise", "maskwise.cli", "maskwise.errors", "maskwise.terminal"}
"""What a module with commands may import at its top, beside the standard library."""

LAZY_MODULES = [
    "maskwise.engines.ray_cluster",
    "maskwise.engines.ray_tasks",
    "maskwise.engines.ray_training",
    "maskwise.engines.ray_workers",
    "maskwise.integrations.mlflow_tracker",
    "maskwise.integrations.tensorboard_tracker",
    "maskwise.integrations.trackio_tracker",
    "maskwise.integrations.wandb_tracker",
]
"""Modules of other packages that need an extra: they are imported by name when they are needed."""

SLOW = ["scipy"]
"""Dependencies of the core that load slowly: a function may import them."""

CHOICES = ["maskwise.masks.kernel"]
"""Modules that choose between implementations when they load, and so import inside a function."""

ENTRY = "maskwise.__main__"
"""The program: prepares for Ctrl-C, and then imports the command line."""

DISPLAY = [
    ("maskwise.schema", "maskwise.report.overlay"),
    ("maskwise.runs.run", "maskwise.report.explanation"),
    ("maskwise.runs.run", "maskwise.report.report_file"),
    ("maskwise.runs.run", "maskwise.report.run_samples"),
]
"""Imports inside methods that show an object: records draw themselves, a run writes its report, explains
its losses and shows its samples."""

OPTIONAL = {
    "mlflow": ["integrations"],
    "trackio": ["integrations"],
    "pandas": ["report", "runs"],
}
"""Packages that are used if they are installed, by these packages, inside a function."""


@dataclass(frozen=True)
class Import:
    """One import statement: the importing module, the imported name, the line, inside a function or not."""

    module: str
    name: str
    line: int
    inside: bool
    typing_only: bool

    @property
    def package(self) -> str:
        return package_of(self.module)

    def __str__(self) -> str:
        return f"{self.module}, line {self.line}: imports {self.name}"


def package_of(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        above = (
            package.split(".")[: len(package.split(".")) - node.level + 1]
            if node.level
            else []
        )
        base = ".".join([*above, *filter(None, [node.module])])
        return (
            [f"{base}.{alias.name}" for alias in node.names]
            if base == "maskwise"
            else [base]
        )
    return []


def imports_of(path: Path) -> Iterator[Import]:
    module = module_name(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def walk(node: ast.AST, inside: bool, typing_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            for name in imported_names(child, package):
                yield Import(module, name, child.lineno, inside, typing_only)  # type: ignore[attr-defined]
            yield from walk(
                child,
                inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef),
                typing_only
                or (
                    isinstance(child, ast.If)
                    and ast.unparse(child.test) == "TYPE_CHECKING"
                ),
            )

    yield from walk(
        ast.parse(path.read_text(encoding="utf-8"), str(path)), False, False
    )


MODULES = sorted(PACKAGE.rglob("*.py"))
IMPORTS = [item for path in MODULES for item in imports_of(path)]
OURS = [item for item in IMPORTS if item.name.split(".")[0] == "maskwise"]
THEIRS = [
    item
    for item in IMPORTS
    if item.name.split(".")[0] not in {"maskwise", "__future__"} | stdlib_module_names
]


def none_of(imports: list[Import], rule: str) -> None:
    assert not imports, rule + "\n" + "\n".join(map(str, imports))


def test_every_package_is_listed() -> None:
    packages = {package_of(module_name(path)) for path in MODULES} - {""}
    assert packages <= set(PACKAGES), (
        f"give {sorted(packages - set(PACKAGES))} a place in PACKAGES"
    )


def test_every_listed_package_exists() -> None:
    packages = {package_of(module_name(path)) for path in MODULES}
    missing = [package for package in PACKAGES if package not in packages]
    assert not missing, f"remove {missing} from PACKAGES"


def test_imports_go_up_only() -> None:
    none_of(
        [
            item
            for item in OURS
            if item.package in PACKAGES
            and package_of(item.name) in PACKAGES
            and PACKAGES.index(package_of(item.name)) > PACKAGES.index(item.package)
            and not (
                (item.inside or item.typing_only)
                and (item.module, item.name) in DISPLAY
            )
        ],
        "a package may import only the packages before it in PACKAGES",
    )


def test_import_maskwise_loads_nothing_else() -> None:
    eager = [item for item in OURS if not item.package and not item.typing_only]
    none_of(eager, "names of the public API are loaded on first use")


def test_torch_stays_in_models_and_training() -> None:
    torch = [
        item
        for item in IMPORTS
        if item.name.split(".")[0] in {"torch", "torchvision", "transformers"}
    ]
    bundled = [item for item in torch if item.module.startswith("maskwise.models.tiny")]
    none_of(bundled, "the bundled model runs without torch")
    none_of(
        [item for item in torch if item.package not in ("models", "training")],
        "only models/ and training/ import torch",
    )


SCENE_MODULES = [
    "maskwise.models.tiny.scene_example",
    "maskwise.models.tiny.stage_oracles",
]
"""Modules of the bundled model that know scenes: its ground truth, and oracles made from it."""


def test_inference_does_not_import_the_scene_generator() -> None:
    none_of(
        [
            item
            for item in OURS
            if item.module.startswith("maskwise.models.tiny")
            and item.module not in SCENE_MODULES
            and item.name.startswith(("maskwise.world", *SCENE_MODULES))
        ],
        "inference shares constants with training by models/tiny/spec.py",
    )


def test_only_training_and_its_command_import_training() -> None:
    none_of(
        [
            item
            for item in OURS
            if item.name.startswith("maskwise.training")
            and item.package not in ("training", "cli")
        ],
        "inference never imports training",
    )


def test_third_parties_are_declared() -> None:
    allowed = EXTRAS | OPTIONAL | dict.fromkeys(CORE, PACKAGES)
    none_of(
        [
            item
            for item in THEIRS
            if item.package not in allowed.get(item.name.split(".")[0], [])
        ],
        "a package imports what neither the core nor its extra brings",
    )


def test_commands_import_what_they_need_when_they_run() -> None:
    def is_light(item: Import) -> bool:
        top = item.name.split(".")[0]
        package = ".".join(item.name.split(".")[:2])
        return top in {*stdlib_module_names, "typer"} or package in LIGHT

    none_of(
        [
            item
            for item in IMPORTS
            if item.module in COMMAND_MODULES
            and not item.inside
            and not item.typing_only
            and not is_light(item)
        ],
        "import it inside the function that uses it",
    )


def test_imports_inside_functions_have_a_reason() -> None:
    def has_reason(item: Import) -> bool:
        command = item.module in COMMAND_MODULES
        display = (item.module, item.name) in DISPLAY
        slow = item.name.split(".")[0] in [*EXTRAS, *OPTIONAL, *SLOW]
        return command or display or slow or item.module in [*CHOICES, ENTRY]

    none_of(
        [item for item in IMPORTS if item.inside and not has_reason(item)],
        "import at the top of the file",
    )


@pytest.mark.parametrize(
    "package", [package for package in PACKAGES if package not in LAZY_PACKAGES]
)
def test_extras_load_only_when_needed(package: str) -> None:
    none_of(
        [
            item
            for item in THEIRS
            if item.package == package
            and not item.inside
            and item.name.split(".")[0] in EXTRAS
            and item.module not in LAZY_MODULES
        ],
        f"{package} has to load without any extra",
    )


def test_lazy_modules_are_imported_by_name_only() -> None:
    eager = [
        item
        for item in OURS
        if item.name in LAZY_MODULES and item.module not in LAZY_MODULES
    ]
    none_of(eager, "import it when it is needed")


def test_relative_imports_resolve() -> None:
    node = ast.parse("from ..schema import Mask").body[0]
    assert imported_names(node, "maskwise.formats") == ["maskwise.schema"]
    assert imported_names(
        ast.parse("from maskwise import masks").body[0], "maskwise"
    ) == ["maskwise.masks"]


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module_name(path))
    twice = {name: modules for name, modules in places.items() if len(modules) > 1}
    assert not twice, f"give each of these a name of its own: {twice}"
