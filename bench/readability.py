"""How dense the code is: syntax nodes per line, packed assignments, vague names, comments, record types.

python bench/readability.py              the table for src/maskwise
python bench/readability.py --files 20   also the densest files
python bench/readability.py FOLDER       another tree, to compare
"""

import argparse
import ast
from dataclasses import dataclass
from pathlib import Path

VAGUE_NAMES = {"found", "one"}
RECORD_MARKS = ("dataclass", "NamedTuple", "Struct", "TypedDict")
SMALL_FILE = 30
"""Files with fewer code lines are not listed: a table of constants says nothing about style."""


@dataclass
class Measure:
    """The counts of one file, or of all files together."""

    lines: int = 0
    code_lines: int = 0
    comment_lines: int = 0
    nodes: int = 0
    packed: int = 0
    vague: int = 0
    records: int = 0

    @property
    def density(self) -> float:
        """Syntax nodes per code line; docstrings, comments and blank lines are not code."""
        return self.nodes / max(self.code_lines, 1)


def measure_file(path: Path) -> Measure:
    """The counts of one Python file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
    docstring_lines: set[int] = set()
    for node in nodes:
        if is_docstring(node):
            docstring_lines.update(range(node.lineno, node.end_lineno + 1))
    measure = Measure(nodes=len(nodes))
    for number, line in enumerate(text.splitlines(), start=1):
        measure.lines += 1
        if line.strip().startswith("#"):
            measure.comment_lines += 1
        elif line.strip() and number not in docstring_lines:
            measure.code_lines += 1
            measure.comment_lines += "  # " in line
    measure.packed = sum(is_packed(node) for node in nodes)
    measure.vague = sum(is_vague(node) for node in nodes)
    measure.records = sum(is_record(node) for node in nodes)
    return measure


def is_docstring(node: ast.AST) -> bool:
    """A string that stands alone as a statement."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_packed(node: ast.AST) -> bool:
    """An assignment such as `a, b = x, y`."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )


def is_vague(node: ast.AST) -> bool:
    """A variable or argument whose name does not say what it is."""
    if isinstance(node, ast.arg):
        return node.arg in VAGUE_NAMES
    is_bound = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    return is_bound and node.id in VAGUE_NAMES


def is_record(node: ast.AST) -> bool:
    """A dataclass, NamedTuple, msgspec struct or TypedDict."""
    if not isinstance(node, ast.ClassDef):
        return False
    marks = [ast.unparse(mark) for mark in [*node.decorator_list, *node.bases]]
    return any(kind in mark for mark in marks for kind in RECORD_MARKS)


def print_table(files: dict[Path, Measure]) -> None:
    """The totals, one row per measure."""
    total = Measure()
    for measure in files.values():
        for name, value in vars(measure).items():
            setattr(total, name, getattr(total, name) + value)
    thousands = total.code_lines / 1000
    dense = sum(
        measure.density > 8 and measure.code_lines > SMALL_FILE
        for measure in files.values()
    )
    print(f"files                               {len(files):>8,}")
    print(f"lines                               {total.lines:>8,}")
    print(f"code lines                          {total.code_lines:>8,}")
    print(f"syntax nodes per code line          {total.density:>8.2f}")
    print(f"files above 8 nodes per line        {dense:>8,}")
    print(f"packed assignments per 1,000 lines  {total.packed / thousands:>8.1f}")
    print(f"variables named `found` or `one`    {total.vague:>8,}")
    share = 100 * total.comment_lines / (total.code_lines + total.comment_lines)
    print(f"comment lines, percent              {share:>8.1f}")
    print(f"record types                        {total.records:>8,}")
    print(f"record types per 1,000 lines        {total.records / thousands:>8.1f}")


def main() -> None:
    """Measure a tree and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default="src/maskwise", type=Path)
    parser.add_argument("--files", type=int, default=0, help="list the densest files")
    arguments = parser.parse_args()
    paths = sorted(arguments.folder.rglob("*.py"))
    if arguments.folder.is_file():
        paths = [arguments.folder]
    files = {path: measure_file(path) for path in paths}
    print_table(files)
    listed = [path for path in files if files[path].code_lines > SMALL_FILE]
    listed.sort(key=lambda path: -files[path].density)
    for path in listed[: arguments.files]:
        measure = files[path]
        print(
            f"{measure.density:5.1f}  {path}"
            f"  ({measure.vague} vague names, {measure.records} record types)"
        )


if __name__ == "__main__":
    main()
