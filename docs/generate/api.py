"""The reference of the public API, from docstrings: docs/reference/api.md and a page for each subject."""

import inspect
import re
from typing import Any

import maskwise as mw
from docs.generate.commands import slug

SECTIONS = {
    "Models": [
        "load_model",
        "LoadedModel",
        "ImageEncoding",
        "Predictor",
        "baseline",
        "classify_intent",
        "list_models",
    ],
    "Datasets": [
        "load_dataset",
        "read_dataset",
        "Dataset",
        "DatasetWriter",
        "ImageInfo",
        "write_dataset",
        "list_benchmarks",
        "list_formats",
    ],
    "Evaluation": [
        "evaluate",
        "score",
        "Evaluator",
        "reward",
        "Reward",
        "load_run",
        "compare",
        "judge",
        "explain",
        "audit",
        "rescore",
        "ladder",
        "probe",
        "Run",
        "Metric",
        "EngineOptions",
        "list_protocols",
    ],
    "Records": [
        "Sample",
        "Region",
        "Answer",
        "Phrase",
        "Prediction",
        "PredictedRegion",
    ],
    "Masks and images": [
        "Mask",
        "Masks",
        "as_mask",
        "as_masks",
        "open_image",
        "draw_overlay",
    ],
}
"""The public names by subject; errors follow in a section of their own."""


IMPORT = "```python\nimport maskwise as mw\n```"
"""How the names of a page are reached."""


def reference_table() -> str:
    """One row per public name, linked to its description, below a row with its subject."""
    lines = ["| name | |", "|---|---|"]
    for title, names in listed_names().items():
        lines.append(f"| **[{title}](api/{slug(title)}.md)** | |")
        for name in names:
            place = f"api/{slug(title)}.md#{name.lower()}"
            line = (inspect.getdoc(getattr(mw, name)) or "").split("\n")[0]
            lines.append(
                f"| [`{name}`]({place}) | {line.replace('|', chr(92) + '|')} |"
            )
    return "\n".join([*lines, ""])


def reference_pages() -> dict[str, str]:
    """One page per subject, by the name of the file in docs/reference/api."""
    return {
        f"{slug(title)}.md": "\n\n".join(
            [f"# {title}", IMPORT, *(describe(name) for name in names)]
        )
        + "\n"
        for title, names in listed_names().items()
    }


def listed_names() -> dict[str, list[str]]:
    """The public names by subject, errors last."""
    subjects = SECTIONS | {"Errors": errors()}
    return {
        title: [name for name in names if name in mw.__all__]
        for title, names in subjects.items()
    }


def errors() -> list[str]:
    """The exceptions, base class first."""
    return sorted(
        (name for name in mw.__all__ if name.endswith("Error")),
        key=lambda name: name != "MaskwiseError",
    )


def undescribed() -> list[str]:
    """Public names that no section lists."""
    listed = {name for names in SECTIONS.values() for name in names} | set(errors())
    return [name for name in mw.__all__ if name not in listed]


def describe(name: str) -> str:
    """A heading, the signature, the docstring and, for a class, its members."""
    item = getattr(mw, name)
    parts = [f"## `{name}`"]
    if inspect.isfunction(item):
        parts.append(f"```python\n{name}{signature(item)}\n```")
    parts.append(text_of(item))
    if inspect.isclass(item) and not issubclass(item, Exception):
        parts += [table] if (table := members(item)) else []
    return "\n\n".join(parts)


def members(item: type) -> str:
    """Methods and properties of a class as a table, the first sentence of each."""
    rows = [
        f"| `{name}{'' if is_value(found) else '()'}` | {line} |"
        for name, found in sorted(vars(item).items())
        if not name.startswith("_") and (line := first_sentence(found))
    ]
    return "\n".join(["| member | |", "|---|---|", *rows]) if rows else ""


def is_value(found: Any) -> bool:
    """Whether a member is read, not called."""
    return isinstance(found, property) or type(found).__name__ in (
        "cached_property",
        "member_descriptor",
    )


def first_sentence(found: Any) -> str:
    """The first line of the docstring of a method or property; empty for anything else."""
    function = (
        found.__func__ if isinstance(found, classmethod | staticmethod) else found
    )
    if not (inspect.isfunction(function) or is_value(function)):
        return ""
    return (inspect.getdoc(function) or "").split("\n")[0].replace("|", "\\|")


def signature(item: Any) -> str:
    """Arguments, one per line if they are many, without the paths of modules."""
    text = str(inspect.signature(item)).replace("'", "")
    text = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text)
    # The default of a callback is a function, whose address differs from run to run.
    text = re.sub(r"<function <?(\w+)>? at 0x[0-9a-f]+>", r"\1", text)
    if len(text) < 90:
        return text
    inner, _, returns = text[1:].rpartition(")")
    return (
        "(\n"
        + "".join(f"    {part.strip()},\n" for part in split_arguments(inner))
        + f"){returns}"
    )


def split_arguments(text: str) -> list[str]:
    """The arguments of a signature, at commas outside brackets."""
    parts = [""]
    depth = 0
    for letter in text:
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def text_of(item: Any) -> str:
    """The docstring as Markdown: indented blocks become code."""
    text = inspect.getdoc(item) or ""
    return re.sub(
        r"(?:^|\n\n)((?:    .*(?:\n|$))+)",
        lambda found: "\n\n```\n" + inspect.cleandoc(found[1]) + "\n```\n",
        text,
    )
