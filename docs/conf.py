"""Settings of the documentation site (Sphinx, MyST, Furo), and its navigation: `make docs`."""

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent

project = "maskwise"
copyright = "the authors of maskwise"
html_title = "maskwise"

extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
root_doc = "index"

# Headings up to the fourth level can be linked to, by the anchors that GitHub gives them.
myst_heading_anchors = 4

# A code block without a language is shown as it is.
highlight_language = "none"

# `--limit` stays two hyphens, and quotes of commands stay straight.
smartquotes = False

# Shortened JSON ("...") is shown as it is.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_static_path = ["site"]
html_css_files = ["site.css"]
html_search_scorer = str(DOCS / "site" / "scorer.js")
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False

# The prompt of a console is not copied.
copybutton_prompt_text = "$ "

NAVIGATION: dict[str, dict[str, list[str]]] = {
    "index": {
        "Start": ["start", "notebooks"],
        "Score and evaluate": [
            "guides/score",
            "guides/evaluate",
            "guides/adapters",
            "guides/training_loop",
            "guides/model_exchange",
            "guides/published_models",
            "guides/downloads",
            "guides/scale",
        ],
        "Compare and publish": [
            "guides/compare",
            "guides/explaining",
            "guides/judging",
            "guides/publish",
            "guides/integrations",
        ],
        "Build a dataset": [
            "guides/own_data",
            "guides/exporting",
            "guides/building",
            "guides/building_llm",
            "guides/occlusion",
            "guides/auditing",
            "guides/releasing",
        ],
        "Review as a team": ["guides/review", "guides/review_predictions"],
        "Train, probe, serve": ["guides/training", "guides/probes", "guides/web"],
        "Benchmarks and rules": [
            "benchmarks/which_giou",
            "benchmarks/rules",
            "benchmarks/datasets",
            "benchmarks/world",
            "benchmarks/intervals",
        ],
        "Reference": [
            "reference/cli",
            "reference/api",
            "reference/predictions",
            "reference/runs",
            "reference/reports",
            "reference/review_api",
            "reference/files",
        ],
        "Extending": ["extending", "contributing"],
        "Results": ["results/*"],
        "Decisions": ["decisions/README"],
    },
    "benchmarks/rules": {"": ["benchmarks/rules/*"]},
    "benchmarks/datasets": {"": ["benchmarks/datasets/*"]},
    "reference/cli": {"": ["reference/cli/*"]},
    "reference/api": {"": ["reference/api/*"]},
    "extending": {
        "": [
            "extending/model",
            "extending/protocol",
            "extending/format",
            "extending/benchmark",
            "extending/recipe",
            "extending/filter",
            "extending/writer",
            "extending/judge",
            "extending/trainer",
            "extending/probe",
        ]
    },
    "decisions/README": {"": ["decisions/0*"]},
}
"""By page: headings of the sidebar, and the pages below each. The documents themselves stay plain Markdown."""


OUTSIDE = {
    "README.md": "index",
    "CONTRIBUTING.md": "contributing",
    "bench/RESULTS.md": "results/speed",
}
"""Documents outside this folder, and the pages that show them (the first: that takes their place)."""

LINK = re.compile(r"\]\((?:\.\./)+(README|CONTRIBUTING|bench/RESULTS)\.md(#[^)]*)?\)")


def complete_page(app: Any, docname: str, source: list[str]) -> None:
    """Put in the text of a document outside the folder, and the table of contents."""
    for name, page in OUTSIDE.items():
        if docname == page != "index":
            text = (DOCS.parent / name).read_text(encoding="utf-8")
            app.env.note_dependency(str(DOCS.parent / name))
            source[0] = text
    source[0] = LINK.sub(lambda link: f"](/{OUTSIDE[link[1] + '.md']}.md)", source[0])
    for caption, pages in NAVIGATION.get(docname, {}).items():
        lines = ["", "```{toctree}", ":hidden:", ":glob:"]
        if caption:
            lines.append(f":caption: {caption}")
        source[0] += "\n".join([*lines, "", *(f"/{page}" for page in pages), "```", ""])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", complete_page)
