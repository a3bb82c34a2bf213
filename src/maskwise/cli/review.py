"""`maskwise review`: people check a dataset on a web page; status, export, import and rebuild."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.table import Table
from typer.core import TyperGroup

from maskwise.cli.options import AsJson, argument
from maskwise.console import make_console
from maskwise.datasets import BUNDLED_DATASETS, find_dataset
from maskwise.errors import MaskwiseError, StoreError
from maskwise.store import Dataset
from maskwise.terminal import echo

if TYPE_CHECKING:
    from maskwise.review.review import Review

START = "start"


class _StartByDefault(TyperGroup):
    """A group in which a dataset in place of a subcommand means `start`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `start` before anything that is neither a subcommand nor a request for help."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [START, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_StartByDefault,
    help="Let people check a dataset on a web page. `maskwise review DATASET` is `maskwise review start DATASET`.",
    no_args_is_help=True,
)

Folder = Annotated[
    str,
    typer.Argument(
        metavar="DATASET", help="A dataset folder, or `world`.", show_default=False
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar="MASKWISE_REVIEW_DB",
        help="postgresql://..., or an SQLite file; by default DATASET.review.sqlite beside the dataset.",
        show_default=False,
    ),
]
Images = Annotated[
    Path | None,
    typer.Option(
        "--images", help="Folder of the images, if they were moved.", show_default=False
    ),
]


@app.command(START)
def start(
    dataset: Folder,
    *,
    reviewers: Annotated[
        str, typer.Option(help="Pseudonyms, separated by commas.")
    ] = "reviewer",
    adjudicators: Annotated[
        str,
        typer.Option(
            help="Pseudonyms of those who also decide disagreements.",
            show_default=False,
        ),
    ] = "",
    double_share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of samples that two people decide, 0 to 1. Stays as it was begun.",
        ),
    ] = None,
    controls: Annotated[
        Path | None,
        typer.Option(
            help="JSONL file of samples with known answers, to measure reviewers.",
            show_default=False,
        ),
    ] = None,
    new_links: Annotated[
        bool,
        typer.Option("--new-links", help="Make new links for all; the old ones end."),
    ] = False,
    lease_seconds: Annotated[
        float,
        typer.Option(
            min=1, help="How long a sample is kept for a reviewer who does nothing."
        ),
    ] = 900.0,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8001,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name by which requests may call this server. Can be given several times.",
            show_default=False,
        ),
    ] = None,
    db: DatabaseUrl = None,
    images: Images = None,
    as_json: AsJson = False,
) -> None:
    """Open the review page of a dataset and print a personal link for each reviewer and for the owner.

    Links are printed when a reviewer is added; the database stores only hashes of their tokens. docs/review.md has
    more.

    Example: maskwise review start data/val --reviewers ada,bob --double-share 0.2
    """
    review = _open(dataset, db, images, lease_seconds=lease_seconds)
    try:
        from maskwise.review.project import ProjectOptions, read_controls
        from maskwise.server.review_server import load_refiner, serve_review
    except ImportError as error:
        raise _missing(error) from None
    known = {} if controls is None else read_controls(controls, review.dataset)
    tokens: dict[str, str] = {}

    def begin() -> None:
        with review.database.remove_on_error():
            if not review.create(
                ProjectOptions(double_share=double_share or 0.0, controls=known)
            ):
                _check_unchanged(
                    review, double_share, has_controls=controls is not None
                )
            tokens.update(
                _add_reviewers(review, reviewers, adjudicators, new_links=new_links)
            )

    serve_review(
        review,
        host,
        port,
        begin=begin,
        ready=lambda address: _print_links(address, tokens, review, as_json=as_json),
        refiner=load_refiner(),
        allowed_hosts=allow_host or (),
    )


@app.command("status")
def show_status(
    dataset: Folder, *, db: DatabaseUrl = None, as_json: AsJson = False
) -> None:
    """Show progress, reviewers, agreement and reject reasons of a review.

    seconds: median time per decision. controls: accuracy on control items.

    Example: maskwise review status data/val --json
    """
    review = _open_begun(dataset, db)
    stats = msgspec.to_builtins(review.stats())
    if as_json:
        echo(json.dumps(stats, indent=2))
        return
    _print_stats(stats)


