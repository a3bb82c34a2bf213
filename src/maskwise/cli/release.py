"""`maskwise release` and `maskwise diff`: publish a version of a dataset, and compare two versions."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from maskwise.builder.release.card import card_template, read_card
from maskwise.builder.release.diff import DatasetDiff, FieldChange, diff_datasets
from maskwise.builder.release.identifiers import same_terms
from maskwise.builder.release.measured import count_restricted
from maskwise.builder.release.push import push_release
from maskwise.builder.release.release import (
    PlannedRelease,
    SplitOptions,
    plan_release,
    write_release,
)
from maskwise.builder.release.splits import parse_ratios
from maskwise.cli.options import AsJson, argument
from maskwise.console import make_console
from maskwise.datasets import find_dataset
from maskwise.errors import ReleaseError
from maskwise.formats.release_folder import CARD, ReleaseManifest, find_release
from maskwise.runs.environment import available_cores
from maskwise.store import Dataset
from maskwise.terminal import echo
from maskwise.yaml_files import read_yaml


def release(
    dataset: Annotated[
        str, argument("DATASET", "A dataset folder, or a release to upload.")
    ],
    *,
    version: Annotated[
        str | None,
        typer.Option(
            "--version", help="The version, such as 1.0.0.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The folder to write.", show_default=False),
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(
            help="The card file (YAML) that its authors filled in.", show_default=False
        ),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            "--card-template",
            help="Write a card file to fill in, and end.",
            show_default=False,
        ),
    ] = None,
    splits: Annotated[
        str, typer.Option(help="Shares of the images.")
    ] = "train=0.8,val=0.1,test=0.1",
    resplit: Annotated[
        bool,
        typer.Option(
            "--resplit", help="Also assign images anew whose samples have a split tag."
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Another seed gives other splits.")
    ] = 0,
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images, if they were moved.")
    ] = None,
    no_images: Annotated[
        bool,
        typer.Option(
            "--no-images",
            help="Refer to the images by file name instead of storing them.",
        ),
    ] = False,
    push: Annotated[
        str | None,
        typer.Option(
            metavar="REPO",
            help="Upload to the Hugging Face hub, as USER/NAME.",
            show_default=False,
        ),
    ] = None,
    public: Annotated[
        bool,
        typer.Option("--public", help="The repository is public; otherwise private."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Release a version of a dataset: Parquet by split, benchmark card, dataset card, Croissant, checksums.

    Refused while required fields of the card are blank. Splits are by image and stay the same in later versions. The
    folder is a dataset like any other: `maskwise eval RELEASE/test` and `datasets.load_dataset(RELEASE)` read it.

    Example: maskwise release my_data --version 1.0.0 --card card.yaml --out my_data-1.0.0
    """
    existing = find_release(Path(dataset))
    if existing is not None and out is None and template is None:
        if push is None:
            raise ReleaseError(
                f"{dataset} is a release already; --push REPO uploads it"
            )
        _push(existing.folder, push, public=public, as_json=as_json)
        return
    options = SplitOptions(
        ratios=parse_ratios(splits), seed=seed, keep_tags=not resplit
    )
    opened = Dataset.open(find_dataset(dataset), image_root=images)
    with make_console(stderr=True).status("measuring"):
        plan = plan_release(
            opened, options, with_images=not no_images, threads=available_cores()
        )
    if template is not None:
        template.write_text(card_template(plan.facts), encoding="utf-8")
        echo(f"wrote {template}: fill it in, then release with --card {template}")
        return
    if version is None or out is None:
        raise ReleaseError("a release needs --version and --out")
    with Progress(
        console=make_console(stderr=True), disable=as_json, transient=True
    ) as bar:
        task = bar.add_task("images", total=None)
        manifest = write_release(
            plan,
            out,
            {} if card is None else read_card(card),
            version=version,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    _warn_of_licenses(plan, manifest.license)
    if push is not None:
        _push(out, push, public=public, as_json=as_json)
    elif as_json:
        echo(
            msgspec.json.format(
                msgspec.json.encode({"release": str(out), "manifest": manifest}),
                indent=2,
            ).decode()
        )
    if not as_json:
        _print_release(manifest, out)


def _warn_of_licenses(plan: PlannedRelease, license: str) -> None:
    """Warn of embedded images that may not be published like this."""
    if not plan.with_images:
        return
    advice = "check them before you publish, or refer to the images by file name (--no-images)"
    terms = plan.dataset.manifest.about.get("license")
    if terms is not None and not same_terms(terms, license):
        echo(
            f"maskwise: warning: this release has the license {license} and holds images of a source with other terms "
            f"({terms}); {advice}",
            err=True,
        )
    if restricted := count_restricted(plan.dataset):
        echo(
            f"maskwise: warning: {restricted:,} of {len(plan.dataset.images):,} images in this release have licenses "
            f"that forbid commercial use or derivatives; {advice}",
            err=True,
        )


def _push(folder: Path, repository: str, *, public: bool, as_json: bool) -> None:
    with make_console(stderr=True).status(f"uploading to {escape(repository)}"):
        address = push_release(folder, repository, public=public)
    echo(
        msgspec.json.encode({"release": str(folder), "address": address}).decode()
        if as_json
        else address
    )


def _print_release(manifest: ReleaseManifest, out: Path) -> None:
    parts = ", ".join(
        f"{name} {split.images:,} images and {split.questions:,} questions"
        for name, split in manifest.splits.items()
    )
    echo(
        f"released {manifest.name} {manifest.version} in {out}: {parts}; license {manifest.license}"
    )


def diff(
    old: Annotated[str, argument("OLD", "A dataset folder or release.")],
    new: Annotated[str, argument("NEW", "The one to compare it with.")],
    *,
    listed: Annotated[
        int, typer.Option("--list", min=0, help="How many changes of a kind to list.")
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Say what changed between two versions of a dataset: images, samples, masks, splits, card.

    Exit code 0 if nothing differs, 1 if something does, 2 for an error.

    Example: maskwise diff my_data-1.0.0 my_data-1.1.0
    """
    with make_console(stderr=True).status("comparing"):
        found = diff_datasets(
            Dataset.open(find_dataset(old)),
            Dataset.open(find_dataset(new)),
            cards=_cards(old, new),
            threads=available_cores(),
        )
    if as_json:
        echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        _print_diff(found, listed)
    raise typer.Exit(0 if found.same else 1)


def _cards(old: str, new: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The cards of two releases; None unless both are releases."""
    releases = [find_release(Path(path)) for path in (old, new)]
    one, two = (
        None if release is None else read_yaml(release.folder / CARD, dict[str, Any])
        for release in releases
    )
    return None if one is None or two is None else (one, two)


def _print_diff(found: DatasetDiff, listed: int) -> None:
    console = make_console(highlight=False)
    if found.same:
        console.print(f"{escape(found.old)} and {escape(found.new)} are equal")
        return
    console.print(escape(f"{found.old} -> {found.new}"), style="bold", soft_wrap=True)
    table = Table("", box=None)
    for column in ("added", "removed", "changed"):
        table.add_column(column, justify="right")
    table.add_column("changed fields")
    kinds = {"images": found.images, "regions": found.regions, "samples": found.samples}
    for name, changes in kinds.items():
        fields = ", ".join(
            f"{field} {count:,}" for field, count in changes.fields.items()
        )
        counts = (len(changes.added), len(changes.removed), len(changes.changed))
        table.add_row(name, *(f"{count:,}" for count in counts), fields)
    console.print(table)
    for title, lines in _diff_lists(found).items():
        if lines:
            console.print(f"[bold]{title}[/bold] ({len(lines):,})")
            for line in lines[:listed]:
                console.print(f"  {escape(line)}", soft_wrap=True)
            if len(lines) > listed:
                console.print(f"  and {len(lines) - listed:,} more (--list, --json)")


def _diff_lists(found: DatasetDiff) -> dict[str, list[str]]:
    """What is listed, by title."""
    return {
        "samples added": found.samples.added,
        "samples removed": found.samples.removed,
        "samples changed": [
            f"{id}: {', '.join(fields)}" for id, fields in found.samples.changed.items()
        ],
        "masks changed, most different first": [
            f"{change.image} {change.region} {change.kind}: "
            + (
                "only one of the two exists, or the size differs"
                if change.iou is None
                else f"IoU {change.iou:.3f}"
            )
            for change in found.masks
        ],
        "images moved to another split": [
            f"{move.image}: {move.old} -> {move.new}" for move in found.moves
        ],
        "card": [_field_line(change) for change in found.card],
        "measured by maskwise": [_field_line(change) for change in found.measured],
    }


def _field_line(change: FieldChange) -> str:
    return f"{change.field}: {change.old!r} -> {change.new!r}"
