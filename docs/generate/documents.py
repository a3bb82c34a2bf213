"""Which documents have parts that are written from the code, and what writes them."""

from collections.abc import Callable
from pathlib import Path

from docs.generate.api import reference
from docs.generate.benchmarks import readers_text
from docs.generate.commands import command_table
from docs.generate.rules import paper_table, rule_table
from docs.generate.tree import ROOT, file_tree

README = ROOT / "README.md"

PARTS: dict[tuple[Path, str], Callable[[], str]] = {
    (README, "commands"): command_table,
    (ROOT / "docs" / "reference" / "files.md", "tree"): file_tree,
    (ROOT / "docs" / "reference" / "api.md", "reference"): reference,
    (ROOT / "docs" / "benchmarks" / "datasets.md", "readers"): readers_text,
    (ROOT / "docs" / "benchmarks" / "which_giou.md", "rules"): rule_table,
    (ROOT / "docs" / "benchmarks" / "which_giou.md", "papers"): paper_table,
}
"""By document and name: what stands between `<!-- name -->` and `<!-- /name -->`."""


def read_part(path: Path, name: str) -> str:
    """What stands in a document now between the two marks."""
    rest = path.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")[1]
    return rest.split(f"<!-- /{name} -->")[0]


def write_documents() -> None:
    """Bring the generated parts of the documents up to date."""
    for (path, name), write in PARTS.items():
        before, rest = path.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")
        after = rest.split(f"<!-- /{name} -->")[1]
        text = f"{before}<!-- {name} -->\n{write()}<!-- /{name} -->{after}"
        path.write_text(text, encoding="utf-8")
