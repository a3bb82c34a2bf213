"""`maskwise review`: people check a dataset, or judge predictions, on a web page; status, results, export, rebuild."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from maskwise.cli.hints import is_dataset, refuse_swapped
from maskwise.cli.lazy import DefaultGroup, HelpfulCommand
from maskwise.cli.options import (
    AllowedHosts,
    AsJson,
    DatasetName,
    ImagesFolder,
    Overwrite,
    ShowAll,
    argument,
)
from maskwise.errors import MaskwiseError, MissingDependencyError, StoreError
from maskwise.terminal import echo

if TYPE_CHECKING:
    from maskwise.auditing.doubts import Audit
    from maskwise.review.review import Review

START = "start"

LEASE_SECONDS = 900.0
"""How long a sample is kept for a reviewer who does nothing: longer than drawing a mask takes."""


class _StartByDefault(DefaultGroup):
    """A group in which a dataset in place of a subcommand means `start`."""

    default = START


app = typer.Typer(
    cls=_StartByDefault,
    help="Let people check a dataset on a web page. `maskwise review DATASET` is `maskwise review start DATASET`.",
    no_args_is_help=True,
)

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar="MASKWISE_REVIEW_DB",
        help="postgresql://..., or an SQLite file; by default DATASET.review.sqlite beside the dataset.",
        show_default=False,
    ),
]


DatasetOrRuns = Annotated[
    list[str],
    argument(
        "DATASET",
        "A dataset, as for other commands; with --runs, run folders instead.",
    ),
]
JudgeRuns = Annotated[
    bool,
    typer.Option(
        "--runs",
        help="People judge the predictions of these runs, without knowing whose they are.",
    ),
]
JudgeMode = Annotated[
    Literal["compare", "rate"] | None,
    typer.Option(
        help="With --runs: compare two predictions of a question, or rate one by one.",
        show_default="compare",
    ),
]


@app.command(START, cls=HelpfulCommand)
def start(
    dataset: DatasetOrRuns,
    *,
    runs: JudgeRuns = False,
    mode: JudgeMode = None,
    questions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --runs: how many questions to draw at random. Stays as it was begun.",
            show_default="all",
        ),
    ] = None,
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
    first: Annotated[
        Path | None,
        typer.Option(
            help="An audit.json of `maskwise audit`: its samples come first, the most doubtful one at the beginning.",
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
    ] = LEASE_SECONDS,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8001,
    allow_host: AllowedHosts = None,
    db: DatabaseUrl = None,
    images: ImagesFolder = None,
    as_json: AsJson = False,
) -> None:
    """Open the review page of a dataset and print a personal link for each reviewer and for the owner.

    With --runs A B, people judge predictions: which of two is better, or how good one is. Links are printed when a
    reviewer is added; the database stores only hashes of their tokens. docs/guides/review.md has more.

    Example: maskwise review start data/val --reviewers ada,bob --double-share 0.2
    """
    if not runs and (mode is not None or questions is not None):
        raise MaskwiseError("--mode and --questions are for judging runs; add --runs")
    if runs and adjudicators:
        raise MaskwiseError(
            "judgments are not adjudicated: all of them count; leave out --adjudicators"
        )
    review = _open(
        dataset, db, images, runs=runs, mode=mode, lease_seconds=lease_seconds
    )
    review.check_integrity()
    try:
        from maskwise.server.review_server import load_refiner, serve_review
    except ImportError as error:
        raise _missing(error) from None
    if runs and first is not None:
        raise MaskwiseError("--first is for the review of a dataset; leave it out")
    create = _beginning(review, double_share or 0.0, controls, questions, first)
    tokens: dict[str, str] = {}

    def begin() -> None:
        with review.database.remove_on_error():
            is_new = create()
            if not is_new:
                _check_unchanged(
                    review,
                    double_share,
                    has_others=any(
                        option is not None for option in (controls, questions, first)
                    ),
                )
            new_tokens = _add_reviewers(
                review, reviewers, adjudicators, new_links=new_links
            )
            tokens.update(new_tokens)

    serve_review(
        review,
        host,
        port,
        begin=begin,
        ready=lambda address: _print_links(address, tokens, review, as_json=as_json),
        refiner=load_refiner(),
        allowed_hosts=allow_host or (),
    )


@app.command("status", cls=HelpfulCommand)
def show_status(
    dataset: DatasetOrRuns,
    *,
    runs: JudgeRuns = False,
    db: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show progress, reviewers, agreement and reject reasons of a review.

    seconds: median time per decision. controls: accuracy on control items.

    Example: maskwise review status data/val --json
    """
    import msgspec

    from maskwise.cli.output import print_json
    from maskwise.cli.review_table import print_review_stats

    review = open_begun(dataset, db, runs=runs)
    stats = review.stats()
    if as_json:
        print_json(stats)
    else:
        print_review_stats(msgspec.to_builtins(stats))


