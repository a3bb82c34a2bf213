"""The rooms of the package use only the rooms above them, and the core stays light.

The rules are data: when a room, an extra or a lazy import is added, add it here, on purpose.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sys import stdlib_module_names

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "maskwise"

ROOMS = [
    "errors",
    "arrays",
    "masks",
    "images",
    "schema",
    "overlay",
    "store",
    "formats",
    "benchmarks",
    "world",
    "protocols",
    "harness",
    "report",
    "writers",
    "builder",
    "review",
    "models",
    "probes",
    "server",
    "cli",
]
"""From the ground up: a room imports itself and what stands before it."""

CORE = {"jinja2", "msgspec", "numpy", "onnxruntime", "PIL", "pyarrow", "rich", "scipy", "typer", "yaml"}
"""What `pip install maskwise` brings: any room may import these anywhere."""

EXTRAS = {
    "accelerate": ["models"],
    "anthropic": ["writers"],
    "datasets": ["builder"],
    "fastapi": ["server"],
    "huggingface_hub": ["builder", "models"],
    "mlcroissant": ["builder"],
    "onnx": ["models"],
    "openai": ["writers"],
    "ray": ["harness"],
    "safetensors": ["models"],
    "sqlalchemy": ["review"],
    "starlette": ["server"],
    "tenacity": ["writers"],
    "tensorboard": ["models"],
    "torch": ["models"],
    "uvicorn": ["server", "cli"],
}
"""What an extra brings, and the rooms that may import it."""

LAZY_ROOMS = ["models", "review", "server", "writers"]
"""Rooms whose modules may need an extra: the command line imports them inside the command that asks for them."""

LAZY_MODULES = ["maskwise.harness.engines.ray"]
"""Modules of other rooms that need an extra: they are imported by name when they are asked for."""

SLOW = ["scipy"]
"""What the core brings but takes long to load: a function that alone needs it may import it."""

CHOICES = ["maskwise.masks.kernel"]
"""Modules that choose between implementations when they load, and so import inside a function."""


@dataclass(frozen=True)
class Import:
    """One import statement: which module asks for which name, on which line, inside a function or not."""

    module: str
    name: str
    line: int
    inside: bool

    @property
    def room(self) -> str:
        return room_of(self.module)

    def __str__(self) -> str:
        return f"{self.module}, line {self.line}: imports {self.name}"


def room_of(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *filter(None, [node.module])])
        return [f"{base}.{alias.name}" for alias in node.names] if base == "maskwise" else [base]
    return []


def imports_of(path: Path) -> Iterator[Import]:
    module = module_name(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def walk(node: ast.AST, inside: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            for name in imported_names(child, package):
                yield Import(module, name, child.lineno, inside)  # type: ignore[attr-defined]
            yield from walk(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    yield from walk(ast.parse(path.read_text(encoding="utf-8"), str(path)), False)


MODULES = sorted(PACKAGE.rglob("*.py"))
IMPORTS = [found for path in MODULES for found in imports_of(path)]
OURS = [found for found in IMPORTS if found.name.split(".")[0] == "maskwise"]
THEIRS = [
    found
    for found in IMPORTS
    if found.name.split(".")[0] not in {"maskwise", "__future__"} | stdlib_module_names
]


def none_of(found: list[Import], rule: str) -> None:
    assert not found, rule + "\n" + "\n".join(map(str, found))


def test_every_room_is_known() -> None:
    rooms = {room_of(module_name(path)) for path in MODULES} - {""}
    assert rooms <= set(ROOMS), f"give {sorted(rooms - set(ROOMS))} a place in ROOMS and in the README"


def test_imports_go_up_only() -> None:
    none_of(
        [
            found
            for found in OURS
            if found.room in ROOMS
            and room_of(found.name) in ROOMS
            and ROOMS.index(room_of(found.name)) > ROOMS.index(found.room)
        ],
        "a room may import only the rooms above it",
    )


def test_the_package_itself_imports_no_room() -> None:
    none_of([found for found in OURS if not found.room], "`import maskwise` has to stay free")


def test_torch_stays_in_models() -> None:
    torch = [
        found for found in IMPORTS if found.name.split(".")[0] in {"torch", "torchvision", "transformers"}
    ]
    none_of([found for found in torch if found.room != "models"], "only models/ knows torch")


def test_third_parties_are_declared() -> None:
    allowed = EXTRAS | dict.fromkeys(CORE, ROOMS)
    none_of(
        [found for found in THEIRS if found.room not in allowed.get(found.name.split(".")[0], [])],
        "a room imports what neither the core nor its extra brings",
    )


def test_imports_inside_functions_are_lazy_extras() -> None:
    def excused(found: Import) -> bool:
        lazy_room = found.room == "cli" and room_of(found.name) in LAZY_ROOMS
        return found.name.split(".")[0] in [*EXTRAS, *SLOW] or lazy_room or found.module in CHOICES

    none_of(
        [found for found in IMPORTS if found.inside and not excused(found)], "import at the top of the file"
    )


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in LAZY_ROOMS])
def test_extras_load_only_when_asked(room: str) -> None:
    none_of(
        [
            found
            for found in THEIRS
            if found.room == room
            and not found.inside
            and found.name.split(".")[0] in EXTRAS
            and found.module not in LAZY_MODULES
        ],
        f"{room} has to load without any extra",
    )


def test_lazy_modules_are_imported_by_name_only() -> None:
    none_of([found for found in OURS if found.name in LAZY_MODULES], "import it when it is asked for")


def test_relative_imports_resolve() -> None:
    node = ast.parse("from ..schema import Mask").body[0]
    assert imported_names(node, "maskwise.formats") == ["maskwise.schema"]
    assert imported_names(ast.parse("from maskwise import masks").body[0], "maskwise") == ["maskwise.masks"]
