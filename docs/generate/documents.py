"""Which documents, or parts of documents, are written from the code, and what writes them."""

from collections.abc import Callable
from pathlib import Path

from docs.generate.api import reference_pages, reference_table
from docs.generate.benchmarks import reader_pages, reader_table
from docs.generate.commands import command_table, group_pages
from docs.generate.front_page import agreement_table, model_table, speed_table
from docs.generate.rule_pages import rule_index, rule_pages
from docs.generate.rules import paper_table, rule_table
from docs.generate.tree import ROOT, file_tree

DOCS = ROOT / "docs"

PARTS: dict[tuple[Path, str], Callable[[], str]] = {
    (ROOT / "README.md", "agreement"): agreement_table,
    (ROOT / "README.md", "speed"): speed_table,
    (ROOT / "README.md", "models"): model_table,
    (DOCS / "reference" / "cli.md", "commands"): command_table,
    (DOCS / "reference" / "files.md", "tree"): file_tree,
    (DOCS / "reference" / "api.md", "reference"): reference_table,
    (DOCS / "benchmarks" / "datasets.md", "readers"): reader_table,
    (DOCS / "benchmarks" / "rules.md", "rules"): rule_index,
    (DOCS / "benchmarks" / "which_giou.md", "rules"): rule_table,
    (DOCS / "benchmarks" / "which_giou.md", "papers"): paper_table,
}
"""By document and name: what stands between `<!-- name -->` and `<!-- /name -->`."""

PAGES: dict[Path, Callable[[], dict[str, str]]] = {
    DOCS / "benchmarks" / "datasets": reader_pages,
    DOCS / "benchmarks" / "rules": rule_pages,
    DOCS / "reference" / "api": reference_pages,
    DOCS / "reference" / "cli": group_pages,
}
"""By folder: what writes all its documents, by the name of the file."""


def read_part(path: Path, name: str) -> str:
    """What stands in a document now between the two marks."""
    rest = path.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")[1]
    return rest.split(f"<!-- /{name} -->")[0]


def read_pages(folder: Path) -> dict[str, str]:
    """The documents of a folder as they are now, by the name of the file."""
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}


def write_documents() -> None:
    """Bring the generated documents and parts of documents up to date."""
    for folder, write_all in PAGES.items():
        pages = write_all()
        folder.mkdir(exist_ok=True)
        for name in read_pages(folder).keys() - pages.keys():
            (folder / name).unlink()
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
    for (path, name), write in PARTS.items():
        before, rest = path.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")
        after = rest.split(f"<!-- /{name} -->")[1]
        text = f"{before}<!-- {name} -->\n{write()}<!-- /{name} -->{after}"
        path.write_text(text, encoding="utf-8")