@app.command("export")
def export(
    dataset: Folder,
    *,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    format: Annotated[
        str,
        typer.Option(
            help="dataset: the accepted samples. labelstudio: what is still open, as Label Studio tasks."
        ),
    ] = "dataset",
    db: DatabaseUrl = None,
    images: Images = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing dataset.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the accepted and fixed samples as a dataset, with who decided what in provenance.jsonl.

    Undecided, disputed and rejected samples are left out and counted.

    Example: maskwise review export data/val --out data/val_reviewed
    """
    if format not in ("dataset", "labelstudio"):
        raise typer.BadParameter(
            f"{format!r} is neither dataset nor labelstudio", param_hint="--format"
        )
    review = _open_begun(dataset, db, images)
    from maskwise.review.export import export_review
    from maskwise.review.labelstudio import write_labelstudio

    if format == "labelstudio":
        count = write_labelstudio(review, out)
        echo(
            json.dumps({"out": str(out), "samples": count})
            if as_json
            else f"{out}: {count} open samples as tasks"
        )
        return
    summary = export_review(review, out, overwrite=overwrite)
    if as_json:
        facts = {
            "out": summary.out,
            "written": summary.written,
            "images": summary.images,
        }
        echo(json.dumps(facts | {"statuses": summary.statuses}))
        return
    statuses = ", ".join(
        f"{count} {status}" for status, count in sorted(summary.statuses.items())
    )
    echo(f"{out}: {summary.written} samples of {summary.images} images ({statuses})")


@app.command("import")
def import_decisions(
    dataset: Folder,
    file: Annotated[Path, argument("FILE", "A JSON export of Label Studio.")],
    *,
    reviewer: Annotated[
        str, typer.Option(help="Pseudonym of whose decisions these are.")
    ],
    db: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Import what people changed in Label Studio, as decisions of a reviewer. Repeating it changes nothing.

    Example: maskwise review import data/val project-1.json --reviewer ada
    """
    review = _open_begun(dataset, db)
    from maskwise.review.labelstudio import import_labelstudio
    from maskwise.review.queue import Reviewer

    roles = review.reviewers()
    if reviewer not in roles:
        review.add_reviewer(reviewer)
    counts = import_labelstudio(
        review, file, Reviewer(reviewer, roles.get(reviewer, "reviewer"))
    )
    text = ", ".join(f"{count} {name}" for name, count in counts.items())
    echo(json.dumps(counts) if as_json else f"{file}: {text}")


@app.command("rebuild")
def rebuild(
    dataset: Folder, *, db: DatabaseUrl = None, as_json: AsJson = False
) -> None:
    """Make the state of a review anew from its audit log.

    Example: maskwise review rebuild data/val
    """
    review = _open_begun(dataset, db)
    count = review.rebuild()
    echo(
        json.dumps({"events": count})
        if as_json
        else f"{review.database.name}: rebuilt from {count} events"
    )


def _open(
    dataset: str,
    db: str | None,
    images: Path | None = None,
    *,
    lease_seconds: float = 900.0,
) -> "Review":
    try:
        from maskwise.review.database import ReviewDatabase, default_database
        from maskwise.review.review import Review
    except ImportError as error:
        raise _missing(error) from None
    folder = find_dataset(dataset)
    # The bundled dataset may lie where users cannot write.
    place = Path(dataset) if dataset in BUNDLED_DATASETS else folder
    opened = Dataset.open(folder, image_root=images)
    return Review(
        opened,
        ReviewDatabase(db or default_database(place)),
        lease_seconds=lease_seconds,
    )


def _open_begun(dataset: str, db: str | None, images: Path | None = None) -> "Review":
    review = _open(dataset, db, images)
    if not review.exists():
        raise StoreError(
            f"{review.database.name} has no review; begin one: maskwise review {dataset}"
        )
    return review


def _missing(error: ImportError) -> MaskwiseError:
    return MaskwiseError(
        f"maskwise review needs {error.name}, which the extra brings: pip install 'maskwise[web]'"
    )


def _check_unchanged(
    review: "Review", double_share: float | None, *, has_controls: bool
) -> None:
    """Refuse options that can only be chosen at the beginning."""
    before = review.facts().double_share
    if has_controls or (double_share is not None and double_share != before):
        raise MaskwiseError(
            f"{review.database.name}: this review was begun with --double-share {before:g} and its control items, "
            "which stay; leave out --double-share and --controls, or begin another review (--db)"
        )


def _add_reviewers(
    review: "Review", reviewers: str, adjudicators: str, *, new_links: bool
) -> dict[str, str]:
    """Tokens of those who are new, or of all if `new_links`, by name."""
    from maskwise.review.project import OWNER

    before = review.reviewers()
    wanted: dict[str, Any] = dict.fromkeys(_names(reviewers), "reviewer")
    wanted |= dict.fromkeys(_names(adjudicators), "adjudicator")
    if OWNER in wanted:
        raise MaskwiseError(f"the name {OWNER!r} is taken by the owner of the review")
    wanted |= {OWNER: "owner"}
    if new_links:
        wanted = before | wanted
    chosen = {
        name: role for name, role in wanted.items() if new_links or name not in before
    }
    return review.add_reviewers(chosen)


def _names(text: str) -> Sequence[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _print_links(
    address: str, tokens: dict[str, str], review: "Review", *, as_json: bool
) -> None:
    links = {name: f"{address}/review#token={token}" for name, token in tokens.items()}
    if as_json:
        echo(json.dumps({"address": address, "links": links}))
        return
    echo(
        f"review of {review.dataset.name} at {address} (Ctrl-C ends it; {review.database.name} keeps everything)"
    )
    for name, link in links.items():
        echo(f"  {name}: {link}")
    known = [name for name in review.reviewers() if name not in tokens]
    if known:
        echo(
            f"  links of {', '.join(known)} were printed before; --new-links makes new ones"
        )


def _print_stats(stats: dict[str, Any]) -> None:
    console = make_console()
    progress = stats["progress"]
    console.print(
        ", ".join(f"{count} {name}" for name, count in progress.items()), soft_wrap=True
    )
    names = (
        "reviewer",
        "role",
        "decided",
        "accept",
        "fix",
        "reject",
        "skip",
        "seconds",
        "controls",
    )
    table = Table(*names, box=None, padding=(0, 2, 0, 0))
    for one in stats["reviewers"]:
        values = [
            str(one[key])
            for key in ("name", "role", "decisions", "accept", "fix", "reject", "skip")
        ]
        table.add_row(
            *values,
            _number(one["seconds_median"]),
            _number(one["controls"]["accuracy"]),
        )
    console.print(table)
    agreement = stats["agreement"]
    if agreement["items"]:
        console.print(
            f"agreement on {agreement['items']} double reviews: {agreement['equal']} equal, Krippendorff's alpha "
            f"{_number(agreement['alpha'])}, mask IoU {_number(agreement['mask_iou'])}"
        )
        for pair in agreement["pairs"]:
            console.print(
                f"  {pair['a']} and {pair['b']}: {pair['equal']} of {pair['items']} equal, Cohen's kappa "
                f"{_number(pair['kappa'])}"
            )
    for reason in stats["reasons"]:
        console.print(f"rejected as {reason['code']}: {reason['count']}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
