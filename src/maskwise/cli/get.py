"""`maskwise get`: download publicly hosted benchmarks and weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskwise.cli.options import AsJson, Overwrite, argument
from maskwise.errors import DownloadError
from maskwise.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskwise.downloads.get import Consent, Exporter
    from maskwise.downloads.get import Progress as Report
    from maskwise.downloads.table import Download


def get(
    name: Annotated[
        str | None, argument("NAME", "What to download; without it, the list.")
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The file or dataset folder to write, if not the shared one.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Take what was downloaded elsewhere: a file, or a folder of files with the published names.",
            show_default=False,
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            help="The folder of images that are not part of the download.",
            show_default=False,
        ),
    ] = None,
    no_images: Annotated[
        bool, typer.Option("--no-images", help="Convert annotations only.")
    ] = False,
    embed: Annotated[
        bool, typer.Option("--embed", help="Store the images in the dataset.")
    ] = False,
    accept_license: Annotated[
        bool,
        typer.Option("--accept-license", help="You read the license and agree to it."),
    ] = False,
    accept_unverified: Annotated[
        bool,
        typer.Option(
            "--accept-unverified", help="Take a file whose sha256 is not known."
        ),
    ] = False,
    sha256: Annotated[
        str | None,
        typer.Option(help="The sha256 that the file must have.", show_default=False),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Download a benchmark or weights: resumed, verified by sha256, unpacked safely and converted.

    Names the license first; one that is not permissive has to be accepted. Files are kept in $MASKWISE_WEIGHTS and
    $MASKWISE_DATA, or in ~/.cache/maskwise. Without a name it lists what there is.

    `maskwise get photo` fetches all that the model photo needs, `maskwise get clip` what its option labels=clip needs.

    Example: maskwise get photo
    """
    from maskwise.cli.output import print_json
    from maskwise.downloads.get import Consent, get_dataset, get_weights
    from maskwise.downloads.table import GROUPS, find_download

    if name is None:
        _print_downloads(as_json=as_json)
        return
    consent = Consent(
        license=accept_license, unverified=accept_unverified, sha256=sha256
    )
    if name in GROUPS:
        if out is not None:
            raise DownloadError(
                f"{name} is several files; they go to the folder that MASKWISE_WEIGHTS names, not to --out"
            )
        _get_group(name, source, consent, as_json=as_json)
        return
    download = find_download(name)
    if not as_json:
        echo(f"{download.title}\nlicense: {download.license} ({download.page})")
    with _progress(quiet=as_json) as report:
        if download.kind == "weights":
            path = get_weights(
                download,
                out=out,
                source=source,
                consent=consent,
                progress=report,
                export=_find_exporter([download]) if source is None else None,
            )
            result: dict[str, Any] = {"file": str(path)}
        else:
            summary = get_dataset(
                download,
                out=out,
                source=source,
                images=images,
                with_images=not no_images,
                embed=embed,
                overwrite=overwrite,
                consent=consent,
                progress=report,
            )
            result = {"dataset": summary.out, **summary.kept}
    if as_json:
        print_json({"name": name, "license": download.license, **result})
    else:
        echo(", ".join(f"{key}: {value}" for key, value in result.items()))


def _get_group(
    name: str, source: Path | None, consent: "Consent", *, as_json: bool
) -> None:
    """Get several files of weights, and print where they are."""
    from maskwise.cli.output import print_json
    from maskwise.downloads.get import get_group
    from maskwise.downloads.table import GROUPS, find_download

    downloads = [find_download(member) for member in GROUPS[name]]
    if not as_json:
        for download in downloads:
            echo(f"{download.title}; license: {download.license} ({download.page})")
    with _progress(quiet=as_json) as report:
        paths = get_group(
            name,
            source=source,
            consent=consent,
            progress=report,
            export=_find_exporter(downloads, source),
        )
    files = [str(path) for path in paths]
    if as_json:
        print_json({"name": name, "files": files})
    else:
        echo("\n".join(files))


def _find_exporter(
    downloads: "Sequence[Download]", source: Path | None = None
) -> "Exporter | None":
    """What makes the missing files of these downloads that are exported; MissingDependencyError without torch.

    source: a folder that may have some of them.
    """
    from maskwise.downloads.local_files import weights_folder
    from maskwise.errors import MissingDependencyError

    folder = weights_folder()
    exported = [
        download.files[0].file
        for download in downloads
        if download.exported_from is not None
    ]
    folders = [folder] if source is None else [folder, source]
    missing = [
        file
        for file in exported
        if not any((place / file).exists() for place in folders)
    ]
    if not missing:
        return None
    try:
        from maskwise.training.weights_exports import export_weights
    except ImportError as error:
        raise MissingDependencyError(
            f"the export of {missing[0]}", error.name or "torch", extra="train"
        ) from None
    return export_weights


def _print_downloads(*, as_json: bool) -> None:
    """Print the table of downloads."""
    from rich.markup import escape
    from rich.table import Table

    from maskwise.cli.output import print_json
    from maskwise.console import make_console
    from maskwise.downloads.local_files import data_folder, weights_folder
    from maskwise.downloads.table import list_downloads

    downloads = list(list_downloads().values())
    if as_json:
        print_json(downloads)
        return
    console = make_console(highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("name", "size", "fetched"):
        table.add_column(column, no_wrap=True)
    table.add_column("license", overflow="fold")
    for download in downloads:
        table.add_row(*map(escape, _row(download)))
    console.print(table)
    console.print(
        "verified: downloaded and compared with a known sha256. unverified: its sha256 is not known. "
        "by hand: `maskwise get NAME` says what to fetch from where. exported: made from the authors' checkpoint, "
        "which is verified. `maskwise get photo` fetches all files of the model photo, `maskwise get clip` those of "
        "its option labels=clip."
    )
    console.print(
        f"weights are kept in {escape(str(weights_folder()))}", soft_wrap=True
    )
    console.print(f"data is kept in {escape(str(data_folder()))}", soft_wrap=True)


def _row(download: "Download") -> tuple[str, ...]:
    """Name, size, how it is fetched, license."""
    size = "unknown" if download.bytes is None else f"{download.bytes / 1e6:,.1f} MB"
    if download.by_hand:
        fetched = "by hand"
    elif download.exported_from is not None:
        fetched = "exported"
    elif download.verified:
        fetched = "verified"
    else:
        fetched = "unverified"
    return (download.name, size, fetched, download.license)


@contextmanager
def _progress(*, quiet: bool) -> "Iterator[Report]":
    """A progress bar in bytes, as a function of what is loaded, bytes so far and bytes in all."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    from maskwise.progress_bars import make_progress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with make_progress(*columns, quiet=quiet) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(
            task, description=what, completed=done, total=total
        )
