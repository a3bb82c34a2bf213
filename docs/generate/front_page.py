"""The tables of the README, from the results: agreement with official code, speed, and the bundled models.

They are read from docs/results/agreement.json (`python -m tests.golden.agreement`), bench/RESULTS.md (`make bench`),
docs/results/model.md and docs/results/photo.md, so that a figure stands in one place.
"""

import itertools
import json
import re
from pathlib import Path

from docs.generate.tree import ROOT

AGREEMENT = ROOT / "docs" / "results" / "agreement.json"
SPEED = ROOT / "bench" / "RESULTS.md"
TINY = ROOT / "docs" / "results" / "model.md"
PHOTO = ROOT / "docs" / "results" / "photo.md"

OFFICIAL = {
    "lisa": "LISA",
    "mmr": "MMR",
    "muse": "PixelLM (MUSE)",
    "gres": "ReLA (gRefCOCO)",
    "gsva": "GSVA",
    "segzero": "Seg-Zero",
    "visionreasoner": "VisionReasoner",
    "star": "StAR",
    "lens": "LENS",
    "xsam": "X-SAM",
    "sam3i": "SAM3-I",
    "sa2va": "Sa2VA",
    "saco": "SAM 3 (cgF1)",
}
"""Golden file: whose code made it."""

MASKS = ("mask_dense", "mask_polygons", "mask_rle_pairs")
"""Golden files of pycocotools."""

TASKS = {
    "Intersection and union of pairs": "intersection and union of mask pairs",
    "Polygon to run lengths": "polygon to run lengths",
    "Dense plane to run lengths": "dense mask to run lengths",
    "Boundary IoU": "boundary IoU",
    "One protocol (lisa)": "scoring one mask under `lisa`",
}
"""How a section of bench/RESULTS.md begins: what it measures."""

CONTROLS = {
    "visible gIoU": ("text-blind", "image-blind"),
    "amodal gIoU": ("text-blind", "visible-copy", "convex-hull"),
    "occluded IoU": ("convex-hull",),
}
"""Metrics of `tiny` that the README has, and the baselines that it names beside them: those that can be right."""

PHOTO_ROWS = {
    "COCO val half": "`photo`, COCO val, 128 questions that name things: strict gIoU",
    "the same, `match`": "`photo`, ReasonSeg val, 57 images: gIoU of `lisa`",
    "COCOA, 20 occluded": "completion of `photo`, COCOA, 20 hidden regions: amodal mIoU (optimistic)",
}
"""How a row of docs/results/photo.md begins: what the README calls it."""


def agreement_table() -> str:
    """Two rules per row: cases, failures and the largest difference."""
    results = json.loads(AGREEMENT.read_text(encoding="utf-8"))
    masks = [results[name] for name in MASKS]
    rows = {title: results[name] for name, title in OFFICIAL.items()}
    rows["pycocotools (masks, boxes, IoU)"] = {
        "cases": sum(result["cases"] for result in masks),
        "failed": sum(result["failed"] for result in masks),
        "largest": max(result["largest"] for result in masks),
    }
    rows["boundary-iou-api"] = results["boundary_iou"]
    cells = [
        f"{title} | {cases(result)} | {largest(result)}"
        for title, result in rows.items()
    ]
    middle = (len(cells) + 1) // 2
    lines = [
        "| official code of | cases | largest difference | official code of | cases | largest difference |",
        "|---|--:|--:|---|--:|--:|",
    ]
    for left, right in itertools.zip_longest(
        cells[:middle], cells[middle:], fillvalue=" | | "
    ):
        lines.append(f"| {left} | {right} |")
    return "\n".join(lines) + "\n"


def cases(result: dict[str, float]) -> str:
    """How many cases there are, and how many failed, if any."""
    failed = f" ({result['failed']} failed)" if result["failed"] else ""
    return f"{result['cases']}{failed}"


def largest(result: dict[str, float]) -> str:
    """The largest difference, 0 without decimals."""
    return f"{result['largest']:.0e}" if result["largest"] else "0"


def speed_table() -> str:
    """One row per task: how many times faster than each peer."""
    text = SPEED.read_text(encoding="utf-8")
    lines = ["| | times faster than |", "|---|---|"]
    for start, task in TASKS.items():
        section = text.split(f"\n## {start}", 1)[1].split("\n## ", 1)[0]
        peers = re.findall(r"^\| ([^|*]+?) \| [\d.,]+ \| ([\d.,]+)x \|", section, re.M)
        named = []
        for peer, ratio in peers:
            name = re.split(r"[,:(]", peer)[0].strip()
            named.append(f"{name} {ratio}")
        lines.append(f"| {task} | {', '.join(named)} |")
    return "\n".join(lines) + "\n"


def model_table() -> str:
    """The bundled models beside their controls, with 95 % intervals."""
    lines = ["| | result | controls |", "|---|---|---|"]
    header = row(TINY, "", column=1)
    for metric, names in CONTROLS.items():
        column = header.index(metric)
        value = row(TINY, "tiny")[column]
        controls = ", ".join(f"{name} {row(TINY, name)[column]}" for name in names)
        lines.append(
            f"| `tiny`, world: {metric} | {value} | {without_intervals(controls)} |"
        )
    shared = row(PHOTO, "ReasonSeg val, 57 images, best")[1]
    for start, title in PHOTO_ROWS.items():
        _, controls, value = row(PHOTO, start)
        controls = controls.replace("and those above", shared)
        lines.append(f"| {title} | {value} | {without_intervals(controls)} |")
    return "\n".join(lines) + "\n"


def without_intervals(text: str) -> str:
    """The text without "(0.1 to 0.2)"."""
    return re.sub(r" \([\d.]+ to [\d.]+\)", "", text)


def row(document: Path, start: str, *, column: int = 0) -> list[str]:
    """The cells of the first row of a table whose first cell begins so; without a start, the header of the results."""
    for line in document.read_text(encoding="utf-8").splitlines():
        if not line.startswith("| "):
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if start and cells[0].strip().startswith(start):
            return cells
        if not start and len(cells) > column and cells[column] == "visible gIoU":
            return cells
    raise ValueError(f"{document}: no row begins with {start!r}; change {__file__}")
