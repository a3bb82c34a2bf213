"""`maskwise release`: publish a version of a dataset."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maskwise.cli.options import AsJson, ImagesFolder, ProbeFolders, argument
from maskwise.errors import ReleaseError
from maskwise.terminal import echo

if TYPE_CHECKING:
    from maskwise.builder.release.release import PlannedRelease
    from maskwise.formats.release_folder import ReleaseManifest


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
            "--resplit",
            help="Ignore the split tags of samples: assign all images to splits again.",
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Another seed gives other splits.")
    ] = 0,
    images: ImagesFolder = None,
    no_images: Annotated[
        bool,
        typer.Option(
            "--no-images",
            help="Refer to the images by file name instead of storing them.",
        ),
    ] = False,
    probes: ProbeFolders = None,
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
    from maskwise.builder.release.card import card_template, read_card
    from maskwise.builder.release.release import (
        SplitOptions,
        plan_release,
        write_release,
    )
    from maskwise.builder.release.risk_tests import read_risk_tests
    from maskwise.builder.release.splits import parse_ratios
    from maskwise.cli.output import print_json
    from maskwise.console import make_console
    from maskwise.datasets import load_dataset
    from maskwise.formats.release_folder import find_release
    from maskwise.progress_bars import make_progress
    from maskwise.runs.environment import available_cores

    existing = find_release(Path(dataset))
    if existing is not None and out is None and template is None:
        if push is None:
            raise ReleaseError(
                f"{dataset} is a release already; --push REPO uploads it"
            )
        folder, _ = existing
        _push(folder, push, public=public, as_json=as_json)
        return
    options = SplitOptions(
        ratios=parse_ratios(splits), seed=seed, keep_tags=not resplit
    )
    data = load_dataset(dataset, images=images)
    risk_tests = read_risk_tests(probes or [], data)
    with make_console(stderr=True).status("measuring"):
        plan = plan_release(
            data, options, with_images=not no_images, threads=available_cores()
        )
    if template is not None:
        template.write_text(card_template(plan.facts), encoding="utf-8")
        echo(f"wrote {template}: fill it in, then release with --card {template}")
        return
    if version is None or out is None:
        raise ReleaseError("a release needs --version and --out")
    with make_progress(quiet=as_json) as bar:
        task = bar.add_task("images", total=None)
        manifest = write_release(
            plan,
            out,
            {} if card is None else read_card(card),
            version=version,
            risk_tests=risk_tests,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    _warn_of_licenses(plan, manifest.license)
    _warn_of_masks(plan)
    if push is not None:
        _push(out, push, public=public, as_json=as_json)
    elif as_json:
        print_json({"release": str(out), "manifest": manifest})
    if not as_json:
        _print_release(manifest, out)


def _warn_of_masks(plan: "PlannedRelease") -> None:
    """Warn of masks that contradict each other; the card counts them."""
    from maskwise.builder.release.measured import count_visible_outside

    outside = count_visible_outside(plan.dataset)
    if outside:
        echo(
            f"maskwise: warning: {outside:,} regions of this release have visible pixels outside their amodal mask; "
            "`maskwise validate` lists them",
            err=True,
        )


def _warn_of_licenses(plan: "PlannedRelease", license: str) -> None:
    """Warn of embedded images that may not be published like this."""
    from maskwise.builder.release.identifiers import same_terms
    from maskwise.builder.release.measured import count_restricted

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
    restricted = count_restricted(plan.dataset)
    if restricted:
        echo(
            f"maskwise: warning: {restricted:,} of {len(plan.dataset.images):,} images in this release have licenses "
            f"that forbid commercial use or derivatives; {advice}",
            err=True,
        )


def _push(folder: Path, repository: str, *, public: bool, as_json: bool) -> None:
    from rich.markup import escape

    from maskwise.builder.release.push import push_release
    from maskwise.cli.output import print_json
    from maskwise.console import make_console

    with make_console(stderr=True).status(f"uploading to {escape(repository)}"):
        address = push_release(folder, repository, public=public)
    if as_json:
        print_json({"release": str(folder), "address": address})
    else:
        echo(address)


def _print_release(manifest: "ReleaseManifest", out: Path) -> None:
    parts = ", ".join(
        f"{name} {split.images:,} images and {split.questions:,} questions"
        for name, split in manifest.splits.items()
    )
    echo(
        f"released {manifest.name} {manifest.version} in {out}: {parts}; license {manifest.license}"
    )