@app.command("results", cls=HelpfulCommand)
def show_results(
    dataset: Annotated[list[str], argument("RUN", "The run folders that are judged.")],
    *,
    db: DatabaseUrl = None,
    show_all: ShowAll = False,
    as_json: AsJson = False,
) -> None:
    """Show what people say about runs: strengths, win rates or ratings, agreement, time, and which metrics agree.

    strength: Bradley-Terry, in log odds. metrics: of the judgments that prefer a run, how many does the metric prefer
    the same way.

    Example: maskwise review results runs/a runs/b
    """
    from maskwise.cli.judgment_table import print_judgment_results
    from maskwise.cli.output import print_json

    results = open_begun(dataset, db, runs=True).results()
    if as_json:
        print_json(results)
    else:
        print_judgment_results(results, show_all=show_all)


@app.command("export", cls=HelpfulCommand)
def export(
    dataset: DatasetOrRuns,
    *,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    runs: JudgeRuns = False,
    format: Annotated[
        Literal["dataset", "labelstudio", "verdicts"] | None,
        typer.Option(
            help="dataset: the accepted samples. labelstudio: what is still open, as Label Studio tasks. "
            "verdicts: people's judgments of runs as a file of JSON lines, for `maskwise judge calibrate`.",
            show_default="dataset; verdicts with --runs",
        ),
    ] = None,
    unchecked: Annotated[
        bool,
        typer.Option(
            "--unchecked",
            help="Also write questions that reviewers added and nobody has checked yet.",
        ),
    ] = False,
    db: DatabaseUrl = None,
    images: ImagesFolder = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write the accepted and fixed samples as a dataset, with who decided what in provenance.jsonl.

    Undecided, disputed and rejected samples are left out and counted. With --runs, write people's judgments.

    Example: maskwise review export data/val --out data/val_reviewed
    """
    from maskwise.cli.output import print_json

    if format is not None and (format == "verdicts") != runs:
        raise MaskwiseError(
            "--format verdicts is for runs (--runs), others for datasets"
        )
    review = open_begun(dataset, db, images, runs=runs)
    from maskwise.review.export import export_review
    from maskwise.review.labelstudio import write_labelstudio
    from maskwise.review.verdicts import export_verdicts

    if runs:
        count = export_verdicts(review, out)
        if as_json:
            print_json({"out": str(out), "verdicts": count})
        else:
            echo(f"{out}: {count} verdicts")
        return
    if format == "labelstudio":
        count = write_labelstudio(review, out)
        if as_json:
            print_json({"out": str(out), "samples": count})
        else:
            echo(f"{out}: {count} open samples as tasks")
        return
    summary = export_review(review, out, overwrite=overwrite, unchecked=unchecked)
    if as_json:
        print_json(
            {
                "out": summary.out,
                "written": summary.written,
                "images": summary.images,
                "statuses": summary.statuses,
            }
        )
        return
    statuses = [
        f"{count} {status}" for status, count in sorted(summary.statuses.items())
    ]
    echo(
        f"{out}: {summary.written} samples of {summary.images} images ({', '.join(statuses)})"
    )


@app.command("import", cls=HelpfulCommand)
def import_decisions(
    dataset: DatasetName,
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
    from maskwise.cli.output import print_json

    refuse_swapped(
        "review import",
        "DATASET FILE",
        dataset,
        file,
        when=is_dataset(file) and not is_dataset(dataset),
    )
    review = open_begun([dataset], db)
    from maskwise.review.labelstudio import import_labelstudio
    from maskwise.review.queue import Reviewer

    roles = review.reviewers()
    if reviewer not in roles:
        review.add_reviewer(reviewer)
    counts = import_labelstudio(
        review, file, Reviewer(reviewer, roles.get(reviewer, "reviewer"))
    )
    if as_json:
        print_json(counts)
        return
    parts = [f"{count} {name}" for name, count in counts.items()]
    echo(f"{file}: {', '.join(parts)}")


@app.command("rebuild", cls=HelpfulCommand)
def rebuild(
    dataset: DatasetOrRuns,
    *,
    runs: JudgeRuns = False,
    db: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the state of a review from its audit log; a damaged SQLite file is replaced and kept beside it.

    Example: maskwise review rebuild data/val
    """
    from maskwise.cli.output import print_json

    review = _open(dataset, db, runs=runs)
    if not review.is_damaged() and not review.exists():
        raise _not_begun(review)
    count, left_out = review.rebuild()
    if as_json:
        print_json({"events": count, "left_out": left_out})
        return
    echo(f"{review.database.name}: rebuilt from {count} events")
    for line in left_out:
        echo(f"  {line}")


def _open(
    dataset: Sequence[str],
    db: str | None,
    images: Path | None = None,
    *,
    runs: bool = False,
    mode: Literal["compare", "rate"] | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> "Review":
    """The review of a dataset, or of the predictions of runs."""
    if runs:
        return _open_runs(dataset, db, mode, lease_seconds)
    if len(dataset) != 1:
        raise MaskwiseError(
            f"expected one dataset, found {len(dataset)}; to judge the predictions of runs, add --runs"
        )
    from maskwise.datasets import BUNDLED_DATASETS, find_dataset
    from maskwise.store import Dataset

    try:
        from maskwise.review.database import ReviewDatabase, default_database
        from maskwise.review.review import Review
    except ImportError as error:
        raise _missing(error) from None
    (name,) = dataset
    folder = find_dataset(name)
    # The bundled dataset may lie where users cannot write.
    place = Path(name) if name in BUNDLED_DATASETS else folder
    database = ReviewDatabase(db or default_database(place))
    data = Dataset.open(folder, image_root=images)
    return Review(data, database, lease_seconds=lease_seconds)


def _open_runs(
    folders: Sequence[str],
    db: str | None,
    mode: Literal["compare", "rate"] | None,
    lease_seconds: float,
) -> "Review":
    """mode: None for the one with which the review was begun."""
    try:
        from maskwise.review.database import ReviewDatabase, judgment_database
        from maskwise.review.judged_runs import open_judged_runs
        from maskwise.review.project import stored_mode
        from maskwise.review.review import Review
    except ImportError as error:
        raise _missing(error) from None
    # A review is the same in whatever order its runs are named.
    ordered = sorted(folders, key=lambda name: str(Path(name).absolute()))
    database = ReviewDatabase(db or judgment_database([Path(name) for name in ordered]))
    judged = open_judged_runs(ordered, mode or stored_mode(database) or "compare")
    return Review(judged.dataset, database, lease_seconds=lease_seconds, runs=judged)


def open_begun(
    dataset: Sequence[str],
    db: str | None,
    images: Path | None = None,
    *,
    runs: bool = False,
) -> "Review":
    """A review that was begun before; an error otherwise."""
    review = _open(dataset, db, images, runs=runs)
    review.check_integrity()
    if not review.exists():
        raise _not_begun(review)
    return review


def _not_begun(review: "Review") -> StoreError:
    return StoreError(
        f"{review.database.name} has no review; begin one: maskwise review start {review.arguments}"
    )


def _beginning(
    review: "Review",
    double_share: float,
    controls: Path | None,
    questions: int | None,
    first: Path | None,
) -> Callable[[], bool]:
    """A function that begins the review, unless it was begun before; what it needs is read now."""
    from maskwise.auditing.doubts import read_audit
    from maskwise.review.judgments import JudgmentOptions, read_judgment_controls
    from maskwise.review.project import ProjectOptions, read_controls

    if review.runs is None:
        known = {} if controls is None else read_controls(controls, review.dataset)
        named = {} if first is None else _doubtful_samples(read_audit(first), review)
        options = ProjectOptions(double_share=double_share, controls=known, first=named)
        return lambda: review.create(options)
    answers = [] if controls is None else read_judgment_controls(controls, review.runs)
    judgments = JudgmentOptions(
        double_share=double_share, samples=questions, controls=answers
    )
    return lambda: review.create(judgments=judgments)


def _doubtful_samples(audit: "Audit", review: "Review") -> dict[str, list[str]]:
    """The samples of an audit with its reasons; StoreError if it is that of another dataset."""
    samples = {
        item.sample: [doubt.message for doubt in item.doubts] for item in audit.doubtful
    }
    unknown = [id for id in samples if id not in review.dataset.samples.row]
    if unknown:
        raise StoreError(
            f"the audit is of {audit.dataset!r}: {review.dataset.path} has no sample {unknown[0]!r}; audit it again"
        )
    return samples


def _missing(error: ImportError) -> MissingDependencyError:
    return MissingDependencyError("maskwise review", str(error.name), extra="web")


def _check_unchanged(
    review: "Review", double_share: float | None, *, has_others: bool
) -> None:
    """Refuse options that can only be chosen at the beginning."""
    before = review.facts().double_share
    if has_others or (double_share is not None and double_share != before):
        raise MaskwiseError(
            f"{review.database.name}: this review was begun with --double-share {before:g}, its control items and "
            "its order, which stay; leave out --double-share, --controls, --questions and --first, or begin another "
            "review (--db)"
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
    what = f"review of {review.dataset.name}"
    if review.runs is not None:
        what = f"judgments of {', '.join(review.runs.names)}"
    echo(
        f"{what} at {address} (Ctrl-C ends it; {review.database.name} keeps everything)"
    )
    for name, link in links.items():
        echo(f"  {name}: {link}")
    earlier = [name for name in review.reviewers() if name not in tokens]
    if earlier:
        names = ", ".join(earlier)
        echo(f"  links of {names} were printed before; --new-links makes new ones")
