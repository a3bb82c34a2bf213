"""Build the documentation site, offline, and check it: `make docs`, or `python -m docs.build FOLDER`."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent

LOADED = re.compile(
    r"""<(?:script|link|img|iframe|source|video|audio)\b[^>]*?\b(?:src|srcset|href)=["']?\s*(?:https?:)?//[^"'\s>]*"""
)
"""A tag that makes a browser load something from another server."""

LOADED_BY_STYLE = re.compile(r"(?:@import\s+|url\(\s*)[\"']?(?:https?:)?//[^\"')\s]+")
"""The same in a style sheet."""


def build_site(folder: Path) -> list[str]:
    """Build the site into a folder; what is wrong with it, nothing if all is well.

    Sphinx warns about links to pages and headings that do not exist, and about pages outside the navigation.
    """
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning"),
            *("--keep-going", "--builder", "html"),
            *("--doctree-dir", str(folder.parent / f"{folder.name}-doctrees")),
            *(str(DOCS), str(folder)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    problems = done.stderr.splitlines()
    if done.returncode and not problems:
        problems = [f"Sphinx ended with exit code {done.returncode}: {done.stdout}"]
    return problems + loaded_from_elsewhere(folder)


def loaded_from_elsewhere(folder: Path) -> list[str]:
    """Pages and style sheets that load from another server, with what they load."""
    problems = []
    for suffix, pattern in ((".html", LOADED), (".css", LOADED_BY_STYLE)):
        for path in sorted(folder.rglob(f"*{suffix}")):
            for tag in pattern.findall(path.read_text(encoding="utf-8")):
                problems.append(f"{path.relative_to(folder)} loads {tag}")
    return problems


def main() -> None:
    """Build, and exit with code 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    problems = build_site(folder)
    if problems:
        print("\n".join(problems))
        sys.exit(1)
    pages = sum(1 for _ in folder.rglob("*.html"))
    print(f"{pages} pages in {folder}; open {folder}/index.html in a browser.")


if __name__ == "__main__":
    main()
